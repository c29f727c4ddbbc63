package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/in-toto/in-toto-golang/in_toto/slsa_provenance/common"
	slsa "github.com/in-toto/in-toto-golang/in_toto/slsa_provenance/v1"
)

const (
	repositoryURL  = "https://github.com/paddock-health/paddock"
	provenanceFile = "provenance.json"
	checksumsFile  = "checksums.txt"
)

// statement is an in-toto statement, version 1: a predicate about subjects.
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     any       `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

const statementType = "https://in-toto.io/Statement/v1"

// writeProvenance writes a statement of SLSA about all files and images of the release. It has no
// times, so that the same commit has the same provenance.
func (a assembly) writeProvenance() error {
	var subjects []subject
	c, err := readContents(a.out)
	if err != nil {
		return err
	}
	for _, artifact := range c.Artifacts {
		subjects = append(subjects, subjectOf(a.registry+"/"+artifact.Repository, artifact.Digest))
	}
	files, err := checksums(a.out)
	if err != nil {
		return err
	}
	for _, file := range files {
		subjects = append(subjects, subject{file.name, map[string]string{"sha256": file.sum}})
	}
	return writeJSON(filepath.Join(a.out, provenanceFile), statement{
		Type: statementType, Subject: subjects, PredicateType: slsa.PredicateSLSAProvenance, Predicate: a.provenance(),
	})
}

func (a assembly) provenance() slsa.ProvenancePredicate {
	return slsa.ProvenancePredicate{
		BuildDefinition: slsa.ProvenanceBuildDefinition{
			BuildType:          repositoryURL + "/blob/main/docs/guides/releases.md#provenance",
			ExternalParameters: map[string]string{"target": "release", "VERSION": a.version, "REGISTRY": a.registry},
			ResolvedDependencies: []slsa.ResourceDescriptor{
				{URI: "git+" + repositoryURL, Digest: common.DigestSet{"gitCommit": a.revision}},
				{URI: "pkg:golang/toolchain@" + runtime.Version()},
			},
		},
		RunDetails: slsa.ProvenanceRunDetails{Builder: slsa.Builder{ID: repositoryURL + "/blob/main/hack/tools/release/release.mk"}},
	}
}

func subjectOf(name, digest string) subject {
	algorithm, sum, _ := strings.Cut(digest, ":")
	return subject{name, map[string]string{algorithm: sum}}
}

type checksum struct{ name, sum string }

// checksums returns the checksums of all files of a release, in the order of their names. It leaves
// out the list of checksums and signatures.
func checksums(dir string) ([]checksum, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []checksum
	for _, entry := range entries {
		if entry.Name() == checksumsFile || strings.HasSuffix(entry.Name(), bundleSuffix) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(content)
		all = append(all, checksum{entry.Name(), hex.EncodeToString(sum[:])})
	}
	return all, nil
}

// writeChecksums writes the list that `sha256sum --check` reads.
func writeChecksums(dir string) error {
	all, err := checksums(dir)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, c := range all {
		fmt.Fprintf(&text, "%s  %s\n", c.sum, c.name)
	}
	return os.WriteFile(filepath.Join(dir, checksumsFile), []byte(text.String()), 0o644)
}
