package fhir

import (
	"github.com/go-json-experiment/json"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// maxIssues is how many issues an OperationOutcome has at most. Further ones are not reported.
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

type details struct {
	Text string `json:"text"`
}

func appendOutcome(dst []byte, issues []r4.Issue) ([]byte, error) {
	o := outcome{ResourceType: "OperationOutcome"}
	for _, issue := range issues {
		each := outcomeIssue{
			Severity: issue.Severity, Code: issue.Type,
			Details: details{issue.Code}, Diagnostics: issue.Diagnostics,
		}
		if issue.Expression != "" {
			each.Expression = []string{issue.Expression}
		}
		o.Issue = append(o.Issue, each)
	}
	text, err := json.Marshal(o)
	return append(dst, text...), err
}

func information(code, diagnostics string) r4.Issue {
	return r4.Issue{Severity: r4.SeverityInformation, Type: issueInformational, Code: code, Diagnostics: diagnostics}
}
