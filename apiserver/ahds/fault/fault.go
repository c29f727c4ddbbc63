// Package fault holds what can be wrong with a request of the AHDS facade: where, a
// stable code for programs and a sentence for people. It knows neither HTTP statuses
// nor storage.
package fault

import "strings"

// In says which part of a request a fault is in.
type In int

// The parts of a request.
const (
	Body In = iota
	Parameter
	Header
)

// The stable codes of faults.
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

// Fault is one thing that is wrong.
type Fault struct {
	In In
	// At is an RFC 6901 pointer into the body, or the name of a parameter or header.
	At     string
	Code   string
	Detail string
}

// Faults is everything that is wrong with a request. As an error it is never empty.
type Faults []Fault //nolint:errname // what one of them is called, several are

func (f Faults) Error() string {
	said := make([]string, len(f))
	for i, each := range f {
		said[i] = each.At + ": " + each.Detail
	}
	return strings.Join(said, "; ")
}

// Err is the faults as an error, nil when there are none.
func (f Faults) Err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}
