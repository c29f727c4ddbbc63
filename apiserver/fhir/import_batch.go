package fhir

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/fhir/integrity"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/jsonwalk"
	"github.com/paddock-health/paddock/apiserver/store"
)

const (
	// maxImportBatch and maxImportBatchSize are the maximum number of lines of a batch, and of their
	// bytes. A batch is written in one transaction if possible. A larger line is a batch by itself.
	maxImportBatch     = 100
	maxImportBatchSize = 4 << 20
	// importWriters is the number of concurrent writes of an import whose lines are written one by one.
	importWriters = 8
	// maxWaitingLines and maxWaitingSize limit the lines, and their bytes, that wait for records to
	// which they refer. A further line fails at once.
	maxWaitingLines = 1000
	maxWaitingSize  = 16 << 20
)

// The parameters of the response that count lines.
const (
	importCreated   = "created"
	importUpdated   = "updated"
	importUnchanged = "unchanged"
	importFailed    = "failed"
	importValid     = "valid"
)

// importer imports the lines of one request.
type importer struct {
	*request
	dryRun bool
	// rights caches whether the caller has a verb on all records of a type, by verb and type.
	rights map[string]bool

	batch     []*importLine
	batchSize int
	// waiting are lines that refer to records which do not exist yet.
	waiting     []*importLine
	waitingSize int

	counts map[string]int
	errors []importError
}

// importLine is a line that is valid, as an update of its record.
type importLine struct {
	*request
	number int
	put    step
	// unconditional is true if the caller may create and update all records of the type, and the site
	// lets a PUT create records. The write then needs no precondition.
	unconditional bool
	result        store.Result
	err           error
}

// add validates a line and adds it to the batch. Errors: those that do not concern the line.
func (i *importer) add(number int, text []byte) error {
	line, err := i.parse(number, text)
	switch {
	case isTransient(err):
		return err
	case err != nil:
		i.fail(number, err)
		return nil
	case i.dryRun:
		i.counts[importValid]++
		return nil
	}
	if containsRecord(i.batch, line) || len(i.batch) == maxImportBatch || i.batchSize+len(text) > maxImportBatchSize {
		if err := i.flush(); err != nil {
			return err
		}
	}
	if containsRecord(i.waiting, line) { // the lines of a record keep their order
		if !i.wait(line) {
			i.fail(number, &invalidError{code: codeTooManyLines, diagnostics: "an earlier line of the same record waits for a record that does not exist yet, and the queue of such lines is full; send this line in another request"})
		}
		return nil
	}
	i.batch, i.batchSize = append(i.batch, line), i.batchSize+len(text)
	return nil
}

// parse validates a line and checks the rights to write it.
func (i *importer) parse(number int, text []byte) (*importLine, error) {
	kind, err := importedType(text)
	if err != nil {
		return nil, err
	}
	resource, err := readWhole(text, r4.Options{Type: kind.Name, Optional: contractDialect.optional, Bases: i.bases(), Index: true})
	if err != nil {
		return nil, err
	}
	line := &importLine{number: number, request: &request{
		Request: i.Request, dialect: i.dialect, site: i.site, caller: i.caller, authorizer: i.authorizer, errorPages: i.errorPages, inBundle: true,
		kind: kind, segment: kind.Name, id: resource.ID,
	}}
	if resource.ID == "" {
		return nil, line.idError("the resource has no id; send one, because an import keeps the ids of resources")
	}
	updates, err := i.hasRight(line, "update")
	if err != nil {
		line.recordRefusal(err)
		return nil, err
	}
	creates := false
	if i.site.UpdateCreate && updates {
		creates, err = i.hasRight(line, "create")
		if forbidden := new(access.ForbiddenError); err != nil && !errors.As(err, &forbidden) {
			return nil, err
		}
	}
	line.unconditional = updates && creates
	sent := body{text: text, resource: resource, dialect: contractDialect}
	line.put = step{op: store.Op{Key: line.key(), Method: store.MethodPut}}
	line.put.putBody(sent)
	return line, nil
}

// importedType returns the resource type of a line. Errors: *invalidError.
func importedType(text jsontext.Value) (r4.Type, error) {
	switch {
	case !text.IsValid(jsontext.AllowDuplicateNames(true)): // r4.Read reports duplicates
		return r4.Type{}, &invalidError{code: r4.CodeUnparseable, diagnostics: "the line is not valid JSON; send one whole resource on each line"}
	case text.Kind() != jsontext.KindBeginObject:
		return r4.Type{}, &invalidError{code: r4.CodeNotAnObject, diagnostics: "the line is not a JSON object; send one resource on each line"}
	}
	for m := range jsonwalk.Members(text) {
		if m.Name != "resourceType" {
			continue
		}
		name, _ := unquote(m.Value)
		if kind, ok := r4.TypeOf(name); ok && kind.Name == name {
			return kind, nil
		}
		unknown := &typeUnknownError{segment: name}
		return r4.Type{}, &invalidError{code: r4.CodeUnknownType, diagnostics: unknown.Error(), expression: "resourceType"}
	}
	return r4.Type{}, &invalidError{code: r4.CodeUnknownType, diagnostics: "the resource has no resourceType; send the name of its type, such as Patient", expression: "resourceType"}
}

// hasRight reports whether the caller has a verb on all records of the type of a line. If only the
// record itself may be written, the result is false without an error. Errors: those of authorize.
func (i *importer) hasRight(line *importLine, verb string) (bool, error) {
	at := verb + " " + line.kind.Name
	if i.rights[at] {
		return true, nil
	}
	whole := *line.request
	whole.id = ""
	err := whole.authorize(verb)
	var forbidden *access.ForbiddenError
	if errors.As(err, &forbidden) {
		return false, line.authorize(verb)
	}
	i.rights[at] = err == nil
	return err == nil, err
}

// flush writes the batch and empties it. Lines that refer to missing records then wait.
func (i *importer) flush() error {
	lines := i.batch
	i.batch, i.batchSize = nil, 0
	if i.writeAll(lines) {
		i.countAll(lines)
		return nil
	}
	return i.writeEach(lines, i.wait)
}

// wait adds a line to those that wait. It reports whether there is room for it.
func (i *importer) wait(line *importLine) bool {
	size := len(line.put.op.Body.JSON)
	if len(i.waiting) == maxWaitingLines || i.waitingSize+size > maxWaitingSize {
		return false
	}
	i.waiting, i.waitingSize = append(i.waiting, line), i.waitingSize+size
	return true
}

// containsRecord reports whether one of lines writes the same record as a further line.
func containsRecord(lines []*importLine, further *importLine) bool {
	return slices.ContainsFunc(lines, func(line *importLine) bool {
		return line.kind.Name == further.kind.Name && strings.EqualFold(line.id, further.id)
	})
}

// writeAll writes all lines in one transaction. It reports whether it did. Otherwise each line must be
// written by itself: there is only one line, one of the lines fails or is not unconditional, or the
// engine has no transactions.
func (i *importer) writeAll(lines []*importLine) bool {
	conditional := func(line *importLine) bool { return !line.unconditional }
	if len(lines) < 2 || !i.site.Store.Atomic() || slices.ContainsFunc(lines, conditional) {
		return false
	}
	ops := make([]store.Op, len(lines))
	for n, line := range lines {
		ops[n] = line.put.op
	}
	results, err := i.write(ops)
	if err != nil {
		return false
	}
	for n, line := range lines {
		line.result = results[n]
	}
	return true
}

// writeEach writes lines one by one. wait is called for a line that refers to a missing record, and
// reports whether the line is kept for later. Errors: those that do not concern a line.
func (i *importer) writeEach(lines []*importLine, wait func(*importLine) bool) error {
	var writers sync.WaitGroup
	next := make(chan *importLine)
	for range min(importWriters, len(lines)) {
		writers.Go(func() {
			for line := range next {
				line.result, line.err = line.execute(line.request.put(line.put))
			}
		})
	}
	for _, line := range lines {
		next <- line
	}
	close(next)
	writers.Wait()
	for _, line := range lines {
		var dangling *integrity.DanglingError
		switch {
		case line.err == nil:
			i.countAll([]*importLine{line})
		case isTransient(line.err):
			return line.err
		case errors.As(line.err, &dangling) && wait(line):
		default:
			line.recordRefusal(line.err)
			i.fail(line.number, line.describe(line.err))
		}
	}
	return nil
}

// recordRefusal adds the record of the line to the audit entry of the import, and that the caller does not
// have the right to write it, if err says so. The status of the response does not say it.
func (l *importLine) recordRefusal(err error) {
	if errors.As(err, new(*access.ForbiddenError)) {
		recorder := audit.From(l.Context())
		recorder.AddWritten(l.key())
		recorder.Deny(audit.RuleRBAC)
	}
}

// finish writes what remains: the batch, and the waiting lines until no further line can be written.
// It tries all waiting lines in one transaction first, because they may refer to each other. Of
// several waiting lines of one record, each is written after the line before it.
func (i *importer) finish() error {
	if err := i.flush(); err != nil {
		return err
	}
	for len(i.waiting) > 0 {
		var lines, further, still []*importLine
		for _, line := range i.waiting {
			if containsRecord(lines, line) {
				further = append(further, line)
			} else {
				lines = append(lines, line)
			}
		}
		if i.writeAll(lines) {
			i.countAll(lines)
		} else if err := i.writeEach(lines, func(line *importLine) bool {
			still = append(still, line)
			return true
		}); err != nil {
			return err
		}
		if len(still) == len(lines) { // none could be written
			for _, line := range still {
				i.fail(line.number, line.describe(line.err))
			}
			still = nil
		}
		i.waiting = slices.Concat(still, further)
	}
	return nil
}

// countAll counts written lines by their outcomes.
func (i *importer) countAll(lines []*importLine) {
	for _, line := range lines {
		switch line.result.Outcome {
		case store.Created:
			i.counts[importCreated]++
		case store.Updated:
			i.counts[importUpdated]++
		default:
			i.counts[importUnchanged]++
		}
	}
}

// fail counts a failed line. It adds the error to the response, unless maxImportErrors are in it.
func (i *importer) fail(number int, err error) {
	i.counts[importFailed]++
	if len(i.errors) < maxImportErrors {
		i.errors = append(i.errors, importError{line: number, issues: problemOf(err).issues})
	}
}

// isTransient reports whether err does not concern a line, so that the client must send the request
// again.
func isTransient(err error) bool {
	var limit *store.LimitError
	if errors.As(err, &limit) && limit.IsBacklog() {
		return true
	}
	for _, each := range []error{store.ErrUnavailable, store.ErrNotReady, store.ErrMoving, store.ErrQueryTimeout, access.ErrUnavailable, access.ErrSiteHidden, audit.ErrUnavailable, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, each) {
			return true
		}
	}
	return false
}
