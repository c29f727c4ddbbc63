package fhir

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/web"
)

const (
	// importTimeout is how long an import may take. An import that takes longer is answered with 503.
	importTimeout = 10 * time.Minute
	// importIdle is how long the client may take to send the lines of one batch. The client must
	// receive the response at most requestTimeout after this time.
	importIdle = time.Minute
	// maxImportLines is the maximum number of lines of an import. Further lines are not read, and the
	// response says so.
	maxImportLines = 100_000
	// maxImportErrors is the maximum number of lines whose errors are in the response. Further failed
	// lines are only counted.
	maxImportErrors  = 1000
	codeTooManyLines = "too_many_lines"
)

// importTypes are the media types of NDJSON.
var importTypes = []string{ndjson, "application/ndjson", "application/x-ndjson"}

// importLines serves POST …/$import: it writes the resource on each line of the body as PUT with its
// id does, and responds with Parameters: how many records were created, updated, unchanged and
// failed, and the errors by line. With dryRun=true it writes nothing and counts the valid and the
// failed lines. The import goes on after a line that fails. An error that concerns no line, such as a
// timeout, ends the import when a part of it may be written already. The client can then send the
// whole import again, because a line whose record has the same content changes nothing.
func (h *handler) importLines(w http.ResponseWriter, r *request) error {
	if r.inBundle {
		return &operationUnknownError{name: "$import", inBundle: true}
	}
	if err := r.requireAnyRight(); err != nil {
		return err
	}
	if err := rejectUnknownParameters(r.query, "dryRun"); err != nil {
		return err
	}
	dryRun := r.query.Get("dryRun")
	if dryRun != "" && dryRun != "true" && dryRun != "false" {
		return search.Errors{{Parameter: "dryRun", Problem: r4.Quote(dryRun) + " is not a boolean; give true or false"}}
	}
	if _, _, err := web.ParseContentType(r.Header, importTypes...); err != nil {
		return err
	}
	r.recordParameters(nil)
	i := &importer{request: r, dryRun: dryRun == "true", counts: map[string]int{}, rights: map[string]bool{}}
	lines, err := newLineReader(r.Request, r.maxBodySize())
	if err != nil {
		return err
	}
	if err := i.readAll(w, lines); err != nil {
		return err
	}
	body, err := json.Marshal(i.response())
	if err != nil {
		return err
	}
	return r.respond(w, http.StatusOK, body)
}

// readAll imports all lines.
func (i *importer) readAll(w http.ResponseWriter, lines *lineReader) error {
	control := http.NewResponseController(w)
	for number := 1; ; number++ {
		// A new batch has at most the line that did not fit in the last batch. It gets deadlines of its
		// own, because those of the server are for whole requests.
		if len(i.batch) <= 1 {
			deadline := time.Now().Add(importIdle)
			_ = control.SetReadDeadline(deadline)                      // not supported behind kube-apiserver
			_ = control.SetWriteDeadline(deadline.Add(requestTimeout)) // likewise
		}
		line, err := lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return i.finish()
		case i.Context().Err() != nil:
			return i.Context().Err()
		case number > maxImportLines:
			i.fail(number, &invalidError{code: codeTooManyLines, diagnostics: fmt.Sprintf("an import has at most %d lines; send this and the following lines in another request", maxImportLines)})
			return i.finish()
		case errors.As(err, new(*web.TooLargeError)):
			i.fail(number, err)
			continue
		case err != nil:
			return &web.BrokenBodyError{Cause: err}
		case len(line) == 0:
			continue
		}
		if err := i.add(number, line); err != nil {
			return err
		}
	}
}

// lineReader reads the lines of a body.
type lineReader struct {
	reader *bufio.Reader
	max    int64
}

// newLineReader returns a reader of the lines of a body, decompressed. limit is the maximum size of a
// line in bytes, without its line break. Errors: *web.EncodingError, *web.BrokenBodyError.
func newLineReader(r *http.Request, limit int64) (*lineReader, error) {
	var source io.Reader = r.Body
	switch encoding := r.Header.Get("Content-Encoding"); strings.ToLower(encoding) {
	case "", "identity":
	case "gzip":
		inflate, err := gzip.NewReader(source)
		if err != nil {
			return nil, &web.BrokenBodyError{Cause: err}
		}
		source = inflate
	default:
		return nil, &web.EncodingError{Encoding: encoding}
	}
	return &lineReader{reader: bufio.NewReaderSize(source, 64<<10), max: limit}, nil
}

// next returns the next line without white space around it. The caller owns it. Errors:
// *web.TooLargeError for a line that is too long, after which the next line can be read, io.EOF, and
// those of the body.
func (l *lineReader) next() ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := l.reader.ReadSlice('\n')
		if !tooLong {
			line = append(line, part...)
		}
		if int64(len(bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")))) > l.max {
			line, tooLong = nil, true
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || len(line) == 0 && !tooLong):
			return nil, err
		case tooLong:
			return nil, &web.TooLargeError{Limit: l.max, Line: true}
		}
		return bytes.TrimSpace(line), nil
	}
}

// importError is a failed line of the response.
type importError struct {
	line   int
	issues []r4.Issue
}

// parameter is a parameter of a Parameters resource.
type parameter struct {
	Name         string          `json:"name"`
	ValueInteger *int            `json:"valueInteger,omitempty"`
	Resource     json.RawMessage `json:"resource,omitempty"`
	Part         []parameter     `json:"part,omitempty"`
}

// response returns the Parameters resource with the result.
func (i *importer) response() any {
	var all []parameter
	names := []string{importCreated, importUpdated, importUnchanged, importFailed}
	if i.dryRun {
		names = []string{importValid, importFailed}
	}
	for _, name := range names {
		count := i.counts[name]
		all = append(all, parameter{Name: name, ValueInteger: &count})
	}
	for _, failed := range i.errors {
		outcome, _ := appendOutcome(nil, i.errorPages, failed.issues) // strings and numbers can always be encoded
		all = append(all, parameter{Name: "error", Part: []parameter{{Name: "line", ValueInteger: &failed.line}, {Name: "outcome", Resource: outcome}}})
	}
	return struct {
		ResourceType string      `json:"resourceType"`
		Parameter    []parameter `json:"parameter"`
	}{"Parameters", all}
}
