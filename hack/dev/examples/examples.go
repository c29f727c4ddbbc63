// Package examples fetches and reads the npm package hl7.fhir.r4.examples 4.0.1 (CC0), which has HL7's
// official R4 examples and definitions. The npm package is not committed; its integrity is pinned
// here.
package examples

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	name    = "hl7.fhir.r4.examples"
	version = "4.0.1"
	// integrity is the digest that the npm registry has for the package (Subresource Integrity, W3C).
	integrity = "sha512-DXBdIZOeQaSKIgCU7w6HOC7sw/6BzylmipLkBW4f//pT+Bc94x+8LImwTdvaNThPJoOzpBzvxAzNqjeu3X/zLw=="
)

// Example is one example resource.
type Example struct {
	Type string
	ID   string
	// JSON is the resource as it was published.
	JSON []byte
}

// Fetch makes sure that the package is in dir, unchanged, and returns its path. It runs npm to
// download a package that is not there yet. A changed package is an error.
func Fetch(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, name+"-"+version+".tgz")
	err := verify(path)
	if err == nil {
		return path, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("fetch %s: %w", name, err)
	}
	download, err := os.MkdirTemp(dir, "npm-pack-")
	if err != nil {
		return "", fmt.Errorf("fetch %s: %w", name, err)
	}
	defer os.RemoveAll(download)
	command := exec.CommandContext(ctx, "npm", "pack", "--silent", "--pack-destination", download, name+"@"+version)
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("fetch %s: npm pack: %w\n%s", name, err, output)
	}
	packed := filepath.Join(download, filepath.Base(path))
	if err := verify(packed); err != nil {
		return "", err
	}
	return path, os.Rename(packed, path)
}

func verify(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	hash := sha512.New()
	if _, err := io.Copy(hash, file); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if got := "sha512-" + base64.StdEncoding.EncodeToString(hash.Sum(nil)); got != integrity {
		return fmt.Errorf("%s is not the published package: integrity %s, want %s; remove it to fetch it again", path, got, integrity)
	}
	return nil
}

// Load reads the examples of the given resource types out of the package.
func Load(path string, types ...string) ([]Example, error) {
	wanted := map[string]bool{}
	for _, t := range types {
		wanted[t] = true
	}
	var found []Example
	err := Walk(path, func(name string, text []byte) error {
		resourceType, _, isResource := strings.Cut(name, "-")
		if !isResource || !wanted[resourceType] {
			return nil
		}
		example, err := parse(text)
		found = append(found, example)
		return err
	})
	return found, err
}

// Walk calls visit with each file of the package at path. name is the name in the package, such as
// StructureDefinition-Patient.json. Walk stops at the first error of visit, and returns it with the
// names of the file and the package.
func Walk(path string, visit func(name string, text []byte) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	archive := tar.NewReader(unzipped)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			return fmt.Errorf("read %s in %s: %w", header.Name, path, err)
		}
		if err := visit(strings.TrimPrefix(header.Name, "package/"), text); err != nil {
			return fmt.Errorf("read %s in %s: %w", header.Name, path, err)
		}
	}
}

func parse(text []byte) (Example, error) {
	var head struct {
		ResourceType string `json:"resourceType"`
		ID           string `json:"id"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return Example{}, err
	}
	return Example{Type: head.ResourceType, ID: head.ID, JSON: text}, nil
}
