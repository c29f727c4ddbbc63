package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// pusher pushes a release. Credentials are those of `docker login` and `helm registry login`.
type pusher struct {
	dir      string
	registry registryAddress
	contents *contents
	// keys is nil if the release is not signed.
	keys *keypair
}

// registryAddress is the address of an OCI registry, with the path below which a release is.
type registryAddress struct {
	address string
	options []name.Option
}

func (r registryAddress) repository(path string) (name.Repository, error) {
	return name.NewRepository(r.address+"/"+path, r.options...)
}

// options are the options of all requests to registries.
var options = []remote.Option{remote.WithAuthFromKeychain(authn.DefaultKeychain)}

func registryFlags(flags *flag.FlagSet, r *registryAddress) {
	flags.StringVar(&r.address, "registry", "", "`registry` and path, such as ghcr.io/paddock-health")
	flags.BoolFunc("plain-http", "use HTTP without TLS, which is the default for localhost", func(string) error {
		r.options = append(r.options, name.Insecure)
		return nil
	})
}

func runPush(args []string) error {
	var p pusher
	flags := flag.NewFlagSet("push", flag.ContinueOnError)
	flags.StringVar(&p.dir, "dir", "", "`folder` of the release")
	key := flags.String("key", "", "`file` with the private key; if empty, nothing is signed")
	registryFlags(flags, &p.registry)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := required(flags, "dir", "registry"); err != nil {
		return err
	}
	var err error
	if p.contents, err = readContents(p.dir); err != nil {
		return err
	}
	// Files that were changed after they were assembled are not published.
	if err := verifyChecksums(p.dir); err != nil {
		return err
	}
	if *key != "" {
		if p.keys, err = readKeypair(*key); err != nil {
			return err
		}
		if err := signFile(p.keys, filepath.Join(p.dir, checksumsFile)); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(os.Stderr, "release: warning: nothing is signed; set -key to sign the release")
	}
	for _, artifact := range p.contents.Artifacts {
		if err := p.push(artifact); err != nil {
			return fmt.Errorf("push %s: %w", artifact.Repository, err)
		}
	}
	return nil
}

func (p pusher) push(a artifact) error {
	repository, err := p.registry.repository(a.Repository)
	if err != nil {
		return err
	}
	tag := repository.Tag(tagOf(p.contents.Version))
	if strings.HasSuffix(a.File, ".tgz") {
		err = p.pushChart(tag, a)
	} else {
		err = withArchive(filepath.Join(p.dir, a.File), func(index v1.ImageIndex) error { return remote.WriteIndex(tag, index, options...) })
	}
	if err != nil {
		return err
	}
	// The manifest in the registry must be the one that the release lists, because the signature is
	// for that digest.
	pushed, err := remote.Head(tag, options...)
	if err != nil {
		return err
	}
	if pushed.Digest.String() != a.Digest {
		return fmt.Errorf("the registry has digest %s of the tag %s, want %s as in %s; push the release again", pushed.Digest, tag.TagStr(), a.Digest, contentsFile)
	}
	fmt.Printf("%s@%s\n", tag, a.Digest)
	if p.keys == nil {
		return nil
	}
	if err := p.attest(repository, a.Digest, ""); err != nil {
		return err
	}
	for _, platform := range a.Platforms {
		if err := p.attest(repository, platform.Digest, platform.SBOM); err != nil {
			return err
		}
	}
	return nil
}

func (p pusher) pushChart(tag name.Tag, a artifact) error {
	archive, err := os.ReadFile(filepath.Join(p.dir, a.File))
	if err != nil {
		return err
	}
	chart, err := chartArtifact(archive, p.contents.Revision)
	if err != nil {
		return err
	}
	return pushArtifact(tag, chart)
}

// pushArtifact pushes an artifact: the config and the layer before the manifest, because registries
// refuse a manifest whose blobs are missing.
func pushArtifact(to name.Reference, a *ociArtifact) error {
	for _, layer := range []v1.Layer{a.config, a.layer} {
		if err := remote.WriteLayer(to.Context(), layer, options...); err != nil {
			return err
		}
	}
	return remote.Put(to, a, options...)
}

// attest signs the statements about a manifest and attaches them to the manifest as referrers. sbom is
// the file of the bill of materials of an image, and empty for an index or the chart.
func (p pusher) attest(repository name.Repository, digest, sbom string) error {
	subject, err := remote.Head(repository.Digest(digest), options...)
	if err != nil {
		return err
	}
	all, err := statements(p.dir, repository.Name(), digest, sbom)
	if err != nil {
		return err
	}
	for _, s := range all {
		bundle, err := signStatement(p.keys, s)
		if err != nil {
			return err
		}
		attached, err := referrer(*subject, bundle, s.PredicateType)
		if err != nil {
			return err
		}
		own, err := attached.digest()
		if err != nil {
			return err
		}
		if err := pushArtifact(repository.Digest(own.String()), attached); err != nil {
			return err
		}
	}
	return nil
}
