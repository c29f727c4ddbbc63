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
	"github.com/paddock-health/paddock/apiserver/jsonwalk"
)

// The supported types of Bundle.
const (
	batchBundle       = "batch"
	transactionBundle = "transaction"
)

// bundleRequest is a batch or transaction as sent.
type bundleRequest struct {
	kind    string
	entries []*entryRequest
}

// entryRequest is an entry of a Bundle as sent. R4 bundle.html.
type entryRequest struct {
	// path is the FHIRPath of the entry.
	path     string
	fullURL  string
	resource jsontext.Value
	method   string
	url      string
	// header has the preconditions of the entry as header fields.
	header map[string]string
	// issues are the errors in the entry, except those in its resource.
	issues r4.Errors
}

// entryMethods are the codes of the value set http-verb.
var entryMethods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"}

// The ignored members of a Bundle, an entry and its request. Unknown members are rejected, so that
// a misspelt precondition is not ignored.
var (
	ignoredBundleMembers  = []string{"id", "_id", "meta", "language", "_language", "identifier", "timestamp", "_timestamp", "total", "_total", "link", "signature"}
	ignoredEntryMembers   = []string{"id", "extension", "link", "search", "response"}
	ignoredRequestMembers = []string{"id", "extension"}
)

// preconditionHeaders are the header fields of preconditions by the members of an entry's request.
var preconditionHeaders = map[string]string{
	"ifNoneMatch": "If-None-Match", "ifModifiedSince": "If-Modified-Since",
	"ifMatch": "If-Match", "ifNoneExist": "If-None-Exist",
}

// tooManyEntriesError is the error of a Bundle with more entries than the site allows.
type tooManyEntriesError struct{ limit int }

func (e *tooManyEntriesError) Error() string {
	return fmt.Sprintf("the Bundle has more entries than the %d that this site accepts (limits.maxBundleEntries); send several Bundles", e.limit)
}

// readBundle parses a batch or transaction with up to limit entries. Errors in one entry are stored
// in its issues. Errors: r4.Errors, *tooManyEntriesError.
func readBundle(text []byte, limit int) (bundleRequest, error) {
	if err := checkSyntax(text); err != nil {
		return bundleRequest{}, err
	}
	var (
		bundle       bundleRequest
		issues       r4.Errors
		resourceType string
	)
	for m := range jsonwalk.Members(text) { // checkSyntax has excluded errors
		switch {
		case m.Name == "resourceType":
			resourceType, _ = unquote(m.Value)
		case m.Name == "type":
			bundle.kind, _ = unquote(m.Value)
		case m.Name == "entry" && m.Value.Kind() == jsontext.KindBeginArray:
			for entry := range jsonwalk.Elements(m.Value) {
				if len(bundle.entries) == limit {
					return bundleRequest{}, &tooManyEntriesError{limit: limit}
				}
				at := "Bundle.entry[" + strconv.Itoa(len(bundle.entries)) + "]"
				bundle.entries = append(bundle.entries, readEntry(entry, at))
			}
		case m.Name == "entry":
			issues = appendIssue(issues, invalidBundle("Bundle.entry", "Bundle.entry must be an array; send an array of entries"))
		case !slices.Contains(ignoredBundleMembers, m.Name):
			issues = appendIssue(issues, unknownMember("Bundle", m.Name))
		}
	}
	if resourceType != "Bundle" {
		return bundleRequest{}, r4.Errors{{
			Severity: r4.SeverityError, Type: r4.IssueValue, Code: r4.CodeResourceMismatch, Expression: "Bundle.resourceType",
			Diagnostics: "the resourceType is " + r4.Quote(resourceType) + "; send a Bundle to this address",
		}}
	}
	if bundle.kind != batchBundle && bundle.kind != transactionBundle {
		issues = appendIssue(issues, invalidBundle("Bundle.type", "the type is "+r4.Quote(bundle.kind)+"; it must be batch or transaction"))
	}
	if len(issues) > 0 {
		return bundleRequest{}, issues
	}
	return bundle, nil
}

// checkSyntax returns an error unless text is one JSON object. Errors: r4.Errors.
func checkSyntax(text jsontext.Value) error {
	problem := ""
	decoder := jsontext.NewDecoder(bytes.NewBuffer(text))
	_, err := decoder.ReadValue()
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &syntax):
		problem = "the body is not valid JSON: " + strings.TrimPrefix(syntax.Err.Error(), "jsontext: ") + ", at byte " + strconv.FormatInt(syntax.ByteOffset, 10)
	case err != nil:
		problem = "the body is not valid JSON: it is empty or ends too early; send a Bundle"
	case text.Kind() != jsontext.KindBeginObject:
		problem = "the body is not a JSON object; send a Bundle"
	case !text.IsValid():
		problem = "the body has text after the end of the Bundle; send one Bundle only"
	default:
		return nil
	}
	return r4.Errors{{Severity: r4.SeverityError, Type: r4.IssueStructure, Code: r4.CodeUnparseable, Diagnostics: problem}}
}

// readEntry parses an entry. Errors are stored in its issues.
func readEntry(text jsontext.Value, at string) *entryRequest {
	entry := &entryRequest{path: at, header: map[string]string{}}
	if text.Kind() != jsontext.KindBeginObject {
		entry.addIssue("", "Bundle.entry must contain JSON objects; send each entry as an object with a request")
		return entry
	}
	requested := false
	for m := range jsonwalk.Members(text) { // checkSyntax has excluded errors
		switch {
		case m.Name == "fullUrl":
			entry.fullURL = entry.text("fullUrl", m.Value)
		case m.Name == "resource":
			entry.resource = m.Value
		case m.Name == "request" && m.Value.Kind() == jsontext.KindBeginObject:
			requested = true
			for of := range jsonwalk.Members(m.Value) {
				entry.readRequestMember(of.Name, of.Value)
			}
		case !slices.Contains(ignoredEntryMembers, m.Name):
			entry.issues = appendIssue(entry.issues, unknownMember(at, m.Name))
		}
	}
	if !requested {
		entry.addIssue("request", "the entry has no request; send a request with a method and a url")
		return entry
	}
	if !slices.Contains(entryMethods, entry.method) {
		entry.addIssue("request.method", "the method "+r4.Quote(entry.method)+" is not supported; use one of "+strings.Join(entryMethods, ", "))
	}
	if entry.url == "" {
		entry.addIssue("request.url", "the request has no url; send one, such as Patient/rex")
	}
	if (entry.method == "PUT" || entry.method == "PATCH") && entry.resource == nil {
		entry.addIssue("resource", "a "+entry.method+" needs a resource; send one in the entry")
	}
	return entry
}

// readRequestMember reads a member of the entry's request.
func (e *entryRequest) readRequestMember(name string, value jsontext.Value) {
	at := "request." + name
	switch field := preconditionHeaders[name]; {
	case name == "method":
		e.method = e.text(at, value)
	case name == "url":
		e.url = e.text(at, value)
	case field == "If-Modified-Since":
		since, err := time.Parse(time.RFC3339, e.text(at, value))
		if err != nil {
			e.addIssue(at, at+" must be an instant, such as 2026-03-01T10:00:00Z")
		}
		e.header[field] = since.UTC().Format(http.TimeFormat)
	case field != "":
		e.header[field] = e.text(at, value)
	case !slices.Contains(ignoredRequestMembers, name):
		e.issues = appendIssue(e.issues, unknownMember(e.path+".request", name))
	}
}

// text returns the text of a JSON string. If value is not a string or is empty, it adds an issue.
func (e *entryRequest) text(at string, value jsontext.Value) string {
	text, ok := unquote(value)
	if !ok || text == "" {
		e.addIssue(at, at+" must be a string that is not empty")
	}
	return text
}

func (e *entryRequest) addIssue(at, diagnostics string) {
	e.issues = appendIssue(e.issues, invalidBundle(strings.TrimSuffix(e.path+"."+at, "."), diagnostics))
}

// appendIssue appends an issue, unless there are maxIssues already.
func appendIssue(issues r4.Errors, issue r4.Issue) r4.Errors {
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

func unknownMember(at, name string) r4.Issue {
	return invalidBundle(at, "the element "+r4.Quote(name)+" is unknown or not supported here; correct its name or omit it")
}
