// Package bundle makes the archive of a support report: it selects the parts of objects that have
// neither records nor secrets.
package bundle

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"time"

	"sigs.k8s.io/yaml"
)

// File is a file of a support bundle. Content is encoded as YAML.
type File struct {
	Name    string
	Content any
}

// Write writes a support bundle: files as a tar archive, compressed by gzip, in a folder of the
// archive. at is the modification time of the files. Redact is applied to every file.
func Write(out io.Writer, folder string, at time.Time, files []File) error {
	compressed := gzip.NewWriter(out)
	archive := tar.NewWriter(compressed)
	for _, file := range files {
		text, err := yaml.Marshal(file.Content)
		if err != nil {
			return fmt.Errorf("encode %s: %w", file.Name, err)
		}
		text = []byte(Redact(string(text)))
		header := &tar.Header{Typeflag: tar.TypeReg, Name: folder + "/" + file.Name, Mode: 0o600, Size: int64(len(text)), ModTime: at.UTC().Truncate(time.Second)}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("write %s: %w", file.Name, err)
		}
		if _, err := archive.Write(text); err != nil {
			return fmt.Errorf("write %s: %w", file.Name, err)
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}
