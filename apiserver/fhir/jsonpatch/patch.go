// Package jsonpatch applies JSON Patch (RFC 6902) to JSON text. It leaves everything that no
// operation touches as it was written: order, digits, escapes and white space. It depends on
// neither FHIR nor HTTP.
package jsonpatch

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxOperations is the maximum number of operations of a patch. Parse rejects a longer patch.
const maxOperations = 1000

// Patch is a JSON Patch: operations that Apply applies in order.
type Patch []operation

// operation is one operation of a patch. RFC 6902 §4.
type operation struct {
	// name is add, remove, replace, move, copy or test.
	name       string
	path, from pointer
	value      jsontext.Value
}

// UsesStoredValues reports whether an operation is test, copy or move, whose result depends on values that the
// patch does not have.
func (p Patch) UsesStoredValues() bool {
	return slices.ContainsFunc(p, func(o operation) bool { return o.name == "test" || o.name == "copy" || o.name == "move" })
}

// InvalidError is the error of a patch that is invalid for any document.
type InvalidError struct{ problem string }

func (e *InvalidError) Error() string { return "the patch is not valid: " + e.problem }

// ConflictError is the error of an operation that cannot be applied to the document, or of a test
// that fails. Apply then returns no document.
type ConflictError struct {
	// Operation is the index of the operation in the patch, counted from 0.
	Operation int
	// Test is true if the operation is a test.
	Test    bool
	problem string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("operation %d of the patch (counted from 0) cannot be applied to the resource: %s", e.Operation, e.problem)
}

// SizeError is the error of a patch whose copied values together exceed Max bytes, or with which the
// document could exceed Max bytes after one of its operations.
type SizeError struct{ Max int }

func (e *SizeError) Error() string {
	return fmt.Sprintf("the patched resource, or all values that the patch copies together, have more than %d bytes; send a smaller patch", e.Max)
}

// CostError is the error of a patch that visits more than maxVisited members and elements.
type CostError struct{}

func (e *CostError) Error() string {
	return "the patch goes through too many members and elements; send fewer operations, or the whole resource by PUT"
}

// requiredMembers are the members that an operation must have in addition to op and path.
var requiredMembers = map[string]struct{ from, value bool }{
	"add": {value: true}, "remove": {}, "replace": {value: true},
	"move": {from: true}, "copy": {from: true}, "test": {value: true},
}

// Parse parses a JSON Patch. Errors: *InvalidError.
func Parse(text []byte) (Patch, error) {
	var sent []struct {
		Op    *string        `json:"op"`
		Path  *string        `json:"path"`
		From  *string        `json:"from"`
		Value jsontext.Value `json:"value"`
	}
	if err := json.Unmarshal(text, &sent); err != nil {
		return nil, &InvalidError{syntaxProblem(err)}
	}
	switch {
	case sent == nil:
		return nil, &InvalidError{"it is null; it must be a JSON array of operations"}
	case len(sent) > maxOperations:
		return nil, &InvalidError{fmt.Sprintf("it has %d operations; send at most %d", len(sent), maxOperations)}
	}
	patch := make(Patch, len(sent))
	for i, each := range sent {
		op, err := parseOperation(each.Op, each.Path, each.From, each.Value)
		if err != nil {
			return nil, &InvalidError{fmt.Sprintf("operation %d (counted from 0): %s", i, err)}
		}
		patch[i] = op
	}
	return patch, nil
}

// syntaxProblem describes why a text is not an array of operations.
func syntaxProblem(err error) string {
	var kind *json.SemanticError
	if !errors.As(err, &kind) {
		return "it is not valid JSON: " + strings.TrimPrefix(err.Error(), "jsontext: ")
	}
	at := "it"
	if kind.JSONPointer != "" {
		at = string(kind.JSONPointer)
	}
	found := kind.JSONKind.String()
	switch kind.JSONKind {
	case jsontext.KindBeginObject:
		found = "object"
	case jsontext.KindBeginArray:
		found = "array"
	}
	return fmt.Sprintf("%.100s is a JSON %s; send an array of objects, in which op, path and from are strings", at, found)
}

func parseOperation(name, path, from *string, value jsontext.Value) (operation, error) {
	if name == nil {
		return operation{}, fmt.Errorf("op is missing; it must be add, remove, replace, move, copy or test")
	}
	takes, known := requiredMembers[*name]
	switch {
	case !known:
		return operation{}, fmt.Errorf("op is %.40q; it must be add, remove, replace, move, copy or test", *name)
	case path == nil:
		return operation{}, fmt.Errorf("%s has no path; send one", *name)
	case takes.from && from == nil:
		return operation{}, fmt.Errorf("%s has no from; send one", *name)
	case takes.value && value == nil:
		return operation{}, fmt.Errorf("%s has no value; send one", *name)
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
		return operation{}, fmt.Errorf("the whole document cannot be removed; give the path of a member or element")
	case op.name == "move" && op.path.isBelow(op.from):
		return operation{}, fmt.Errorf("%s cannot be moved into itself; give another path", op.from)
	}
	return op, nil
}

// Apply returns the patched document. document must be valid JSON. Apply neither changes nor retains
// document. limit is the maximum size in bytes of the document after each operation that puts a value,
// and of all copied values together. The size of the document is estimated: the estimate can be too
// large by the commas of removed values. Errors: *ConflictError, *SizeError, *CostError.
func (p Patch) Apply(document []byte, limit int) ([]byte, error) {
	const space = " \t\r\n"
	start := len(document) - len(bytes.TrimLeft(document, space))
	end := len(bytes.TrimRight(document, space))
	doc := &editor{root: &node{text: document[start:end]}, size: len(document), limit: limit}
	for i, op := range p {
		problem, err := doc.apply(op)
		if problem != "" {
			return nil, &ConflictError{Operation: i, Test: op.name == "test", problem: problem}
		}
		if err != nil {
			return nil, err
		}
		if doc.visited > maxVisited {
			return nil, &CostError{}
		}
	}
	patched := append(make([]byte, 0, doc.size+len(document)-(end-start)), document[:start]...)
	return append(doc.root.append(patched), document[end:]...), nil
}
