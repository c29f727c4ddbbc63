package output

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var sample = Table{Columns: []string{"Name", "State"}, Rows: []Row{
	{Cells: []string{"oak", "fine"}},
	{Cells: []string{"a-longer-name", "near its limit"}, Level: Warning},
	{Cells: []string{"elm", "bad\x1b[2J\x07\nsecond line"}, Level: Failure},
}}

func TestTable(t *testing.T) {
	for name, test := range map[string]struct {
		coloured bool
		want     string
	}{
		"plain":    {false, "NAME            STATE\noak             fine\na-longer-name   near its limit\nelm             bad [2J  second line\n"},
		"coloured": {true, "NAME            STATE\noak             fine\n\x1b[33ma-longer-name   near its limit\x1b[0m\n\x1b[31melm             bad [2J  second line\x1b[0m\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := (Printer{Format: TableFormat, Coloured: test.coloured, Out: &out}).Print(nil, sample); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestJSONAndYAML(t *testing.T) {
	value := map[string]any{"items": []string{"oak"}}
	for format, want := range map[Format]string{JSONFormat: "{\n  \"items\": [\n    \"oak\"\n  ]\n}\n", YAMLFormat: "items:\n- oak\n"} {
		var out bytes.Buffer
		if err := (Printer{Format: format, Coloured: true, Out: &out}).Print(value, sample); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("%s: %q, want %q", format, out.String(), want)
		}
	}
}

func TestParseFormat(t *testing.T) {
	for _, name := range Formats {
		if format, err := ParseFormat(name); err != nil || string(format) != name {
			t.Errorf("ParseFormat(%q) = %q, %v", name, format, err)
		}
	}
	if _, err := ParseFormat("wide"); err == nil || !strings.Contains(err.Error(), "table, json, yaml") {
		t.Errorf("error %v, want the names of the formats", err)
	}
}
