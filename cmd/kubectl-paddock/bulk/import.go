package bulk

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/siteapi"
)

const (
	importState = ".paddock-import.json"
	// ErrorsName is the name of the file with the errors of an import, in the folder of the import:
	// one JSON object on each line.
	ErrorsName = "import-errors.jsonl"
	// portionLines and portionSize are the maximum number of lines of a request, and the number of
	// bytes after which it has no further line.
	portionLines, portionSize = 200, 1 << 20
	// maxRequest is the maximum size in bytes of a request, as a site accepts it for an import in the
	// native format. A line that is larger is not sent, and fails.
	maxRequest = 64 << 20
	// maxUnsent is the maximum number of portions that are read and have not been sent completely, in addition to
	// the one that is read last: those that are queued to be recorded, the one that is recorded next, and the one
	// that is added to the queue.
	maxUnsent = workers + 2
	// saveInterval is the minimum time between two writes of the state, which has all waiting lines.
	saveInterval = time.Second
	// waitingLines is the maximum number of lines of a request that sends lines again which could not be
	// written before. The site writes lines of a request that refer to missing records in one
	// transaction, so these lines can refer to each other.
	waitingLines = 1000
	// referenceNotFound is the code of a line that refers to a record which does not exist.
	referenceNotFound = "reference_not_found"
	// claimConflict is the code of a line in the native format with a claim that another record holds.
	// That record may give up the claim in a later line.
	claimConflict = "claim_conflict"
	// partMissing is the code of a line in the native format that is a part of a record, if the previous
	// part of the record is not stored yet.
	partMissing = "part_missing"
	// tooLarge is the code of a line that is larger than maxRequest.
	tooLarge = "too_large"
)

// place is a line of a file. The first line is 1.
type place struct {
	File string `json:"file"`
	Line int    `json:"line"`
}

// importProgress is the state of an interrupted import: what is done, in the order of the files.
type importProgress struct {
	Site string `json:"site"`
	// Source identifies the files, because Next is a place in them.
	Source string `json:"source"`
	// Next is the next line to send. Offset is the offset of that line in its file, in bytes.
	Next   place `json:"next"`
	Offset int64 `json:"offset"`
	// Waiting are lines that could not be written yet, because of other lines.
	Waiting []waitingLine  `json:"waiting,omitempty"`
	Counts  map[string]int `json:"counts"`
}

// waitingLine is a line that could not be written yet, with its record as recordsOf returns it.
type waitingLine struct {
	place
	Record string `json:"record,omitempty"`
}

// problem is a line of the file with the errors.
type problem struct {
	place
	Code       string `json:"code"`
	Expression string `json:"expression,omitempty"`
	Message    string `json:"message"`
}

// importer imports the files of a folder.
type importer struct {
	send func(ctx context.Context, lines []byte, dryRun bool) (siteapi.ImportResult, error)
	// waitsFor are the codes of the errors of lines that are sent again at the end.
	waitsFor  []string
	native    bool
	directory string
	dryRun    bool
	progress  *Progress
	state     importProgress
	// waits has the records of the lines in state.Waiting.
	waits  map[string]bool
	saved  time.Time
	errors *os.File
}

// Import sends the files *.ndjson of a folder to a site. If the folder has the manifest of an export
// in the native format, only the files of the manifest are checked and sent, in that format. Import
// returns the numbers of lines by result, such as created or failed. Lines that fail are in the file
// import-errors.jsonl, which a dry run replaces too. siteURL identifies the site. If the folder has the
// state of an interrupted import into that site, Import continues it. It returns an error if the
// interrupted import is into another site or of other files. A dry run leaves no state, and returns an
// error if the folder has an interrupted import. Import also returns an error if the folder has an
// interrupted export, because some of its records are missing, or if another process uses the folder.
func Import(ctx context.Context, site *siteapi.Client, siteURL, directory string, dryRun bool, progress *Progress) (map[string]int, error) {
	lock, err := Lock(directory)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	i := &importer{waits: map[string]bool{}, send: site.Import, waitsFor: []string{referenceNotFound}, directory: directory, dryRun: dryRun, progress: progress, state: importProgress{Site: siteURL, Counts: map[string]int{}}}
	if _, err := os.Lstat(filepath.Join(directory, exportState)); err == nil {
		return nil, fmt.Errorf("the directory %s has an interrupted export, which lacks records; repeat the command of that export, or remove %s to import what is there", directory, filepath.Join(directory, exportState))
	}
	native, err := checkNative(directory)
	if err != nil {
		return nil, err
	}
	if native != nil {
		i.native, i.send, i.waitsFor = true, site.ImportNative, []string{claimConflict, partMissing}
	}
	files, total, err := importFiles(directory, native)
	if err != nil {
		return nil, err
	}
	i.state.Source = sourceOf(files, native)
	previous := importProgress{}
	found, err := loadState(directory, importState, &previous)
	switch {
	case err != nil:
		return nil, err
	case found && (dryRun || previous.Site != siteURL):
		return nil, fmt.Errorf("the directory has an interrupted import into %s; repeat the command of that import, or remove %s", previous.Site, filepath.Join(directory, importState))
	case found && previous.Source != i.state.Source:
		return nil, fmt.Errorf("the directory has an interrupted import of other files; bring those back, or remove %s to import these from the beginning", filepath.Join(directory, importState))
	case found:
		i.state = previous
	}
	for _, line := range i.state.Waiting {
		i.waits[line.Record] = true
	}
	if err := i.openErrors(files); err != nil {
		return nil, err
	}
	defer i.errors.Close()
	var skipped int64
	for _, file := range files {
		if file.name == i.state.Next.File {
			skipped += i.state.Offset
			break
		}
		if i.state.Next.File != "" {
			skipped += file.size
		}
	}
	progress.Begin(skipped, total)
	if err := i.sendFiles(ctx, files); err != nil {
		return nil, err
	}
	if err := i.sendWaiting(ctx); err != nil {
		return nil, err
	}
	progress.End()
	if !dryRun {
		if err := os.Remove(filepath.Join(directory, importState)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	return i.state.Counts, nil
}

// openErrors opens the file with the errors. It keeps the errors of an interrupted import that continues,
// without those of lines that are sent again, and removes all errors of an earlier import.
func (i *importer) openErrors(files []importedFile) error {
	path := filepath.Join(i.directory, ErrorsName)
	var kept []byte
	if text, err := os.ReadFile(path); err == nil && i.state.Next.File != "" {
		order := func(name string) int {
			return slices.IndexFunc(files, func(file importedFile) bool { return file.name == name })
		}
		waiting := make(map[place]bool, len(i.state.Waiting))
		for _, line := range i.state.Waiting {
			waiting[line.place] = true
		}
		for line := range bytes.Lines(text) {
			var p problem
			if json.Unmarshal(line, &p) != nil {
				continue // the line was not written completely
			}
			at := cmp.Or(cmp.Compare(order(p.File), order(i.state.Next.File)), cmp.Compare(p.Line, i.state.Next.Line))
			if at < 0 && !waiting[p.place] {
				kept = append(kept, line...)
			}
		}
	}
	if err := WriteFile(path, kept); err != nil {
		return err
	}
	var err error
	i.errors, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o600)
	return err
}

// record adds the result of a portion to the state and the errors. If wait is true, lines with an error of
// a code in waitsFor are sent again later, unless a later line of the same record has been written.
func (i *importer) record(p *portion, wait bool) error {
	failed, waits := map[int]bool{}, map[int]bool{} // by the number of the line in the request
	var text []byte
	for _, e := range p.result.Errors {
		if e.Line < 1 || e.Line > len(p.places) {
			return fmt.Errorf("the response of the site has an error in line %d, but the request had %d lines", e.Line, len(p.places))
		}
		failed[e.Line] = true
		if wait && slices.Contains(i.waitsFor, e.Code) {
			waits[e.Line] = true
			continue
		}
		line, err := json.Marshal(problem{place: p.places[e.Line-1], Code: e.Code, Expression: e.Expression, Message: e.Message})
		if err != nil {
			return err
		}
		text = append(append(text, line...), '\n')
	}
	for name, count := range p.result.Counts {
		i.state.Counts[name] += count
	}
	for n, at := range p.places {
		record := ""
		if p.records != nil {
			record = p.records[n]
		}
		switch {
		case waits[n+1]:
			i.state.Waiting = append(i.state.Waiting, waitingLine{at, record})
			i.waits[record] = true
			i.state.Counts["failed"]--
		case !failed[n+1] && record != "" && i.waits[record]:
			i.supersede(record)
		}
	}
	if _, err := i.errors.Write(text); err != nil {
		return err
	}
	if p.next.File != "" {
		i.state.Next, i.state.Offset = p.next, p.offset
	}
	return nil
}

// supersede drops the waiting lines of a record of which a later line has been written, and counts them as
// unchanged: if they were sent now, they would replace the later line.
func (i *importer) supersede(record string) {
	before := len(i.state.Waiting)
	i.state.Waiting = slices.DeleteFunc(i.state.Waiting, func(line waitingLine) bool { return line.Record == record })
	i.state.Counts["unchanged"] += before - len(i.state.Waiting)
	delete(i.waits, record)
}

// save stores the state if saveInterval has passed, except in a dry run. It is called after record, so that
// the file with the errors has all errors up to the state. An import that continues sends the lines after
// the state again.
func (i *importer) save() error {
	if i.dryRun || time.Since(i.saved) < saveInterval {
		return nil
	}
	i.saved = time.Now()
	return saveState(i.directory, importState, i.state)
}
