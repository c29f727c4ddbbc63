package bulk

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/siteapi"
)

const (
	// NativeFormat is the format in the manifest of an export in the native format.
	NativeFormat = "paddock-native/1"
	// maxPasses is the maximum number of passes over a site. The first pass has all records, each
	// further pass has the records that changed since the previous pass began. If the last pass still
	// has changes, the export ends with a warning.
	maxPasses = 4
)

// NativeManifest is the manifest of an export in the native format.
type NativeManifest struct {
	Format string `json:"format"`
	Site   string `json:"site"`
	// From and Until are the times at which the export began and ended, in RFC 3339. Each record is
	// exported as it was at some time between From and Until. If no record changed in that time, the
	// export is a snapshot of the site.
	From  string `json:"from"`
	Until string `json:"until"`
	// SHA256 is the SHA-256 of all lines, in the order of the files. The digest does not depend on
	// the storage of the site, so exports of equal records, which do not change meanwhile, have equal
	// digests.
	SHA256   string         `json:"sha256"`
	Records  map[string]int `json:"records"`
	Versions int            `json:"versions"`
	Files    []NativeFile   `json:"files"`
}

// NativeFile is a file of an export in the native format.
type NativeFile struct {
	Name   string `json:"name"`
	Lines  int    `json:"lines"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// nativeProgress is the state of an interrupted export in the native format.
type nativeProgress struct {
	Manifest NativeManifest `json:"manifest"`
	// Pass, After and Since select the next page. Next is the Since of the next pass.
	Pass  int    `json:"pass"`
	After string `json:"after,omitempty"`
	Since string `json:"since,omitempty"`
	Next  string `json:"next,omitempty"`
	// New is the number of lines of this pass. Done reports whether only the manifest is missing.
	New  int  `json:"new"`
	Done bool `json:"done,omitempty"`
	// Digest is the state of the digest of all lines.
	Digest []byte `json:"digest"`
	// Recent has the first bytes of the SHA-256 of exported lines that a later pass can return again:
	// lines of records that changed after the beginning of the export, and lines that are parts of
	// records. If a later pass returns the same line, it is not written again.
	Recent map[string]bool `json:"recent"`
}

// nativeExporter exports a site in the native format.
type nativeExporter struct {
	site *siteapi.Client
	// write stores a file.
	write func(ctx context.Context, name string, content []byte) error
	// save stores the state after each page. It is nil if an interrupted export cannot be continued.
	save     func(nativeProgress) error
	progress *Progress
	state    nativeProgress
	digest   hash.Hash
	// began reports whether Begin of progress was called.
	began bool
}

func newNativeExporter(site *siteapi.Client, siteURL string, progress *Progress) *nativeExporter {
	return &nativeExporter{
		site: site, progress: progress, digest: sha256.New(),
		state: nativeProgress{
			Manifest: NativeManifest{Format: NativeFormat, Site: siteURL, Records: map[string]int{}, Files: []NativeFile{}},
			Recent:   map[string]bool{},
		},
	}
}

// StreamNative exports all records of a site in the native format. It calls write for each file,
// records.{number}.ndjson, and returns the manifest, which the caller stores after the files. It holds
// at most four pages of the site in memory at a time.
func StreamNative(ctx context.Context, site *siteapi.Client, siteURL string, progress *Progress, write func(ctx context.Context, name string, content []byte) error) (NativeManifest, error) {
	x := newNativeExporter(site, siteURL, progress)
	x.write = write
	return x.run(ctx)
}

// ExportNative exports all records of a site in the native format into files of a folder:
// records.{number}.ndjson, and manifest.json. ExportNative continues an interrupted export in the
// folder if that export is of the same site, which siteURL identifies. It returns an error if another process
// uses the folder.
func ExportNative(ctx context.Context, site *siteapi.Client, siteURL, directory string, progress *Progress) (NativeManifest, error) {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return NativeManifest{}, err
	}
	lock, err := Lock(directory)
	if err != nil {
		return NativeManifest{}, err
	}
	defer lock.Close()
	x := newNativeExporter(site, siteURL, progress)
	x.write = func(_ context.Context, name string, content []byte) error {
		return WriteFile(filepath.Join(directory, name), content)
	}
	x.save = func(state nativeProgress) error { return saveState(directory, exportState, state) }
	var interrupted nativeProgress
	found, err := loadState(directory, exportState, &interrupted)
	switch {
	case err != nil:
		return NativeManifest{}, err
	case found && (interrupted.Manifest.Format != NativeFormat || interrupted.Manifest.Site != siteURL):
		return NativeManifest{}, fmt.Errorf("the directory %s has an interrupted export of another site or in another format; repeat the command of that export, or choose another directory", directory)
	case found:
		x.state = interrupted
		if err := checkExported(directory, x.state.Manifest.Files); err != nil {
			return NativeManifest{}, err
		}
		// A page may have been written, or a part of it, without its state. The site may now return another page, or none.
		for _, name := range []string{x.nextFile(), x.nextFile() + ".part"} {
			if err := os.Remove(filepath.Join(directory, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return NativeManifest{}, err
			}
		}
		err = x.digest.(encoding.BinaryUnmarshaler).UnmarshalBinary(x.state.Digest)
	default:
		err = emptyFolder(directory, false)
	}
	if err != nil {
		return NativeManifest{}, err
	}
	m, err := x.run(ctx)
	if err != nil {
		return NativeManifest{}, err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = WriteFile(filepath.Join(directory, ManifestName), append(text, '\n'))
	}
	if err != nil {
		return NativeManifest{}, err
	}
	return m, os.Remove(filepath.Join(directory, exportState))
}

// checkExported returns an error if the folder of an interrupted export lacks one of its files, or has it
// with another size.
func checkExported(directory string, files []NativeFile) error {
	for _, file := range files {
		info, err := os.Stat(filepath.Join(directory, file.Name))
		if err == nil && info.Size() != int64(file.Bytes) {
			err = fmt.Errorf("it has %d bytes, and %d were written", info.Size(), file.Bytes)
		}
		if err != nil {
			return fmt.Errorf("the interrupted export cannot go on, because its file %s is missing or has changed; export into an empty directory: %w", file.Name, err)
		}
	}
	return nil
}

// run exports the passes that remain, and returns the manifest.
func (x *nativeExporter) run(ctx context.Context) (NativeManifest, error) {
	for !x.state.Done {
		if err := x.pass(ctx); err != nil {
			return NativeManifest{}, err
		}
	}
	x.progress.End()
	m := x.state.Manifest
	m.SHA256 = hex.EncodeToString(x.digest.Sum(nil))
	return m, nil
}

// pass exports the pages of a pass.
func (x *nativeExporter) pass(ctx context.Context) error {
	pages := make(chan siteapi.NativePage, 1) // further pages are requested while one is written
	group, ctx := errgroup.WithContext(ctx)
	after, since := x.state.After, x.state.Since
	group.Go(func() error {
		defer close(pages)
		reader := nativeReader{site: x.site, since: since, group: group}
		return reader.read(ctx, after, func(page siteapi.NativePage) error {
			select {
			case pages <- page:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	group.Go(func() error {
		for page := range pages {
			if err := x.add(ctx, page); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

// endPass begins the next pass. It ends the export instead if the pass was the last one, or if it was not
// the first one and had no new lines.
func (x *nativeExporter) endPass() {
	s := &x.state
	s.Manifest.Until = s.Next
	s.Done = s.Pass > 0 && s.New == 0 || s.Pass+1 == maxPasses
	if s.Done && s.New > 0 {
		x.progress.Say("The site changed during the whole export. Each record is as it was at some moment between %s and %s. Records may not be consistent with each other: export again when there are fewer writes.", s.Manifest.From, s.Manifest.Until)
	}
	s.Pass, s.Since, s.Next, s.New = s.Pass+1, s.Next, "", 0
}

// add writes a page to a file.
func (x *nativeExporter) add(ctx context.Context, page siteapi.NativePage) error {
	s := &x.state
	if s.Next == "" {
		s.Next = page.Time
	}
	if s.Manifest.From == "" {
		s.Manifest.From = page.Time
	}
	if !x.began {
		x.began = true
		x.progress.Begin(int64(x.lines()), int64(page.Records))
	}
	kept, lines := page.Lines[:0], 0 // kept overwrites page.Lines, but only bytes that have been read
	for line := range bytes.Lines(page.Lines) {
		part, isPart := partOf(line)
		// A pass has all parts of a record that has changed, also those that were exported before.
		if isPart || changedSince(line, cmp.Or(s.Since, s.Next)) {
			sum := sha256.Sum256(line)
			digest := hex.EncodeToString(sum[:8])
			if s.Recent[digest] {
				continue
			}
			s.Recent[digest] = true
		}
		kept, lines = append(kept, line...), lines+1
		if len(line) > maxRequest {
			x.progress.Say("Line %d of %s has %d bytes. No site can import it, because the maximum is %d.", lines, x.nextFile(), len(line), maxRequest)
		}
		if part <= 1 {
			s.Manifest.Records[typeOf(line)]++
		}
	}
	if lines > 0 {
		file := NativeFile{Name: x.nextFile(), Lines: lines, Bytes: len(kept)}
		digested := make(chan struct{})
		go func() { // while the file is written, which waits for the disk
			defer close(digested)
			sum := sha256.Sum256(kept)
			file.SHA256 = hex.EncodeToString(sum[:])
			x.digest.Write(kept)
		}()
		err := x.write(ctx, file.Name, kept)
		<-digested
		if err != nil {
			return err
		}
		s.Manifest.Files = append(s.Manifest.Files, file)
		s.Manifest.Versions += page.Versions
	}
	s.New += lines
	x.progress.Add(int64(lines), int64(lines))
	// One write of the state has both the page and the end of the pass.
	if s.After = page.Next; s.After == "" {
		x.endPass()
	}
	if x.save == nil {
		return nil
	}
	var err error
	if s.Digest, err = x.digest.(encoding.BinaryMarshaler).MarshalBinary(); err != nil {
		return err
	}
	return x.save(*s)
}

// nextFile returns the name of the file after those of the manifest.
func (x *nativeExporter) nextFile() string {
	return fmt.Sprintf("records.%05d.ndjson", len(x.state.Manifest.Files)+1)
}

func (x *nativeExporter) lines() (n int) {
	for _, file := range x.state.Manifest.Files {
		n += file.Lines
	}
	return n
}

// changedSince reports whether the last member "updated" in a line is the time since or later. Both times
// are in the layout of the native format. The result can be wrong, because the body of a version can have
// a member of the same name.
func changedSince(line []byte, since string) bool {
	const member = `"updated":"`
	// The last member is searched from the beginning: bytes.LastIndex takes longer by far.
	last, found := line, false
	for {
		_, rest, next := bytes.Cut(last, []byte(member))
		if !next {
			return found && string(last[:min(len(since), len(last))]) >= since
		}
		last, found = rest, true
	}
}

// partOf returns the number of the part if a line is a part of a record. isPart is false if the line is a
// whole record.
func partOf(line []byte) (part int, isPart bool) {
	head, _, _ := bytes.Cut(line, []byte(`,"versions":[`)) // not in an id, where a quote has a backslash
	_, number, isPart := bytes.Cut(head, []byte(`,"part":`))
	part, _ = strconv.Atoi(string(number)) // 0 if it is no part
	return part, isPart
}

// typeOf returns the type of the record in a line, or "?" if the line does not begin with a type.
func typeOf(line []byte) string {
	rest, ok := bytes.CutPrefix(line, []byte(`{"type":"`))
	if name, _, found := bytes.Cut(rest, []byte(`"`)); ok && found {
		return string(name)
	}
	return "?"
}

// checkNative returns the manifest of an export in the native format, or nil if a folder has none. It
// returns an error if the manifest is not JSON, or if a file differs from what the manifest says, or is
// missing.
func checkNative(directory string) (*NativeManifest, error) {
	text, err := os.ReadFile(filepath.Join(directory, ManifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var document json.RawMessage
	if err := json.Unmarshal(text, &document); err != nil { // it may have been of the native format
		return nil, fmt.Errorf("%s is damaged: %w; copy the file again, or repeat the export", ManifestName, err)
	}
	switch format := formatOf(text); format {
	case NativeFormat:
	case "":
		return nil, nil // of an export of another kind
	default:
		return nil, fmt.Errorf("%s has the format %q; this program reads %s", ManifestName, format, NativeFormat)
	}
	var m NativeManifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("read %s: %w", ManifestName, err)
	}
	for _, file := range m.Files {
		sum, err := DigestOf(filepath.Join(directory, filepath.Base(file.Name)))
		if err != nil {
			return nil, err
		}
		if sum != file.SHA256 {
			return nil, fmt.Errorf("%s differs from what was exported: the SHA-256 of the file is %s, and %s has %s; copy the file again, or repeat the export", file.Name, sum, ManifestName, file.SHA256)
		}
	}
	return &m, nil
}

// formatOf returns the format in a manifest, or "" if it has none.
func formatOf(manifest []byte) string {
	var head struct{ Format string }
	_ = json.Unmarshal(manifest, &head) // another program's manifest may be anything
	return head.Format
}

// DigestOf returns the SHA-256 of a file in hexadecimal.
func DigestOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
