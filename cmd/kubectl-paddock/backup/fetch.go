package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/bulk"
)

// Fetch downloads the newest complete backup of a site into a directory, which it creates if necessary.
// If the address of config is that of a single backup, Fetch downloads that backup. Files that the
// directory has already are not downloaded again, so an interrupted Fetch can be repeated. Fetch fails
// if the directory has another export, such as a backup that was the newest before. The error then has
// the address of that backup, if it still exists. Fetch also fails if another process uses the directory.
// It compares each file with its digest. It returns the name of the backup.
func Fetch(ctx context.Context, config Config, directory string, progress *bulk.Progress) (string, error) {
	f, err := open(config)
	if err != nil {
		return "", err
	}
	name, text, err := find(ctx, f)
	if err != nil {
		return "", err
	}
	var manifest Manifest
	if err := json.Unmarshal(text, &manifest); err != nil {
		return "", fmt.Errorf("read the manifest of the backup %s: %w", name, err)
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return "", err
	}
	lock, err := bulk.Lock(directory)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := checkDirectory(ctx, f, directory, text); err != nil {
		return "", err
	}
	// The manifest comes first here, so that a directory with another export is recognized.
	if err := bulk.WriteFile(filepath.Join(directory, bulk.ManifestName), text); err != nil {
		return "", err
	}
	files := slices.Concat(manifest.Files, manifest.Objects)
	var total int64
	for _, file := range files {
		total += int64(file.Bytes)
	}
	progress.Begin(0, total)
	for _, file := range files {
		if file.Name != filepath.Base(file.Name) || !filepath.IsLocal(file.Name) {
			return "", fmt.Errorf("the manifest of the backup %s has a file with the name %q; a name must not contain a path, so restore another backup", name, file.Name)
		}
		if err := fetchFile(ctx, f, name, directory, file); err != nil {
			return "", err
		}
		progress.Add(int64(file.Bytes), int64(file.Lines))
	}
	progress.End()
	return name, nil
}

// find returns the name of the newest complete backup, and its manifest. If f is the folder of a single
// backup, find returns that backup, and changes f to the folder that contains it.
func find(ctx context.Context, f *folder) (string, []byte, error) {
	if parent, last := path.Split(f.path); parent != "" {
		if _, ok := timeOf(last); ok {
			f.path = path.Clean(parent)
			text, err := read(ctx, f, last+"/"+bulk.ManifestName)
			return last, text, err
		}
	}
	names, err := backups(ctx, f)
	if err != nil {
		return "", nil, err
	}
	for _, name := range names {
		text, err := read(ctx, f, name+"/"+bulk.ManifestName)
		if errors.Is(err, fs.ErrNotExist) {
			continue // incomplete
		}
		return name, text, err
	}
	return "", nil, fmt.Errorf("s3://%s/%s has no complete backup; correct the address, or wait until a backup is complete", f.bucket, f.path)
}

func read(ctx context.Context, f *folder, name string) ([]byte, error) {
	object, err := f.get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer object.Close()
	text, err := io.ReadAll(object)
	if err != nil {
		return nil, f.readError(name, err)
	}
	return text, nil
}

// checkDirectory returns an error if a directory has the manifest of another export. If that is one of the
// other backups in f, the error has its address.
func checkDirectory(ctx context.Context, f *folder, directory string, manifest []byte) error {
	present, err := os.ReadFile(filepath.Join(directory, bulk.ManifestName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case bytes.Equal(present, manifest):
		return nil
	}
	names, _ := backups(ctx, f) // without the right to list them, the error has no address
	for _, name := range names {
		if text, err := read(ctx, f, name+"/"+bulk.ManifestName); err == nil && bytes.Equal(present, text) {
			return fmt.Errorf("the directory %s has another backup; to restore that one, give --from s3://%s/%s, or choose an empty directory", directory, f.bucket, f.key(name))
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("the directory %s has another export; choose an empty directory", directory)
}

// fetchFile downloads a file of a backup, unless the directory has it with the digest of the manifest. It
// returns an error if the downloaded file has another digest.
func fetchFile(ctx context.Context, f *folder, name, directory string, file bulk.NativeFile) error {
	at := filepath.Join(directory, file.Name)
	if sum, err := bulk.DigestOf(at); err == nil && sum == file.SHA256 {
		return nil
	}
	object, err := f.get(ctx, name+"/"+file.Name)
	if err != nil {
		return err
	}
	defer object.Close()
	out, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, sum), object)
	if local := new(fs.PathError); err != nil && !errors.As(err, &local) { // an error of out has its path
		err = f.readError(name+"/"+file.Name, err)
	}
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != file.SHA256 {
		return fmt.Errorf("s3://%s/%s/%s differs from what was saved: its SHA-256 is %s, and the manifest has %s; restore another backup",
			f.bucket, f.key(name), file.Name, got, file.SHA256)
	}
	return nil
}
