// Package jsonpatch applies JSON Patch (RFC 6902) to JSON text and leaves what no
// operation touches as it was written: order, digits, escapes and white space. It
// knows neither FHIR nor HTTP.
package jsonpatch

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxOperations bounds the work of one patch.
const maxOperations = 1000

// Patch is a patch that has been read and can be applied.
type Patch []operation

// operation is one operation of a patch. RFC 6902 §4.
type operation struct {
	// name is add, remove, replace, move, copy or test.
	name       string
	path, from pointer
	value      jsontext.Value
}

// InvalidError says what is wrong with a patch, whatever it is applied to.
type InvalidError struct{ problem string }

func (e *InvalidError) Error() string { return "the patch is not valid: " + e.problem }

// ConflictError says that an operation does not fit the document. No operation is
// done then.
type ConflictError struct {
	// Operation is its place in the patch, from 0.
	Operation int
	// Test is set where the operation is a test that failed.
	Test    bool
	problem string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("operation %d of the patch does not fit the resource: %s", e.Operation, e.problem)
}

// SizeError says that the patch makes the document larger than it may be.
type SizeError struct{ Max int }

func (e *SizeError) Error() string {
	return fmt.Sprintf("the patch makes the resource larger than %d bytes", e.Max)
}

// CostError says that the patch takes too long to apply.
type CostError struct{}

func (e *CostError) Error() string {
	return "the patch goes through too many members and elements; send fewer operations, or the whole resource"
}

// arguments are the members that each operation has beside op and path.
var arguments = map[string]struct{ from, value bool }{
	"add": {value: true}, "remove": {}, "replace": {value: true},
	"move": {from: true}, "copy": {from: true}, "test": {value: true},
}

// Parse reads a patch. The error, if any, is an *InvalidError.
func Parse(text []byte) (Patch, error) {
	var sent []struct {
		Op    *string        `json:"op"`
		Path  *string        `json:"path"`
		From  *string        `json:"from"`
		Value jsontext.Value `json:"value"`
	}
	if err := json.Unmarshal(text, &sent); err != nil {
		return nil, &InvalidError{reason(err)}
	}
	switch {
	case sent == nil:
		return nil, &InvalidError{"it is null; it must be a JSON array of operations"}
	case len(sent) > maxOperations:
		return nil, &InvalidError{fmt.Sprintf("it has %d operations; at most %d are taken", len(sent), maxOperations)}
	}
	patch := make(Patch, len(sent))
	for i, each := range sent {
		op, err := parseOperation(each.Op, each.Path, each.From, each.Value)
		if err != nil {
			return nil, &InvalidError{fmt.Sprintf("operation %d: %s", i, err)}
		}
		patch[i] = op
	}
	return patch, nil
}

// reason says why a text is no array of operations.
func reason(err error) string {
	var kind *json.SemanticError
	if !errors.As(err, &kind) {
		return "it is not valid JSON: " + strings.TrimPrefix(err.Error(), "jsontext: ")
	}
	at := "it"
	if kind.JSONPointer != "" {
		at = string(kind.JSONPointer)
	}
	return fmt.Sprintf("%.100s is a JSON %s; a patch is an array of objects with op, path and from, which are strings, and value", at, kind.JSONKind)
}

func parseOperation(name, path, from *string, value jsontext.Value) (operation, error) {
	if name == nil {
		return operation{}, fmt.Errorf("op is missing")
	}
	takes, known := arguments[*name]
	switch {
	case !known:
		return operation{}, fmt.Errorf("op is %.40q; it must be add, remove, replace, move, copy or test", *name)
	case path == nil:
		return operation{}, fmt.Errorf("%s has no path", *name)
	case takes.from && from == nil:
		return operation{}, fmt.Errorf("%s has no from", *name)
	case takes.value && value == nil:
		return operation{}, fmt.Errorf("%s has no value", *name)
	}
	op := operation{name: *name, value: value}
	var err error
	if op.path, err = parsePointer(*path); err != nil {
		return operation{}, fmt.Errorf("path: %w", err)
	}
	if takes.from {
		if op.from, err = parsePointer(*from); err != nil {
			return operation{}, fmt.Errorf("from: %w", err)
		}
	}
	switch {
	case op.name == "remove" && len(op.path) == 0:
		return operation{}, fmt.Errorf("the whole document cannot be removed")
	case op.name == "move" && op.path.isBelow(op.from):
		return operation{}, fmt.Errorf("%s cannot be moved into itself", op.from)
	}
	return op, nil
}

// Apply returns the document with the patch applied, which may have up to limit
// bytes. The document must be valid JSON; it is neither changed nor kept. Errors:
// *ConflictError, *SizeError, *CostError.
func (p Patch) Apply(document []byte, limit int) ([]byte, error) {
	const space = " \t\r\n"
	start := len(document) - len(bytes.TrimLeft(document, space))
	end := len(bytes.TrimRight(document, space))
	doc := &editor{root: &node{text: document[start:end]}, size: len(document), limit: limit}
	for i, op := range p {
		problem, err := doc.do(op)
		if problem != "" {
			return nil, &ConflictError{Operation: i, Test: op.name == "test", problem: problem}
		}
		if err != nil {
			return nil, err
		}
		if doc.work > maxWork {
			return nil, &CostError{}
		}
	}
	patched := append(make([]byte, 0, doc.size+len(document)-(end-start)), document[:start]...)
	return append(doc.root.append(patched), document[end:]...), nil
}
