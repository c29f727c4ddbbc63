package localcluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

const (
	shownLines = 20
	// shownBytes bounds what is read of a log to find its last lines.
	shownBytes = 64 << 10
)

// lastLines returns up to shownLines of the last lines that a log got since the given offset, for an
// error message.
func lastLines(path string, from int64) string {
	content, err := readEnd(path, from)
	if err != nil {
		return fmt.Sprintf("(its log cannot be read: %v)", err)
	}
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	lines = lines[max(0, len(lines)-shownLines):]
	return fmt.Sprintf("last lines of %s:\n%s", path, bytes.Join(lines, []byte("\n")))
}

func readEnd(path string, from int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(max(from, size-shownBytes), io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(file)
}

// rotateLog renames the log of the last start to <name>.previous. Logs therefore do not grow without
// limit, and the log before a crash remains.
func rotateLog(path string) error {
	if err := os.Rename(path, path+".previous"); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
