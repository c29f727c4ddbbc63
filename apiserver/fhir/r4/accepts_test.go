package r4

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestAccepts reads bodies that are valid against the first impression.
func TestAccepts(t *testing.T) {
	text, err := os.ReadFile("testdata/accepts.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		body := strings.TrimSuffix(line, "\n")
		if body == "" || body[0] == '#' {
			continue
		}
		var head struct {
			ResourceType string `json:"resourceType"`
		}
		if err := json.Unmarshal([]byte(body), &head); err != nil {
			t.Fatal(err)
		}
		if _, err := Read([]byte(body), Options{Type: head.ResourceType}); err != nil {
			t.Errorf("%v: %s", err, body)
		}
	}
}

func TestWarnings(t *testing.T) {
	const narrative = `"text":{"status":"empty","div":"<div xmlns=\"http://www.w3.org/1999/xhtml\">x</div>"}`
	tests := map[string]struct {
		body string
		opts Options
		want int
	}{
		"not asked for":                   {`{"resourceType":"Patient"}`, Options{Type: "Patient"}, 0},
		"no narrative":                    {`{"resourceType":"Patient"}`, Options{Type: "Patient", Warnings: true}, 1},
		"a narrative":                     {`{"resourceType":"Patient",` + narrative + `}`, Options{Type: "Patient", Warnings: true}, 0},
		"a type that can have none":       {`{"resourceType":"Parameters"}`, Options{Type: "Parameters", Warnings: true}, 0},
		"a contained resource needs none": {`{"resourceType":"Patient",` + narrative + `,"contained":[{"resourceType":"RelatedPerson","patient":{"reference":"#"}}]}`, Options{Type: "Patient", Warnings: true}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			resource, err := Read([]byte(test.body), test.opts)
			if err != nil || len(resource.Warnings) != test.want {
				t.Fatalf("%v, %+v", err, resource.Warnings)
			}
			for _, w := range resource.Warnings {
				if w.Severity != SeverityWarning || w.Code != "dom-6" || w.Expression != "Patient" {
					t.Errorf("%+v", w)
				}
			}
		})
	}
}

// TestBundles reads resources that hold others.
func TestBundles(t *testing.T) {
	tests := map[string]struct{ body, want string }{
		"a transaction":         {`{"resourceType":"Bundle","type":"transaction","entry":[{"resource":{"resourceType":"Patient","managingOrganization":{"reference":"Organization?identifier=1"}},"request":{"method":"POST","url":"Patient"}}]}`, ""},
		"references of its own": {`{"resourceType":"Bundle","type":"collection","entry":[{"resource":{"resourceType":"Patient","contained":[{"resourceType":"Organization","id":"o","name":"O"}],"managingOrganization":{"reference":"#o"}}},{"resource":{"resourceType":"Patient","managingOrganization":{"reference":"#o"}}}]}`, "ref-1 Bundle.entry[1].resource.managingOrganization.reference"},
		"a resource within":     {`{"resourceType":"Bundle","type":"collection","entry":[{"resource":{"resourceType":"Patient","gender":"x"}}]}`, "invalid_code Bundle.entry[0].resource.gender"},
		"a version within":      {`{"resourceType":"Bundle","type":"history","entry":[{"resource":{"resourceType":"Patient","meta":{"versionId":"1","security":[{"code":"R"}]}}}]}`, ""},
		"a parameter":           {`{"resourceType":"Parameters","parameter":[{"name":"resource","resource":{"resourceType":"Patient","x":1}}]}`, "unknown_element Parameters.parameter[0].resource.x"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			typ := "Bundle"
			if strings.Contains(test.body, `"Parameters"`) {
				typ = "Parameters"
			}
			got := ""
			if _, err := Read([]byte(test.body), Options{Type: typ}); err != nil {
				issue := err.(Errors)[0] //nolint:errorlint // the exact type is promised
				got = issue.Code + " " + issue.Expression
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
