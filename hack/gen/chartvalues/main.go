// Command chartvalues writes the table of the chart's values into its README, and the
// descriptions into its schema, from the comments of values.yaml that begin with "# -- ".
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The table stands between these two lines.
const (
	tableBegin = "<!-- values: make generate -->\n"
	tableEnd   = "<!-- end of values -->\n"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: chartvalues <folder of the chart>")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "chartvalues: %v\n", err)
		os.Exit(1)
	}
}

func write(chart string) error {
	readme, err := render(chart)
	if err != nil {
		return err
	}
	schema, err := describe(chart)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(chart, "README.md"), readme, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(chart, "values.schema.json"), schema, 0o644)
}

// render is the chart's README with the table of its values as they are now.
func render(chart string) ([]byte, error) {
	readme, err := os.ReadFile(filepath.Join(chart, "README.md"))
	if err != nil {
		return nil, err
	}
	source, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return nil, err
	}
	values, err := parse(source)
	if err != nil {
		return nil, fmt.Errorf("read values.yaml: %w", err)
	}
	before, rest, begun := bytes.Cut(readme, []byte(tableBegin))
	_, after, ended := bytes.Cut(rest, []byte(tableEnd))
	if !begun || !ended {
		return nil, fmt.Errorf("%s: the file must have the line %q and after it the line %q, which enclose the table of values", filepath.Join(chart, "README.md"), tableBegin, tableEnd)
	}
	var out bytes.Buffer
	out.Write(before)
	out.WriteString(tableBegin + "| value | default | |\n|---|---|---|\n")
	for _, v := range values {
		fmt.Fprintf(&out, "| `%s` | `%s` | %s |\n", v.path, v.fallback, strings.ReplaceAll(v.text, "|", `\|`))
	}
	out.WriteString(tableEnd)
	out.Write(after)
	return out.Bytes(), nil
}
