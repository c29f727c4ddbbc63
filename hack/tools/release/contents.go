package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// contentsFile is the name of the file that lists the contents of a release.
const contentsFile = "release.json"

// contents lists what is pushed to a registry. Its digests are known before the push.
type contents struct {
	Version   string     `json:"version"`
	Revision  string     `json:"revision"`
	Artifacts []artifact `json:"artifacts"`
}

// artifact is an image or the chart.
type artifact struct {
	// Repository is the path below the registry, such as apiserver or charts/paddock.
	Repository string `json:"repository"`
	// File is the name of the archive in the folder.
	File   string `json:"file"`
	Digest string `json:"digest"`
	// Platforms are the images of an index. The chart has none.
	Platforms []platform `json:"platforms,omitempty"`
}

type platform struct {
	Platform string `json:"platform"`
	Digest   string `json:"digest"`
	// SBOM is the name of the file with the bill of materials.
	SBOM string `json:"sbom"`
}

func readContents(dir string) (*contents, error) {
	text, err := os.ReadFile(filepath.Join(dir, contentsFile))
	if err != nil {
		return nil, err
	}
	var c contents
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("read %s: %w", contentsFile, err)
	}
	return &c, nil
}

// writeJSON writes indented JSON to a file of a release.
func writeJSON(path string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
