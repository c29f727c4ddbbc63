package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

const (
	// maxImport is the maximum size of a request in bytes, and so of a line.
	maxImport = 64 << 20
	// maxImports is the maximum number of concurrent imports of maxImport bytes each. More imports can
	// run if they are smaller. The imports of one Site may use at most three quarters of the limit. An
	// import beyond the limit is answered with 429. An import needs about four times its size, so
	// maxImports imports use half of the 2 GiB that the chart gives to an API server.
	maxImports = 4
	// maxLines is the maximum number of lines of a request, empty ones included. A request with more is
	// answered with 400.
	maxLines = 2000
)

// The codes of lines that fail, in addition to those of bodies and of package web.
const (
	codeUnparseable = "unparseable_line"
	codeInvalid     = "invalid_record"
	codeDiverged    = "diverged"
	codeIncomplete  = "part_missing"
)

// lineError is why a line failed. The first line is 1.
type lineError struct {
	Line       int    `json:"line"`
	Code       string `json:"code"`
	Expression string `json:"expression,omitempty"`
	Message    string `json:"message"`
}

// result is the response to an import: numbers of lines by outcome, and the errors. In a dry run,
// Valid has the number of valid lines, and Created, Updated and Unchanged are 0. DroppedVersions is
// the number of superseded versions that the storage does not keep (store.Restored.Dropped).
type result struct {
	Valid           *int        `json:"valid,omitempty"`
	Created         int         `json:"created"`
	Updated         int         `json:"updated"`
	Unchanged       int         `json:"unchanged"`
	Failed          int         `json:"failed"`
	DroppedVersions int         `json:"droppedVersions"`
	Errors          []lineError `json:"errors"`
}

func (r *result) fail(errs ...lineError) {
	r.Failed++
	r.Errors = append(r.Errors, errs...)
}

// importLines serves POST …/native: it validates each line, and restores the records that are valid.
// With dryRun=true it restores none. A request that is sent again changes nothing.
func (h *handler) importLines(w http.ResponseWriter, r *http.Request, site Site, _ access.Caller) error {
	dryRun, err := dryRunOf(r)
	if err != nil {
		return err
	}
	if _, _, err := web.ParseContentType(r.Header, ndjson, "application/ndjson", "application/fhir+ndjson"); err != nil {
		return err
	}
	leave, err := h.imports.EnterWeighted(web.PathParameter(r, "siteId"), weightOf(r))
	if err != nil {
		return err
	}
	defer leave()
	raw, err := web.ReadBody(w, r, maxImport)
	if err != nil {
		return err
	}
	done := result{Errors: []lineError{}}
	var records []store.Dumped
	var numbers []int
	number := 0
	for text := range bytes.Lines(raw) {
		if number++; number > maxLines {
			return &invalidError{"the body", fmt.Sprintf("has more than %d lines; send them in several requests", maxLines)}
		}
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		record, errs := h.check(text)
		if len(errs) > 0 {
			for i := range errs {
				errs[i].Line = number
			}
			done.fail(errs...)
			continue
		}
		records, numbers = append(records, record), append(numbers, number)
	}
	if dryRun {
		valid := len(records)
		done.Valid = &valid
	} else if err := restore(r, site, records, numbers, &done); err != nil {
		return err
	}
	body, err := json.Marshal(done)
	if err != nil {
		return err
	}
	web.Respond(w, r, http.StatusOK, "application/json", body)
	return nil
}

// weightOf returns the size of the body of a request in MiB, rounded up. If the size is unknown, for
// example because the body is compressed, the result is that of maxImport.
func weightOf(r *http.Request) int {
	size := int64(maxImport)
	if r.ContentLength >= 0 && r.Header.Get("Content-Encoding") == "" {
		size = min(size, r.ContentLength)
	}
	return int((size + 1<<20 - 1) >> 20)
}

func dryRunOf(r *http.Request) (bool, error) {
	query, err := parametersOf(r)
	if err != nil {
		return false, err
	}
	for name := range query {
		if name != "dryRun" {
			return false, invalidParameter(name, "is unknown; the only known parameter is dryRun")
		}
	}
	switch query.Get("dryRun") {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, invalidParameter("dryRun", "must be true or false")
	}
}

// check parses and validates a line.
func (h *handler) check(text []byte) (store.Dumped, []lineError) {
	record, err := parseLine(text)
	if invalid := new(store.InvalidDumpError); errors.As(err, &invalid) {
		return record, []lineError{errorOf(invalid)}
	}
	if err != nil {
		return record, []lineError{{Code: codeUnparseable, Message: "the line is not a record in the native format: " + err.Error()}}
	}
	if err := record.Check(); err != nil {
		return record, []lineError{errorOf(err)}
	}
	var errs []lineError
	for i := range record.Versions {
		v := &record.Versions[i]
		for _, p := range h.CheckBody(record.Key, v.Body) {
			errs = append(errs, lineError{Code: p.Code, Expression: fmt.Sprintf("versions[%d].%s", i, p.Expression), Message: p.Message})
		}
	}
	return record, errs
}

// restore restores records, and adds what happened to each to done. Errors: those of
// store.Archive.Restore.
func restore(r *http.Request, site Site, records []store.Dumped, numbers []int, done *result) error {
	for len(records) > 0 {
		length := distinct(records)
		restored, err := site.Store.Restore(r.Context(), records[:length])
		audit.From(r.Context()).Wrote()
		if err != nil {
			return err
		}
		for i, one := range restored {
			done.DroppedVersions += one.Dropped
			switch {
			case one.Err != nil:
				failed := errorOf(one.Err)
				failed.Line = numbers[i]
				done.fail(failed)
			case one.Outcome == store.Created:
				done.Created++
			case one.Outcome == store.Updated:
				done.Updated++
			default:
				done.Unchanged++
			}
		}
		records, numbers = records[length:], numbers[length:]
	}
	return nil
}

// distinct returns the number of records before the first one that has the key of an earlier one. Both
// are parts of one record, and store.Archive.Restore takes only one part of a record in a call.
func distinct(records []store.Dumped) int {
	found := make(map[store.Key]bool, len(records))
	for i := range records {
		key := records[i].Key.Folded()
		if found[key] {
			return i
		}
		found[key] = true
	}
	return len(records)
}

// errorOf returns the error of a line.
func errorOf(err error) lineError {
	var invalid *store.InvalidDumpError
	var diverged *store.DivergedError
	var incomplete *store.IncompleteError
	switch {
	case errors.As(err, &invalid):
		return lineError{Code: codeInvalid, Expression: invalid.At, Message: err.Error()}
	case errors.As(err, &diverged):
		return lineError{Code: codeDiverged, Message: err.Error()}
	case errors.As(err, &incomplete):
		return lineError{Code: codeIncomplete, Message: err.Error()}
	default:
		f := web.FailureOf(err)
		return lineError{Code: f.Code, Message: f.Detail}
	}
}
