package main

import (
	"encoding/json"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"google.golang.org/protobuf/encoding/protojson"
)

const (
	bundleMediaType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	bundleSuffix    = ".sigstore.json"

	// signPredicate is the predicate type of cosign's signatures of images, sbomPredicate that of a
	// bill of materials.
	signPredicate = "https://sigstore.dev/cosign/sign/v1"
	sbomPredicate = "https://cyclonedx.org/bom"

	// annotationPredicate and annotationContent describe a bundle in a registry, as cosign does.
	annotationPredicate = "dev.sigstore.bundle.predicateType"
	annotationContent   = "dev.sigstore.bundle.content"
)

// signStatement returns a Sigstore bundle with a signed statement. The bundle has no entry of a
// transparency log, so that it can be made and verified without access to one.
func signStatement(pair *keypair, s statement) ([]byte, error) {
	payload, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return signContent(pair, &sign.DSSEData{Data: payload, PayloadType: "application/vnd.in-toto+json"})
}

func signContent(pair *keypair, content sign.Content) ([]byte, error) {
	bundle, err := sign.Bundle(content, pair, sign.BundleOptions{})
	if err != nil {
		return nil, err
	}
	return protojson.Marshal(bundle)
}

// signFile writes the signature of a file of the release next to it.
func signFile(pair *keypair, path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	bundle, err := signContent(pair, &sign.PlainData{Data: content})
	if err != nil {
		return err
	}
	return os.WriteFile(path+bundleSuffix, bundle, 0o644)
}

// referrer returns the artifact that attaches a bundle to a manifest in a registry.
func referrer(of v1.Descriptor, bundle []byte, predicateType string) (*ociArtifact, error) {
	return newOCIArtifact(
		static.NewLayer([]byte("{}"), "application/vnd.oci.empty.v1+json"),
		static.NewLayer(bundle, types.MediaType(bundleMediaType)),
		v1.Manifest{
			ArtifactType: bundleMediaType,
			Subject:      &v1.Descriptor{MediaType: of.MediaType, Digest: of.Digest, Size: of.Size},
			Annotations:  map[string]string{annotationContent: "dsse-envelope", annotationPredicate: predicateType},
		},
	)
}

// statements returns the two statements about an image, an index or the chart: the signature, and the
// bill of materials in the file sbom or, if sbom is empty, the provenance of the release.
func statements(dir, name, digest, sbom string) ([]statement, error) {
	about := []subject{subjectOf(name, digest)}
	signature := statement{Type: statementType, Subject: about, PredicateType: signPredicate, Predicate: struct{}{}}
	file := provenanceFile
	if sbom != "" {
		file = sbom
	}
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil, err
	}
	if sbom != "" {
		return []statement{signature, {Type: statementType, Subject: about, PredicateType: sbomPredicate, Predicate: json.RawMessage(text)}}, nil
	}
	var provenance struct {
		PredicateType string          `json:"predicateType"`
		Predicate     json.RawMessage `json:"predicate"`
	}
	if err := json.Unmarshal(text, &provenance); err != nil {
		return nil, err
	}
	return []statement{signature, {Type: statementType, Subject: about, PredicateType: provenance.PredicateType, Predicate: provenance.Predicate}}, nil
}
