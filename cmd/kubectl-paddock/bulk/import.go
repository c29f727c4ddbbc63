package bulk

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	// maxUnsent is the maximum number of portions that are read and have not been sent completely: those that
	// are queued to be recorded, the one that is recorded next, and the one that is added to the queue.
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

// typeOrder is the order in which types are imported: a type comes after the types to which its records
// usually refer. Other types are imported last.
var typeOrder = []string{
	"Organization", "Endpoint", "Location", "HealthcareService", "Practitioner", "PractitionerRole", "OrganizationAffiliation",
	"DeviceDefinition", "Patient", "RelatedPerson", "Person", "Device", "DeviceMetric", "Group",
}

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
	Waiting []place        `json:"waiting,omitempty"`
	Counts  map[string]int `json:"counts"`
}

// problem is a line of the file with the errors.
type problem struct {
	place
	Code       string `json:"code"`
	Expression string `json:"expression,omitempty"`
	Message    string `json:"message"`
}

// portion are lines that one request sends.
type portion struct {
	lines  []byte
	places []place
	// records has the records in lines, see recordsOf. It is nil in the native format.
	records map[string]bool
	// next and offset are importProgress.Next and Offset after the portion.
	next   place
	offset int64
	size   int64
	result siteapi.ImportResult
	err    error
	done   chan struct{}
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
	saved     time.Time
	errors    *os.File
}

// Import sends the files *.ndjson of a folder to a site. If the folder has the manifest of an export
// in the native format, only the files of the manifest are checked and sent, in that format. Import
// returns the numbers of lines by result, such as created or failed. Lines that fail are in the file
// import-errors.jsonl, which a dry run replaces too. siteURL identifies the site. If the folder has the
// state of an interrupted import into that site, Import continues it. It returns an error if the
// interrupted import is into another site or of other files. A dry run leaves no state, and returns an
// error if the folder has an interrupted import. Import also returns an error if the folder has an
// interrupted export, because some of its records are missing.
func Import(ctx context.Context, site *siteapi.Client, siteURL, directory string, dryRun bool, progress *Progress) (map[string]int, error) {
	i := &importer{send: site.Import, waitsFor: []string{referenceNotFound}, directory: directory, dryRun: dryRun, progress: progress, state: importProgress{Site: siteURL, Counts: map[string]int{}}}
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
		for _, at := range i.state.Waiting {
			waiting[at] = true
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

// sendFiles sends the lines of all files from state.Next on. Portions are sent concurrently, and
// recorded in the order of the files.
func (i *importer) sendFiles(ctx context.Context, files []importedFile) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sent := make(chan *portion, workers) // in the order of the files
	slots := make(chan struct{}, workers)
	read := make(chan error, 1)
	go func() {
		defer close(sent)
		stored := make(chan struct{}) // closed when the portion before has been sent
		close(stored)
		var recent []*portion // all portions that have not been sent are among these
		read <- i.readFiles(files, func(p *portion) error {
			before, earlier := stored, recent
			stored = p.done
			if !i.native {
				p.records = recordsOf(p.lines)
			}
			recent = append(slices.Clone(recent[max(0, len(recent)-maxUnsent):]), p)
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			go func() {
				defer func() { <-slots }()
				defer close(p.done)
				if part, _ := partOf(p.lines); part > 1 {
					<-before // the portion before usually has the previous part
				}
				for _, q := range earlier {
					if q.sharesRecord(p) {
						<-q.done // the last line of a record must be written last
					}
				}
				p.result, p.err = i.sendPortion(ctx, p)
				p.lines = nil // later portions refer to p
			}()
			select {
			case sent <- p:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	for p := range sent {
		<-p.done
		if p.err != nil {
			return p.err
		}
		if err := errors.Join(i.record(p, true), i.save()); err != nil {
			return err
		}
		i.progress.Add(p.size, int64(len(p.places)))
	}
	return <-read
}

// sharesRecord reports whether two portions have lines of the same record.
func (p *portion) sharesRecord(other *portion) bool {
	for record := range p.records {
		if other.records[record] {
			return true
		}
	}
	return false
}

// recordsOf returns the records in lines as {type}/{id}, in lower case, because the case of an id does not
// distinguish records. It leaves out lines that are not a resource with an id, which a site refuses.
func recordsOf(lines []byte) map[string]bool {
	records := map[string]bool{}
	for line := range bytes.Lines(lines) {
		var resource struct{ ResourceType, ID string }
		if json.Unmarshal(line, &resource) == nil && resource.ID != "" {
			records[strings.ToLower(resource.ResourceType+"/"+resource.ID)] = true
		}
	}
	return records
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

// sendPortion sends a portion. A line that is too large is not sent, and fails.
func (i *importer) sendPortion(ctx context.Context, p *portion) (siteapi.ImportResult, error) {
	if len(p.lines) <= maxRequest {
		return i.send(ctx, p.lines, i.dryRun)
	}
	message := fmt.Sprintf("the line has %d bytes; a site accepts at most %d", len(p.lines), maxRequest)
	return siteapi.ImportResult{Counts: map[string]int{"failed": 1}, Errors: []siteapi.LineError{{Line: 1, Code: tooLarge, Message: message}}}, nil
}

// record adds the result of a portion to the state and the errors. If wait is true, lines with an error of
// a code in waitsFor are sent again later.
func (i *importer) record(p *portion, wait bool) error {
	failed := map[int]bool{}
	var text []byte
	for _, e := range p.result.Errors {
		if e.Line < 1 || e.Line > len(p.places) {
			return fmt.Errorf("the response of the site has an error in line %d, but the request had %d lines", e.Line, len(p.places))
		}
		at := p.places[e.Line-1]
		if wait && slices.Contains(i.waitsFor, e.Code) {
			if !failed[e.Line] {
				i.state.Waiting = append(i.state.Waiting, at)
				p.result.Counts["failed"]--
			}
			failed[e.Line] = true
			continue
		}
		line, err := json.Marshal(problem{place: at, Code: e.Code, Expression: e.Expression, Message: e.Message})
		if err != nil {
			return err
		}
		text = append(append(text, line...), '\n')
	}
	for name, count := range p.result.Counts {
		i.state.Counts[name] += count
	}
	if _, err := i.errors.Write(text); err != nil {
		return err
	}
	if p.next.File != "" {
		i.state.Next, i.state.Offset = p.next, p.offset
	}
	return nil
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

// sendWaiting repeatedly sends the lines that could not be written because of other lines. When a
// repetition writes none of them, those that remain are recorded as failed.
func (i *importer) sendWaiting(ctx context.Context) error {
	for len(i.state.Waiting) > 0 {
		places := i.state.Waiting
		var sent []*portion
		missing := map[place]bool{}
		err := i.readPlaces(places, func(p *portion) error {
			if p.result, p.err = i.sendPortion(ctx, p); p.err != nil {
				return p.err
			}
			p.lines = nil // record does not need them, and together they can be as large as the files
			for _, e := range p.result.Errors {
				if slices.Contains(i.waitsFor, e.Code) && e.Line >= 1 && e.Line <= len(p.places) {
					missing[p.places[e.Line-1]] = true
				}
			}
			sent = append(sent, p)
			return nil
		})
		if err != nil {
			return err
		}
		i.state.Waiting = nil
		for _, p := range sent {
			if err := i.record(p, len(missing) < len(places)); err != nil {
				return err
			}
		}
		if err := i.save(); err != nil {
			return err
		}
	}
	return nil
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
