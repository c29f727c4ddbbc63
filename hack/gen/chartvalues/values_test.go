package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var chart = filepath.Join("..", "..", "..", "charts", "paddock")

func TestREADMEIsCurrent(t *testing.T) {
	want, err := render(chart)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(chart, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("README.md is not up to date, run make generate (-want +got):\n%s", diff)
	}
}

// TestSchemaIsCurrent also shows that each value has a description, because describe fails otherwise.
func TestSchemaIsCurrent(t *testing.T) {
	want, err := describe(chart)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("values.schema.json is not up to date, run make generate (-want +got):\n%s", diff)
	}
}

// schema is what of a JSON schema says which names it knows.
type schema struct {
	Properties           map[string]schema `json:"properties"`
	AdditionalProperties any               `json:"additionalProperties"`
}

// leaves are the paths of the schema below which names are free.
func (s schema) leaves(prefix string) []string {
	var all []string
	for name, below := range s.Properties {
		if below.AdditionalProperties == false {
			all = append(all, below.leaves(prefix+name+".")...)
		} else {
			all = append(all, prefix+name)
		}
	}
	return all
}

func TestSchemaKnowsTheValuesAndNoOthers(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var root schema
	if err := json.Unmarshal(source, &root); err != nil {
		t.Fatal(err)
	}
	if root.AdditionalProperties != false {
		t.Error("the schema takes any name at its root")
	}
	var want []string
	for _, leaf := range root.leaves("") {
		// The parts of a reference are documented together, and global is helm's own.
		leaf, _, _ = strings.Cut(leaf, ".issuerRef.")
		if strings.HasSuffix(leaf, "certManager") {
			leaf += ".issuerRef"
		}
		if leaf != "global" {
			want = append(want, leaf)
		}
	}
	slices.Sort(want)
	source, err = os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	values, err := parse(source)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range values {
		got = append(got, v.path)
	}
	slices.Sort(got)
	if diff := cmp.Diff(slices.Compact(want), got); diff != "" {
		t.Errorf("values (-of the schema +of values.yaml):\n%s", diff)
	}
}

func TestParse(t *testing.T) {
	tests := map[string]struct {
		source string
		want   []value
		// refusal is a part of the error.
		refusal string
	}{
		"a group": {
			source: "a:\n  # -- How\n  # many.\n  b: 1\n",
			want:   []value{{path: "a.b", fallback: "1", text: "How many."}},
		},
		"a documented mapping is one value": {
			source: "# -- Labels.\na: {b: c}\n",
			want:   []value{{path: "a", fallback: `{"b":"c"}`, text: "Labels."}},
		},
		"no comment":    {source: "a:\n  b: 1\n", refusal: "a.b has no comment"},
		"not a mapping": {source: "- a\n", refusal: "must be one YAML mapping"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parse([]byte(test.source))
			if test.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), test.refusal) {
					t.Fatalf("parse: got error %v, want one with %q", err, test.refusal)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(value{})); diff != "" {
				t.Errorf("parse (-want +got):\n%s", diff)
			}
		})
	}
}
