package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"
)

// suffix returns the suffix of the file names of programs on a platform: .exe on Windows, none
// elsewhere.
func suffix(platform string) string {
	if strings.HasPrefix(platform, "windows-") {
		return ".exe"
	}
	return ""
}

// packPlugin writes an archive and a bill of materials for each platform, and the manifest for krew.
func (a assembly) packPlugin() error {
	platforms, err := a.platforms(pluginName)
	if err != nil {
		return err
	}
	license, err := os.ReadFile(filepath.Join(a.source, "LICENSE"))
	if err != nil {
		return err
	}
	checksums := map[string]string{}
	for _, platform := range platforms {
		program := pluginName + suffix(platform)
		path := filepath.Join(a.programs, platform, program)
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		archive, err := pack(a.created, member{"LICENSE", 0o644, license}, member{program, 0o755, content})
		if err != nil {
			return err
		}
		name := pluginName + "_" + strings.ReplaceAll(platform, "-", "_")
		sum := sha256.Sum256(archive)
		checksums[name+".tar.gz"] = hex.EncodeToString(sum[:])
		if err := os.WriteFile(filepath.Join(a.out, name+".tar.gz"), archive, 0o644); err != nil {
			return err
		}
		if err := a.writeSBOM(path, name+sbomSuffix); err != nil {
			return err
		}
	}
	return a.writeKrewManifest(checksums)
}

// writeKrewManifest writes the manifest for krew from its template. A platform in the template that
// the release lacks is an error. For a release with only one platform, which is for tests, it writes
// nothing.
func (a assembly) writeKrewManifest(checksums map[string]string) error {
	if len(checksums) == 1 {
		return nil
	}
	manifest, err := template.ParseFiles(filepath.Join(a.source, "hack", "krew", "paddock.yaml"))
	if err != nil {
		return err
	}
	var text bytes.Buffer
	err = manifest.Execute(&text, map[string]any{
		"Version": "v" + a.version,
		"Checksum": func(archive string) (string, error) {
			sum, found := checksums[archive]
			if !found {
				return "", fmt.Errorf("the krew manifest names %s, which the release does not have", archive)
			}
			return sum, nil
		},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(a.out, "paddock.yaml"), text.Bytes(), 0o644)
}

// member is a file of an archive.
type member struct {
	name    string
	mode    int64
	content []byte
}

// pack writes a compressed archive whose bytes depend only on the members and the time.
func pack(created time.Time, members ...member) ([]byte, error) {
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	writer := tar.NewWriter(compressed)
	for _, m := range members {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: m.name, Mode: m.mode, Size: int64(len(m.content)), ModTime: created}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(m.content); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
