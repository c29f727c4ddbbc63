package r4

import (
	"strconv"
	"strings"
)

// Severity is a code of the value set issue-severity.
type Severity string

// The severities of issues that the server reports.
const (
	SeverityError       Severity = "error"
	SeverityWarning     Severity = "warning"
	SeverityInformation Severity = "information"
)

// IssueType is a code of the value set issue-type.
type IssueType string

// The issue types of issues in bodies.
const (
	IssueStructure   IssueType = "structure"
	IssueRequired    IssueType = "required"
	IssueValue       IssueType = "value"
	IssueInvalid     IssueType = "invalid"
	IssueInvariant   IssueType = "invariant"
	IssueCodeInvalid IssueType = "code-invalid"
)

// The codes of issues of bodies. Clients depend on them. The code of an invariant is HL7's key,
// such as per-1.
const (
	CodeUnparseable        = "unparseable_resource"
	CodeNotAnObject        = "not_an_object"
	CodeDuplicateElement   = "duplicate_element"
	CodeTooDeep            = "too_deep"
	CodeResourceMismatch   = "resource_mismatch"
	CodeUnknownType        = "unknown_resource_type"
	CodeInvalidID          = "invalid_id"
	CodeDuplicateID        = "duplicate_id"
	CodeUnknownElement     = "unknown_element"
	CodeMissingElement     = "missing_element"
	CodeWrongKind          = "wrong_json_kind"
	CodeEmptyElement       = "empty_element"
	CodeConflictingChoice  = "conflicting_choice"
	CodeMisalignedArrays   = "misaligned_arrays"
	CodeInvalidValue       = "invalid_value"
	CodeInvalidCode        = "invalid_code"
	CodeInvalidReference   = "invalid_reference"
	CodeWrongReferenceType = "wrong_reference_target"
	CodeTooManyIssues      = "too_many_issues"
)

// Issue is a problem in a resource. It becomes one OperationOutcome.issue.
type Issue struct {
	Severity Severity
	Type     IssueType
	// Code is a stable code for programs. It becomes OperationOutcome.issue.details.coding.code.
	Code string
	// Diagnostics is a message for people.
	Diagnostics string
	// Expression is the FHIRPath of the element. It is empty if the element is unknown.
	Expression string
}

// Errors are the issues of an invalid resource: errors and, with Options.Warnings, also warnings.
type Errors []Issue

func (i Errors) Error() string {
	sentences := make([]string, len(i))
	for n, issue := range i {
		sentences[n] = issue.Diagnostics
	}
	return strings.Join(sentences, "; ")
}

// maxIssues is the maximum number of issues of one body. If another issue is found, it replaces the
// last one by an issue with CodeTooManyIssues, and validation ends.
const maxIssues = 50

// isIdentifier reports whether FHIRPath accepts name as an element name without quotes.
func isIdentifier(name string) bool {
	for i, c := range []byte(name) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_'
		if !letter && (i == 0 || c < '0' || '9' < c) {
			return false
		}
	}
	return name != ""
}

// appendElement appends the step into an element to a FHIRPath.
func appendElement(path []byte, name string) []byte {
	path = append(path, '.')
	if isIdentifier(name) {
		return append(path, name...)
	}
	path = append(path, '`')
	for _, r := range name {
		if r == '`' || r == '\\' {
			path = append(path, '\\')
		}
		path = append(path, string(r)...)
	}
	return append(path, '`')
}

// appendIndex appends the step into a repetition to a FHIRPath.
func appendIndex(path []byte, index int) []byte {
	return append(strconv.AppendInt(append(path, '['), int64(index), 10), ']')
}
