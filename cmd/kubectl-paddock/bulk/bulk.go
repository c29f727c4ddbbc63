// Package bulk moves many records between a site and the files of a folder.
package bulk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	// workers is the number of concurrent requests of an export or an import.
	workers = 4
	// lockName is the name of the file that Lock locks. The file remains, because another process may
	// already have opened it when this one ends.
	lockName = ".paddock-lock"
)

// errLocked means that another process has a lock.
var errLocked = errors.New("another process has the lock")

// Lock reserves a folder for a command of this process until the result is closed or the process ends, also
// by SIGKILL. Two commands would replace each other's state and files. Lock returns an error if another
// command has reserved the folder.
func Lock(directory string) (io.Closer, error) {
	file, err := openLock(filepath.Join(directory, lockName))
	switch {
	case errors.Is(err, errLocked):
		return nil, fmt.Errorf("the directory %s is in use by another process of this program; wait until that process ends, or choose another directory", directory)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the directory %s does not exist", directory)
	}
	return file, err
}

// WriteFile replaces a file. Readers, and a process that starts after a crash, see the old or the new
// content.
func WriteFile(path string, content []byte) error {
	temporary := path + ".part"
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync() // a file with its final name must be complete after a power failure
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// loadState reads the state of an interrupted command into state. It returns false if there is none.
func loadState(directory, name string, state any) (bool, error) {
	text, err := os.ReadFile(filepath.Join(directory, name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, state)
	}
	if err != nil {
		return false, fmt.Errorf("read %s, the state of an interrupted command: %w", filepath.Join(directory, name), err)
	}
	return true, nil
}

func saveState(directory, name string, state any) error {
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	return WriteFile(filepath.Join(directory, name), text)
}
