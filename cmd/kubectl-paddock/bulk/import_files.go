package bulk

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// typeOrder is the order in which types are imported: a type comes after the types to which its records
// usually refer. Other types are imported last.
var typeOrder = []string{
	"Organization", "Endpoint", "Location", "HealthcareService", "Practitioner", "PractitionerRole", "OrganizationAffiliation",
	"DeviceDefinition", "Patient", "RelatedPerson", "Person", "Device", "DeviceMetric", "Group",
}

// importedFile is a file to import.
type importedFile struct {
	name string
	size int64
}

// importFiles returns the files of a folder in the order of typeOrder, and their total size. With a
// manifest, it returns only the files that the manifest names.
func importFiles(directory string, manifest *NativeManifest) (files []importedFile, total int64, err error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, 0, err
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".ndjson") {
			continue
		}
		isNamed := func(file NativeFile) bool { return file.Name == entry.Name() }
		if manifest != nil && !slices.ContainsFunc(manifest.Files, isNamed) {
			continue
		}
		info, err := os.Stat(filepath.Join(directory, entry.Name())) // of the file, if the entry is a symbolic link
		if err != nil {
			return nil, 0, err
		}
		if !info.Mode().IsRegular() {
			continue
		}
		files, total = append(files, importedFile{entry.Name(), info.Size()}), total+info.Size()
	}
	if len(files) == 0 && (manifest == nil || len(manifest.Files) > 0) { // a site without records has no files
		return nil, 0, fmt.Errorf("the directory %s has no files *.ndjson", directory)
	}
	rank := func(file importedFile) int {
		typeName, _, _ := strings.Cut(file.name, ".")
		if at := slices.Index(typeOrder, typeName); at >= 0 {
			return at
		}
		return len(typeOrder)
	}
	slices.SortStableFunc(files, func(a, b importedFile) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.name, b.name))
	})
	return files, total, nil
}

// sourceOf returns the SHA-256 of the names and sizes of files and, with a manifest, of the digest in it.
// Without a manifest, the contents are not considered, because files that are read for this can be large.
func sourceOf(files []importedFile, manifest *NativeManifest) string {
	sum := sha256.New()
	if manifest != nil {
		fmt.Fprintln(sum, manifest.SHA256)
	}
	for _, file := range files {
		fmt.Fprintln(sum, file.size, file.name)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// readFiles calls send with each portion of the files from state.Next on.
func (i *importer) readFiles(files []importedFile, send func(*portion) error) error {
	start := i.state.Next
	startOffset := i.state.Offset
	if start.File != "" && !slices.ContainsFunc(files, func(file importedFile) bool { return file.name == start.File }) {
		return fmt.Errorf("the file %s of an interrupted import is missing", start.File)
	}
	for _, file := range files {
		if start.File != "" && file.name != start.File {
			continue
		}
		at, offset := place{File: file.name, Line: 1}, int64(0)
		if start.File != "" {
			at, offset = start, startOffset
			start = place{}
		}
		if err := i.readFile(at, offset, send); err != nil {
			return err
		}
	}
	return nil
}

// readFile calls send with each portion of a file, from the line at on. offset is the offset of this line
// in bytes.
func (i *importer) readFile(at place, offset int64, send func(*portion) error) error {
	file, err := os.Open(filepath.Join(i.directory, at.File))
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	reader := bufio.NewReader(file)
	next := &portion{done: make(chan struct{})}
	for {
		line, err := reader.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(next.lines) > 0 && len(next.lines)+len(line) > maxRequest {
			next.next, next.offset = at, offset
			if err := send(next); err != nil {
				return err
			}
			next = &portion{done: make(chan struct{})}
		}
		if len(line) > 0 {
			next.lines = append(next.lines, line...)
			next.places = append(next.places, at)
			next.size += int64(len(line))
			offset += int64(len(line))
			at.Line++
		}
		if len(next.places) == portionLines || len(next.lines) >= portionSize || err != nil && len(next.places) > 0 {
			next.next, next.offset = at, offset
			if err := send(next); err != nil {
				return err
			}
			next = &portion{done: make(chan struct{})}
		}
		if err != nil {
			return nil
		}
	}
}

// readPlaces calls send with portions of the lines at places, which must be in the order of the files.
func (i *importer) readPlaces(places []place, send func(*portion) error) error {
	next := &portion{}
	for len(places) > 0 {
		name := places[0].File
		wanted := map[int]bool{}
		for len(places) > 0 && places[0].File == name {
			wanted[places[0].Line] = true
			places = places[1:]
		}
		file, err := os.Open(filepath.Join(i.directory, name))
		if err != nil {
			return err
		}
		reader := bufio.NewReader(file)
		for number := 1; len(wanted) > 0; number++ {
			line, err := reader.ReadBytes('\n')
			if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
				return errors.Join(fmt.Errorf("read line %d of %s again: %w", number, name, err), file.Close())
			}
			if !wanted[number] {
				continue
			}
			delete(wanted, number)
			if len(next.places) > 0 && len(next.lines)+len(line) >= maxRequest { // a line break may be added
				if err := send(next); err != nil {
					return errors.Join(err, file.Close())
				}
				next = &portion{}
			}
			next.lines = append(append(next.lines, bytes.TrimRight(line, "\n")...), '\n')
			next.places = append(next.places, place{File: name, Line: number})
			if len(next.places) == waitingLines {
				if err := send(next); err != nil {
					return errors.Join(err, file.Close())
				}
				next = &portion{}
			}
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	if len(next.places) == 0 {
		return nil
	}
	return send(next)
}
