package fhir

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// The types of bundle that are processed.
const (
	batchBundle       = "batch"
	transactionBundle = "transaction"
)

// sentBundle is a batch or transaction as it was sent.
type sentBundle struct {
	kind    string
	entries []*sentEntry
}

// sentEntry is an entry of a bundle as it was sent. R4 bundle.html.
type sentEntry struct {
	// at is the FHIRPath of the entry.
	at       string
	fullURL  string
	resource jsontext.Value
	method   string
	url      string
	// header has the conditions of the request as the header fields that they are.
	header map[string]string
	// issues say what is wrong with the entry, its resource aside.
	issues r4.Errors
}

// methodsOfEntries are the codes of http-verb.
var methodsOfEntries = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"}

// Members that are passed over. What is in neither table is refused: a condition
// that is misspelt must not be dropped.
var (
	idleOfBundle  = []string{"id", "_id", "meta", "language", "_language", "identifier", "timestamp", "_timestamp", "total", "_total", "link", "signature"}
	idleOfEntry   = []string{"id", "extension", "link", "search", "response"}
	idleOfRequest = []string{"id", "extension"}
)

// conditionFields are the header fields that members of a request stand for.
var conditionFields = map[string]string{
	"ifNoneMatch": "If-None-Match", "ifModifiedSince": "If-Modified-Since",
	"ifMatch": "If-Match", "ifNoneExist": "If-None-Exist",
}

// tooManyEntriesError says that a bundle has more entries than are taken.
type tooManyEntriesError struct{ limit int }

func (e *tooManyEntriesError) Error() string {
	return fmt.Sprintf("the bundle has more than the %d entries that this site takes", e.limit)
}

// readBundle reads a batch or transaction of up to limit entries. What is wrong
// with one entry is noted in it. Errors: r4.Errors, *tooManyEntriesError.
func readBundle(text []byte, limit int) (sentBundle, error) {
	if err := checkSyntax(text); err != nil {
		return sentBundle{}, err
	}
	var (
		bundle       sentBundle
		issues       r4.Errors
		resourceType string
	)
	err := eachMember(text, func(name string, value jsontext.Value) error {
		switch {
		case name == "resourceType":
			resourceType, _ = stringOf(value)
		case name == "type":
			bundle.kind, _ = stringOf(value)
		case name == "entry" && value.Kind() == jsontext.KindBeginArray:
			return eachElement(value, func(entry jsontext.Value) error {
				if len(bundle.entries) == limit {
					return &tooManyEntriesError{limit: limit}
				}
				at := "Bundle.entry[" + strconv.Itoa(len(bundle.entries)) + "]"
				bundle.entries = append(bundle.entries, readEntry(entry, at))
				return nil
			})
		case name == "entry":
			issues = noted(issues, invalidBundle("Bundle.entry", "entry must be an array"))
		case !slices.Contains(idleOfBundle, name):
			issues = noted(issues, unknownMember("Bundle", name))
		}
		return nil
	})
	if err != nil {
		return sentBundle{}, err
	}
	if resourceType != "Bundle" {
		return sentBundle{}, r4.Errors{{
			Severity: r4.SeverityError, Type: r4.IssueValue, Code: r4.CodeResourceMismatch, Expression: "Bundle.resourceType",
			Diagnostics: "the resourceType is " + r4.Quote(resourceType) + `; this address takes "Bundle"`,
		}}
	}
	if bundle.kind != batchBundle && bundle.kind != transactionBundle {
		issues = noted(issues, invalidBundle("Bundle.type", "the type is "+r4.Quote(bundle.kind)+"; a bundle is processed as a batch or a transaction"))
	}
	if len(issues) > 0 {
		return sentBundle{}, issues
	}
	return bundle, nil
}

// checkSyntax makes sure that a text is a JSON object.
func checkSyntax(text jsontext.Value) error {
	problem := ""
	decoder := jsontext.NewDecoder(bytes.NewBuffer(text))
	_, err := decoder.ReadValue()
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &syntax):
		problem = "the body is not valid JSON: " + strings.TrimPrefix(syntax.Err.Error(), "jsontext: ") + ", at byte " + strconv.FormatInt(syntax.ByteOffset, 10)
	case err != nil:
		problem = "the body is not valid JSON: it is empty or ends too early"
	case text.Kind() != jsontext.KindBeginObject:
		problem = "the body is not a JSON object; a bundle is one"
	case !text.IsValid():
		problem = "the body goes on after the end of the bundle"
	default:
		return nil
	}
	return r4.Errors{{Severity: r4.SeverityError, Type: r4.IssueStructure, Code: r4.CodeUnparseable, Diagnostics: problem}}
}

// readEntry reads an entry, and notes what is wrong with it.
func readEntry(text jsontext.Value, at string) *sentEntry {
	entry := &sentEntry{at: at, header: map[string]string{}}
	if text.Kind() != jsontext.KindBeginObject {
		entry.wrong("", "an entry must be an object")
		return entry
	}
	requested := false
	_ = eachMember(text, func(name string, value jsontext.Value) error { // the syntax is checked
		switch {
		case name == "fullUrl":
			entry.fullURL = entry.text("fullUrl", value)
		case name == "resource":
			entry.resource = value
		case name == "request" && value.Kind() == jsontext.KindBeginObject:
			requested = true
			return eachMember(value, entry.takeRequest)
		case !slices.Contains(idleOfEntry, name):
			entry.issues = noted(entry.issues, unknownMember(at, name))
		}
		return nil
	})
	if !requested {
		entry.wrong("request", "an entry must have a request with a method and a url")
		return entry
	}
	if !slices.Contains(methodsOfEntries, entry.method) {
		entry.wrong("request.method", "the method "+r4.Quote(entry.method)+" is none of "+strings.Join(methodsOfEntries, ", "))
	}
	if entry.url == "" {
		entry.wrong("request.url", "the request has no url")
	}
	if (entry.method == "PUT" || entry.method == "PATCH") && entry.resource == nil {
		entry.wrong("resource", "a "+entry.method+" needs a resource")
	}
	return entry
}

// takeRequest takes a member of the request.
func (e *sentEntry) takeRequest(name string, value jsontext.Value) error {
	at := "request." + name
	switch field := conditionFields[name]; {
	case name == "method":
		e.method = e.text(at, value)
	case name == "url":
		e.url = e.text(at, value)
	case field == "If-Modified-Since":
		since, err := time.Parse(time.RFC3339, e.text(at, value))
		if err != nil {
			e.wrong(at, at+" must be an instant")
		}
		e.header[field] = since.UTC().Format(http.TimeFormat)
	case field != "":
		e.header[field] = e.text(at, value)
	case !slices.Contains(idleOfRequest, name):
		e.issues = noted(e.issues, unknownMember(e.at+".request", name))
	}
	return nil
}

// text reads a string in which there is something.
func (e *sentEntry) text(at string, value jsontext.Value) string {
	text, ok := stringOf(value)
	if !ok || text == "" {
		e.wrong(at, at+" must be a string that is not empty")
	}
	return text
}

func (e *sentEntry) wrong(at, diagnostics string) {
	e.issues = noted(e.issues, invalidBundle(strings.TrimSuffix(e.at+"."+at, "."), diagnostics))
}

// noted adds an issue, unless there are as many as are reported.
func noted(issues r4.Errors, issue r4.Issue) r4.Errors {
	if len(issues) == maxIssues {
		return issues
	}
	return append(issues, issue)
}

func invalidBundle(expression, diagnostics string) r4.Issue {
	return r4.Issue{
		Severity: r4.SeverityError, Type: r4.IssueInvalid, Code: codeInvalidBundle,
		Diagnostics: diagnostics, Expression: expression,
	}
}

// unknownMember says that something is in a bundle that is not known there.
func unknownMember(at, name string) r4.Issue {
	return invalidBundle(at, "the element "+r4.Quote(name)+" is not known or not supported here")
}
