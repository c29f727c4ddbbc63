package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const notesFile = "release-notes.md"

// writeNotes writes the release notes: the section of the version in the changelog, and how to install
// it.
func (a assembly) writeNotes() error {
	section, err := a.changes()
	if err != nil {
		return err
	}
	notes := "# Paddock " + a.version + "\n\n" + section + "\n\n" +
		"Install: `helm install paddock oci://" + a.registry + "/charts/paddock --version " + a.version + " -n paddock-system --create-namespace`\n"
	return os.WriteFile(filepath.Join(a.out, notesFile), []byte(notes), 0o644)
}

// changes returns the section of the version in the changelog, with links that work outside the
// repository.
func (a assembly) changes() (string, error) {
	changelog, err := os.ReadFile(filepath.Join(a.source, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	section, err := changes(string(changelog), a.version)
	return strings.ReplaceAll(section, "](docs/", "]("+repositoryURL+"/blob/v"+a.version+"/docs/"), err
}

var heading = regexp.MustCompile(`(?m)^## \[([^\]]+)\].*\n`)

// changes returns the section of a version in a changelog. For a version with a pre-release part, it
// returns the section Unreleased.
func changes(changelog, version string) (string, error) {
	want := version
	if strings.Contains(version, "-") {
		want = "Unreleased"
	}
	places := heading.FindAllStringSubmatchIndex(changelog, -1)
	for i, place := range places {
		if changelog[place[2]:place[3]] != want {
			continue
		}
		end := len(changelog)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		section := changelog[place[1]:end]
		if links := regexp.MustCompile(`(?m)^\[[^\]]+\]: `).FindStringIndex(section); links != nil {
			section = section[:links[0]]
		}
		if section = strings.TrimSpace(section); section == "" {
			return "", fmt.Errorf("CHANGELOG.md: the section [%s] is empty: list the changes", want)
		}
		return section, nil
	}
	return "", fmt.Errorf("CHANGELOG.md has no section [%s]: rename [Unreleased] to it, with the date", want)
}
