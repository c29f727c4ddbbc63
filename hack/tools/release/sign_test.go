package main

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	slsa "github.com/in-toto/in-toto-golang/in_toto/slsa_provenance/v1"
)

// TestSignatures attaches signatures to an image of a registry and verifies them.
func TestSignatures(t *testing.T) {
	for name, options := range map[string][]registry.Option{
		"a registry with the referrers API":    {registry.WithReferrersSupport(true)},
		"a registry without the referrers API": nil,
	} {
		t.Run(name, func(t *testing.T) { testSignatures(t, options...) })
	}
}

func testSignatures(t *testing.T, options ...registry.Option) {
	server := httptest.NewServer(registry.New(append(options, registry.Logger(log.New(io.Discard, "", 0)))...))
	t.Cleanup(server.Close)
	p := pusher{dir: t.TempDir(), registry: registryAt(server.URL)}
	p.keys = newKeys(t, filepath.Join(p.dir, "key"))
	other := newKeys(t, filepath.Join(p.dir, "other"))
	provenance := statement{Type: statementType, PredicateType: slsa.PredicateSLSAProvenance, Predicate: map[string]string{}}
	if err := writeJSON(filepath.Join(p.dir, provenanceFile), provenance); err != nil {
		t.Fatal(err)
	}
	repository, err := p.registry.repository("apiserver")
	if err != nil {
		t.Fatal(err)
	}
	push := func() v1.Hash {
		t.Helper()
		image, err := random.Image(64, 1)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(repository.Digest(digest.String()), image); err != nil {
			t.Fatal(err)
		}
		return digest
	}
	verifyBy := func(key string, digest v1.Hash) error {
		t.Helper()
		trusted, err := trust(filepath.Join(p.dir, key+".pub"))
		if err != nil {
			t.Fatal(err)
		}
		return verifier{registry: p.registry, trusted: trusted}.verifyStatements(repository, digest, slsa.PredicateSLSAProvenance)
	}
	signed, unsigned, signedByOther, replayed := push(), push(), push(), push()
	if err := p.attest(repository, signed.String(), ""); err != nil {
		t.Fatal(err)
	}
	byOther := p
	byOther.keys = other
	if err := byOther.attest(repository, signedByOther.String(), ""); err != nil {
		t.Fatal(err)
	}
	replay(t, p, signed, replayed)

	if err := verifyBy("key", signed); err != nil {
		t.Errorf("the signature does not verify: %v", err)
	}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"no signature":                    {verifyBy("key", unsigned), "the registry lists no such statement"},
		"a signature by another key":      {verifyBy("key", signedByOther), "has no statement"},
		"another key":                     {verifyBy("other", signed), "has no statement"},
		"the signature of another digest": {verifyBy("key", replayed), "has no statement"},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("%s: got error %v, want one with %q", name, test.err, test.want)
		}
	}
}

// replay attaches the signed statement about one image to another.
func replay(t *testing.T, p pusher, from, to v1.Hash) {
	t.Helper()
	repository, err := p.registry.repository("apiserver")
	if err != nil {
		t.Fatal(err)
	}
	all, err := statements(p.dir, repository.Name(), from.String(), "")
	if err != nil {
		t.Fatal(err)
	}
	subject, err := remote.Head(repository.Digest(to.String()))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		bundle, err := signStatement(p.keys, s)
		if err != nil {
			t.Fatal(err)
		}
		attached, err := referrer(*subject, bundle, s.PredicateType)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := attached.digest()
		if err != nil {
			t.Fatal(err)
		}
		if err := pushArtifact(repository.Digest(digest.String()), attached); err != nil {
			t.Fatal(err)
		}
	}
}

func registryAt(url string) registryAddress {
	return registryAddress{address: strings.TrimPrefix(url, "http://")}
}

func newKeys(t *testing.T, path string) *keypair {
	t.Helper()
	if err := runKeygen([]string{"-out", path}); err != nil {
		t.Fatal(err)
	}
	keys, err := readKeypair(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := runKeygen([]string{"-out", path}); !os.IsExist(err) {
		t.Errorf("keygen replaced a key: %v", err)
	}
	return keys
}
