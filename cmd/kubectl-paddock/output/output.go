// Package output prints the results of commands as tables, JSON or YAML.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/paddock-health/paddock/cmd/listen/terminal"
)

// Format is the format in which a command prints its result.
type Format string

// Formats of results.
const (
	TableFormat Format = "table"
	JSONFormat  Format = "json"
	YAMLFormat  Format = "yaml"
)

// Formats are the names of all formats.
var Formats = []string{string(TableFormat), string(JSONFormat), string(YAMLFormat)}

// ParseFormat returns the Format with a name. If there is none, the error lists the names of all
// formats.
func ParseFormat(name string) (Format, error) {
	if !slices.Contains(Formats, name) {
		return "", fmt.Errorf("%q is not a format; use %s", name, strings.Join(Formats, ", "))
	}
	return Format(name), nil
}

// Level is how much attention a row needs.
type Level int

// Levels of rows.
const (
	Normal Level = iota
	Warning
	Failure
)

// colours are the terminal sequences that begin rows of a Level (ECMA-48, select graphic rendition).
var colours = map[Level]string{Warning: "\x1b[33m", Failure: "\x1b[31m"}

// endColour is the terminal sequence that ends a colour.
const endColour = "\x1b[0m"

// Row is a line of a Table.
type Row struct {
	Cells []string
	Level Level
}

// Table is a result for people. The cells of a row are in the order of the columns.
type Table struct {
	Columns []string
	Rows    []Row
}

// Printer prints results to Out. Coloured selects colours for the rows of tables that need attention.
// JSON and YAML have no colours.
type Printer struct {
	Format   Format
	Coloured bool
	Out      io.Writer
}

// Print prints value if the format is JSON or YAML, and table if the format is a table. Control
// characters in cells are replaced by spaces.
func (p Printer) Print(value any, table Table) error {
	switch p.Format {
	case JSONFormat:
		text, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			return fmt.Errorf("encode the result: %w", err)
		}
		_, err = fmt.Fprintf(p.Out, "%s\n", text)
		return err
	case YAMLFormat:
		text, err := yaml.Marshal(value)
		if err != nil {
			return fmt.Errorf("encode the result: %w", err)
		}
		_, err = p.Out.Write(text)
		return err
	default:
		return p.printTable(table)
	}
}

func (p Printer) printTable(table Table) error {
	kube := &metav1.Table{}
	for _, name := range table.Columns {
		kube.ColumnDefinitions = append(kube.ColumnDefinitions, metav1.TableColumnDefinition{Name: name, Type: "string"})
	}
	for _, row := range table.Rows {
		cells := make([]any, len(row.Cells))
		for i, cell := range row.Cells {
			cells[i] = terminal.Safe(cell)
		}
		kube.Rows = append(kube.Rows, metav1.TableRow{Cells: cells})
	}
	var text bytes.Buffer
	if err := printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(kube, &text); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	// Colours are added to whole lines, because the sequences would count in the widths of columns.
	// Line 0 is the header, and each row has one line.
	for i, line := range strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n") {
		level := Normal
		if i > 0 {
			level = table.Rows[i-1].Level
		}
		if err := p.Line(strings.TrimRight(line, " "), level); err != nil {
			return err
		}
	}
	return nil
}

// Line prints a line with the colour of a Level.
func (p Printer) Line(text string, level Level) error {
	if p.Coloured && colours[level] != "" {
		text = colours[level] + text + endColour
	}
	_, err := fmt.Fprintln(p.Out, text)
	return err
}
