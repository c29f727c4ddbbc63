package r4

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
)

// reject is a body that breaks a rule, and the issue that says so.
type reject struct {
	line                        int
	typ, code, expression, body string
}

// TestRejects reads bodies that each break one rule.
func TestRejects(t *testing.T) {
	rejects := loadRejects(t)
	codes, types := map[string]int{}, map[string]int{}
	for _, reject := range rejects {
		codes[reject.code]++
		types[reject.typ]++
		_, err := Read([]byte(reject.body), Options{Type: reject.typ})
		var issues Errors
		if !errors.As(err, &issues) {
			t.Errorf("line %d: accepted: %s", reject.line, reject.body)
			continue
		}
		for _, issue := range issues {
			if issue.Code != reject.code || issue.Expression != reject.expression && reject.expression != "*" {
				t.Errorf("line %d: got %s %s (%s)\nwant %s %s\nfor %s", reject.line,
					issue.Code, issue.Expression, issue.Diagnostics, reject.code, reject.expression, reject.body)
			}
			if issue.Severity != SeverityError || issue.Diagnostics == "" || issue.Type == "" {
				t.Errorf("line %d: %+v", reject.line, issue)
			}
		}
		if len(issues) != 1 {
			t.Errorf("line %d: %d issues for %s", reject.line, len(issues), reject.body)
		}
	}
	t.Logf("%d bodies, %d codes, %v", len(rejects), len(codes), types)
	if len(rejects) < 400 || len(types) < len(Types) {
		t.Errorf("there are %d rejects of %d types", len(rejects), len(types))
	}
}

func loadRejects(t testing.TB) (rejects []reject) {
	t.Helper()
	text, err := os.ReadFile("testdata/rejects.txt")
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		if line = strings.TrimSuffix(line, "\n"); line == "" || line[0] == '#' {
			continue
		}
		code, rest, _ := strings.Cut(line, " ")
		expression, body, _ := strings.Cut(rest, " ")
		r := reject{line: number, code: code, expression: expression, body: body}
		if at, ok := strings.CutPrefix(body, "@"); ok {
			r.typ, r.body, _ = strings.Cut(at, " ")
		} else {
			var head struct {
				ResourceType string `json:"resourceType"`
			}
			if err := json.Unmarshal([]byte(body), &head); err != nil {
				t.Fatalf("line %d: %v", number, err)
			}
			r.typ = head.ResourceType
		}
		rejects = append(rejects, r)
	}
	return rejects
}
