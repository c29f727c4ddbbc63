// Package fielderror defines the errors of single fields of an AHDS request: the location, a stable
// code for programs and a message for people. It does not depend on HTTP or storage.
package fielderror

import (
	"errors"
	"strings"
)

// In is the part of a request that has an error.
type In int

// The parts of a request.
const (
	Body In = iota
	Parameter
	Header
)

// The codes of field errors. Clients depend on them.
const (
	CodeUnparseable      = "unparseable_json"
	CodeTooDeep          = "too_deep"
	CodeWrongType        = "wrong_type"
	CodeInvalidValue     = "invalid_value"
	CodeTooLong          = "too_long"
	CodeOutOfRange       = "out_of_range"
	CodeMissing          = "missing_field"
	CodeUnknownField     = "unknown_field"
	CodeIDMismatch       = "id_mismatch"
	CodeUnknownParameter = "unknown_parameter"
	CodeRepeated         = "repeated_parameter"
	CodeInvalidQuery     = "invalid_query"
	CodeInvalidHeader    = "invalid_header"
)

// Error is one error of a request.
type Error struct {
	In In
	// At is an RFC 6901 pointer into the body, or the name of a parameter or header. The empty pointer
	// means the whole body.
	At     string
	Code   string
	Detail string
}

// Errors is a list of the errors of a request. As an error it is never empty.
type Errors []Error

func (f Errors) Error() string {
	messages := make([]string, len(f))
	for i, each := range f {
		messages[i] = strings.TrimPrefix(each.At+": "+each.Detail, ": ")
	}
	return strings.Join(messages, "; ")
}

// Below returns the errors with pointer in front of each pointer into the body. It converts errors
// of an item of the body to errors of the body.
func (f Errors) Below(pointer string) Errors {
	moved := make(Errors, len(f))
	for i, each := range f {
		if each.In == Body {
			each.At = pointer + each.At
		}
		moved[i] = each
	}
	return moved
}

// Err returns the errors as an error, and nil if there are none.
func (f Errors) Err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// Of returns the Errors that err wraps. If there are none, it returns err as an error of the body.
func Of(err error) Errors {
	var errs Errors
	if errors.As(err, &errs) {
		return errs
	}
	return Errors{{Code: CodeUnparseable, Detail: err.Error()}}
}
