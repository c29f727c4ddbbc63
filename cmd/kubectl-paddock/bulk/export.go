package bulk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/siteapi"
)

const (
	exportState = ".paddock-export.json"
	// ManifestName is the name of the file with the manifest, in the folder of an export. The
	// manifest is written after all other files.
	ManifestName = "manifest.json"
)

// exportedFile matches the names of the files of an export in FHIR, and not those of the native format.
var exportedFile = regexp.MustCompile(`^[A-Z][A-Za-z]+\.[0-9]{5,}\.ndjson$`)

// partialFile matches the names of the files of an export in any format while WriteFile writes them.
var partialFile = regexp.MustCompile(`^([A-Z][A-Za-z]+|records)\.[0-9]{5,}\.ndjson\.part$`)

// exportProgress is the state of an interrupted export. Files with their final names are complete.
type exportProgress struct {
	ID    string `json:"id"`
	Site  string `json:"site"`
	Query string `json:"query"`
}

// Exported is the result of an export. Records has the number of exported records by type.
type Exported struct {
	TransactionTime string         `json:"transactionTime"`
	Records         map[string]int `json:"records"`
	Files           int            `json:"files"`
}

// Export exports records of a site into files of a folder: {type}.{number}.ndjson, and manifest.json.
// Export continues an interrupted export in the folder, or starts it again if it has expired. Export returns
// an error if the folder has a complete export, or an interrupted one of another site than that of siteURL,
// in another format or with another query, or if another process uses the folder.
func Export(ctx context.Context, site *siteapi.Client, siteURL, directory string, query url.Values, progress *Progress) (Exported, error) {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return Exported{}, err
	}
	lock, err := Lock(directory)
	if err != nil {
		return Exported{}, err
	}
	defer lock.Close()
	state := exportProgress{}
	found, err := loadState(directory, exportState, &state)
	switch {
	case err != nil:
		return Exported{}, err
	case found && (state.ID == "" || state.Site != siteURL || state.Query != query.Encode()):
		return Exported{}, fmt.Errorf("the directory %s has an interrupted export of another site, in another format, or with other types or another time; "+
			"repeat the command of that export, or choose another directory", directory)
	}
	manifest, err := resumed(ctx, site, state, progress)
	if err != nil {
		return Exported{}, err
	}
	if manifest == nil {
		if err := emptyFolder(directory, state.ID != ""); err != nil {
			return Exported{}, err
		}
		state = exportProgress{Site: siteURL, Query: query.Encode()}
		if state.ID, err = site.StartExport(ctx, query); err != nil {
			return Exported{}, err
		}
		if err := saveState(directory, exportState, state); err != nil {
			return Exported{}, err
		}
		if manifest, err = await(ctx, site, state.ID, progress); err != nil {
			return Exported{}, err
		}
	}
	done, err := download(ctx, site, directory, state.ID, manifest, progress)
	if err != nil {
		return Exported{}, err
	}
	if err := saveState(directory, ManifestName, done); err != nil {
		return Exported{}, err
	}
	if err := site.EndExport(ctx, state.ID); err != nil && !isAbsent(err) {
		progress.Say("The export is complete, but it could not be deleted at the site: %v", err)
	}
	return done, os.Remove(filepath.Join(directory, exportState))
}

// resumed returns the manifest of an interrupted export, or nil if there is none or it no longer exists at
// the site.
func resumed(ctx context.Context, site *siteapi.Client, state exportProgress, progress *Progress) (*siteapi.Manifest, error) {
	if state.ID == "" {
		return nil, nil
	}
	manifest, err := await(ctx, site, state.ID, progress)
	if isAbsent(err) {
		progress.Say("The site no longer has the interrupted export. The export starts again.")
		return nil, nil
	}
	return manifest, err
}

// emptyFolder returns an error if the folder has a manifest or files that exportedFile matches. If
// interrupted is true, it removes these files instead. It removes the files that partialFile matches, unless
// it returns an error.
func emptyFolder(directory string, interrupted bool) error {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return err
	}
	var stale []string
	for _, entry := range entries {
		name := entry.Name()
		exported := exportedFile.MatchString(name) || name == ManifestName
		if exported && !interrupted {
			return fmt.Errorf("the directory %s already has the file %s; choose an empty directory", directory, name)
		}
		if exported || partialFile.MatchString(name) {
			stale = append(stale, name)
		}
	}
	for _, name := range stale {
		if err := os.Remove(filepath.Join(directory, name)); err != nil {
			return err
		}
	}
	return nil
}

func isAbsent(err error) bool {
	var answered *siteapi.Error
	return errors.As(err, &answered) && answered.Status == http.StatusNotFound
}

// await waits until an export is planned and returns its manifest.
func await(ctx context.Context, site *siteapi.Client, id string, progress *Progress) (*siteapi.Manifest, error) {
	for {
		status, wait, err := site.ExportStatus(ctx, id)
		if err != nil || status.Manifest != nil {
			return status.Manifest, err
		}
		progress.Say("The site prepares the export: %s", status.Progress)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C:
		}
	}
}

// download gets the files of a manifest that the folder does not have, and counts the records in all of
// its files.
func download(ctx context.Context, site *siteapi.Client, directory, id string, manifest *siteapi.Manifest, progress *Progress) (Exported, error) {
	done := Exported{TransactionTime: manifest.TransactionTime, Records: map[string]int{}, Files: len(manifest.Output)}
	numbers := map[string]int{}
	counts := make([]int, len(manifest.Output))
	progress.Begin(0, int64(len(manifest.Output)))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for i, file := range manifest.Output {
		numbers[file.Type]++
		path := filepath.Join(directory, fmt.Sprintf("%s.%05d.ndjson", filepath.Base(file.Type), numbers[file.Type]))
		group.Go(func() error {
			content, err := os.ReadFile(path)
			if errors.Is(err, os.ErrNotExist) {
				if content, err = site.ExportFile(ctx, id, file); err == nil {
					err = WriteFile(path, content)
				}
			}
			counts[i] = bytes.Count(content, []byte("\n"))
			progress.Add(1, int64(counts[i]))
			return err
		})
	}
	err := group.Wait()
	progress.End()
	for i, file := range manifest.Output {
		done.Records[file.Type] += counts[i]
	}
	return done, err
}
