package fhir

import (
	"github.com/go-json-experiment/json"

	"github.com/paddock-health/paddock/apiserver/errorcode"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// maxIssues is the maximum number of errors in an OperationOutcome. Further errors are not reported.
// The warnings in a searchset are not limited by maxIssues, but by the number of parameters of a
// search.
const maxIssues = 50

// outcome is an OperationOutcome. Its elements are written in the order of the fields.
type outcome struct {
	ResourceType string         `json:"resourceType"`
	Issue        []outcomeIssue `json:"issue"`
}

type outcomeIssue struct {
	Severity    r4.Severity  `json:"severity"`
	Code        r4.IssueType `json:"code"`
	Details     details      `json:"details"`
	Diagnostics string       `json:"diagnostics,omitempty"`
	Expression  []string     `json:"expression,omitempty"`
}

// details has the stable code for programs and a sentence for people.
type details struct {
	Coding []coding `json:"coding"`
	Text   string   `json:"text"`
}

// coding is a code. Its system is the address of the pages that explain codes.
type coding struct {
	System string `json:"system"`
	Code   string `json:"code"`
}

// newOutcome returns an OperationOutcome.
func newOutcome(pages errorcode.Pages, issues []r4.Issue) outcome {
	o := outcome{ResourceType: "OperationOutcome"}
	for _, issue := range issues {
		each := outcomeIssue{
			Severity: issue.Severity, Code: issue.Type, Diagnostics: issue.Diagnostics,
			Details: details{Coding: []coding{{System: pages.Address(), Code: issue.Code}}, Text: errorcode.Text(issue.Code)},
		}
		if issue.Expression != "" {
			each.Expression = []string{issue.Expression}
		}
		o.Issue = append(o.Issue, each)
	}
	return o
}

func appendOutcome(dst []byte, pages errorcode.Pages, issues []r4.Issue) ([]byte, error) {
	text, err := json.Marshal(newOutcome(pages, issues))
	return append(dst, text...), err
}

func information(code, diagnostics string) r4.Issue {
	return r4.Issue{Severity: r4.SeverityInformation, Type: issueInformational, Code: code, Diagnostics: diagnostics}
}
