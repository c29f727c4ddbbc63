package siteapi

import (
	"encoding/json"
	"net/http"
	"strings"
)

// Error is a response of a site with a status other than 2xx.
type Error struct {
	// Status is the HTTP status code, and Text is its name.
	Status int
	Text   string
	// Code is the stable code of the problem, or empty if the response has none.
	Code string
	// Details describes what is wrong, one sentence for each problem.
	Details []string
}

func (e *Error) Error() string {
	text := "the site responded with " + e.Text
	if e.Code != "" {
		text += " (" + e.Code + ")"
	}
	if len(e.Details) > 0 {
		text += ": " + strings.Join(e.Details, "; ")
	}
	return text
}

// document is the body of an error: a problem (RFC 9457) of the AHDS API or an OperationOutcome of
// the FHIR API.
type document struct {
	Code, Detail string
	Errors       []struct{ Pointer, Parameter, Header, Detail string }
	Issue        []issue
}

// issue is an issue of an OperationOutcome.
type issue struct {
	Diagnostics string
	Expression  []string
	Details     struct {
		Text   string
		Coding []struct{ Code string }
	}
}

// code returns the stable code of the issue, and "" if it has none.
func (i issue) code() string {
	if len(i.Details.Coding) == 0 {
		return ""
	}
	return i.Details.Coding[0].Code
}

// newError returns the error of a response. A body that is no document is ignored, because it is of
// a proxy.
func newError(response *http.Response, body []byte) *Error {
	e := &Error{Status: response.StatusCode, Text: response.Status}
	var d document
	if json.Unmarshal(body, &d) != nil {
		return e
	}
	e.Code = d.Code
	for _, each := range d.Errors {
		e.Details = append(e.Details, strings.TrimPrefix(strings.TrimSpace(each.Pointer+each.Parameter+each.Header)+": "+each.Detail, ": "))
	}
	for _, issue := range d.Issue {
		if text := issue.Diagnostics; text != "" {
			e.Details = append(e.Details, text)
		} else if issue.Details.Text != "" {
			e.Details = append(e.Details, issue.Details.Text)
		}
		if e.Code == "" {
			e.Code = issue.code()
		}
	}
	if len(e.Details) == 0 && d.Detail != "" {
		e.Details = []string{d.Detail}
	}
	return e
}
