package main

import (
	"bytes"
	"crypto"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	slsa "github.com/in-toto/in-toto-golang/in_toto/slsa_provenance/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

// verifier verifies a release with one public key. It connects only to the registry.
type verifier struct {
	registry registryAddress
	version  string
	trusted  *verify.Verifier
}

func runVerify(args []string) error {
	var v verifier
	flags := flag.NewFlagSet("verify", flag.ContinueOnError)
	registryFlags(flags, &v.registry)
	flags.StringVar(&v.version, "version", "", "`version` of the release in the registry, such as 0.2.0")
	dir := flags.String("dir", "", "`folder` with the downloaded files of the release; with -registry, it must have the same digests")
	key := flags.String("key", "", "`file` with the public key")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := required(flags, "key"); err != nil {
		return err
	}
	if *dir == "" && (v.registry.address == "" || v.version == "") {
		return errors.New("verify needs -dir, or -registry and -version")
	}
	var err error
	if v.trusted, err = trust(*key); err != nil {
		return err
	}
	expected := map[string]string{}
	if *dir != "" {
		if err := v.verifyFiles(*dir); err != nil {
			return err
		}
		c, err := readContents(*dir)
		if err != nil {
			return err
		}
		for _, a := range c.Artifacts {
			expected[a.Repository] = a.Digest
		}
	}
	if v.registry.address == "" {
		return nil
	}
	for _, path := range append(slices.Clone(imageNames), chartRepository) {
		if err := v.verifyArtifact(path, expected[path]); err != nil {
			return fmt.Errorf("verify %s: %w", path, err)
		}
	}
	return nil
}

// trust returns a verifier of signatures by the key in a file. Signatures need no timestamp, because
// the key does not expire.
func trust(path string) (*verify.Verifier, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	public, err := cryptoutils.UnmarshalPEMToPublicKey(text)
	if err != nil {
		return nil, fmt.Errorf("%s must have a public key in PEM: %w", path, err)
	}
	key, err := signature.LoadVerifier(public, crypto.SHA256)
	if err != nil {
		return nil, err
	}
	material := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		return root.NewExpiringKey(key, time.Time{}, time.Time{}), nil
	})
	return verify.NewVerifier(material, verify.WithNoObserverTimestamps())
}

// verifyFiles verifies the signature of the list of checksums, and the files by the list.
func (v verifier) verifyFiles(dir string) error {
	path := filepath.Join(dir, checksumsFile)
	signed, err := bundle.LoadJSONFromPath(path + bundleSuffix)
	if err != nil {
		return fmt.Errorf("read the signature of %s: %w", checksumsFile, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if _, err := v.trusted.Verify(signed, verify.NewPolicy(verify.WithArtifact(bytes.NewReader(text)), verify.WithKey())); err != nil {
		return fmt.Errorf("the signature of %s does not match the file and the key; download the release and the key of the project again: %w", checksumsFile, err)
	}
	if err := verifyChecksums(dir); err != nil {
		return err
	}
	fmt.Printf("%s: signature and checksums verified\n", dir)
	return nil
}

// verifyChecksums returns an error unless the list of checksums matches the files of the folder,
// without a missing or an additional file.
func verifyChecksums(dir string) error {
	listed, err := os.ReadFile(filepath.Join(dir, checksumsFile))
	if err != nil {
		return err
	}
	all, err := checksums(dir)
	if err != nil {
		return err
	}
	sums := map[string]string{}
	for _, c := range all {
		sums[c.name] = c.sum
	}
	for line := range strings.Lines(string(listed)) {
		sum, file, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if sums[file] != sum {
			return fmt.Errorf("%s is missing or has another checksum than %s lists; assemble or download the release again", filepath.Join(dir, file), checksumsFile)
		}
		delete(sums, file)
	}
	for file := range sums {
		return fmt.Errorf("%s is not listed in %s; remove the file", filepath.Join(dir, file), checksumsFile)
	}
	return nil
}

// verifyArtifact verifies the image or chart that has the tag of the version in the registry:
// signatures, attestations and every blob. expected is its digest, or empty if any digest is accepted.
func (v verifier) verifyArtifact(path, expected string) error {
	repository, err := v.registry.repository(path)
	if err != nil {
		return err
	}
	found, err := remote.Get(repository.Tag(tagOf(v.version)), options...)
	if err != nil {
		return err
	}
	if expected != "" && found.Digest.String() != expected {
		return fmt.Errorf("the registry has digest %s of the tag %s, want %s as in the files of -dir; download the release again", found.Digest, tagOf(v.version), expected)
	}
	if err := v.verifyStatements(repository, found.Digest, slsa.PredicateSLSAProvenance); err != nil {
		return err
	}
	if !found.MediaType.IsIndex() {
		image, err := found.Image()
		if err != nil {
			return err
		}
		return verifyBlobs(image)
	}
	index, err := found.ImageIndex()
	if err != nil {
		return err
	}
	if err := validate.Index(index); err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, image := range manifest.Manifests {
		if err := v.verifyStatements(repository, image.Digest, sbomPredicate); err != nil {
			return fmt.Errorf("%s: %w", image.Platform, err)
		}
	}
	return nil
}

// verifyBlobs downloads the layers of the chart. The client of the registry verifies their digests.
func verifyBlobs(image v1.Image) error {
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	for _, layer := range layers {
		content, err := layer.Compressed()
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, content)
		if err := errors.Join(err, content.Close()); err != nil {
			return err
		}
	}
	return nil
}

// verifyStatements finds a signature, and an attestation of a type, that the key has signed for a
// digest.
func (v verifier) verifyStatements(repository name.Repository, digest v1.Hash, predicateType string) error {
	referrers, err := remote.Referrers(repository.Digest(digest.String()), options...)
	if err != nil {
		return err
	}
	manifest, err := referrers.IndexManifest()
	if err != nil {
		return err
	}
	missing := map[string]error{signPredicate: nil, predicateType: nil}
	for _, attached := range manifest.Manifests {
		// Not all registries list artifact types and annotations, so every referrer may be a bundle.
		signed, err := v.verifyBundle(repository.Digest(attached.Digest.String()), digest)
		if err == nil {
			delete(missing, signed)
			continue
		}
		if claimed := attached.Annotations[annotationPredicate]; claimed == predicateType || claimed == signPredicate {
			if _, still := missing[claimed]; still {
				missing[claimed] = err
			}
		}
	}
	for predicate, reason := range missing {
		if reason == nil {
			reason = errors.New("the registry lists no such statement")
		}
		return fmt.Errorf("%s@%s has no statement with predicate type %s that the key has signed: %w", repository, digest, predicate, reason)
	}
	fmt.Printf("%s@%s: %s and %s verified\n", repository, digest, signPredicate, predicateType)
	return nil
}

// verifyBundle verifies the bundle in the artifact at, and returns the predicate type of its
// statement. The statement must be about the digest.
func (v verifier) verifyBundle(at name.Digest, about v1.Hash) (predicateType string, err error) {
	image, err := remote.Image(at, options...)
	if err != nil {
		return "", err
	}
	layers, err := image.Layers()
	if err != nil {
		return "", err
	}
	if len(layers) != 1 {
		return "", fmt.Errorf("%s has %d layers, want one", at, len(layers))
	}
	content, err := layers[0].Compressed()
	if err != nil {
		return "", err
	}
	defer content.Close()
	text, err := io.ReadAll(content)
	if err != nil {
		return "", err
	}
	var signed bundle.Bundle
	if err := json.Unmarshal(text, &signed); err != nil {
		return "", err
	}
	sum, err := hex.DecodeString(about.Hex)
	if err != nil {
		return "", err
	}
	result, err := v.trusted.Verify(&signed, verify.NewPolicy(verify.WithArtifactDigest(about.Algorithm, sum), verify.WithKey()))
	if err != nil {
		return "", err
	}
	return result.Statement.GetPredicateType(), nil
}
