// Package flagdocs writes the pages of docs/reference about the flags and environment variables of
// programs. Tests of the programs compare the committed pages with what the code has, and
// UPDATE_GOLDEN=1 replaces them.
package flagdocs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Flag is a flag of a program.
type Flag struct {
	Name, Type, Usage string
}

// Parse returns the flags that a usage text of package flag lists.
func Parse(usage string) []Flag {
	var flags []Flag
	for line := range strings.Lines(usage) {
		if head, found := strings.CutPrefix(line, "  -"); found {
			head, text, _ := strings.Cut(strings.TrimSpace(head), "\t") // flags of one letter have their text on the same line
			name, kind, _ := strings.Cut(head, " ")
			flags = append(flags, Flag{name, kind, strings.TrimSpace(text)})
		} else if text := strings.TrimSpace(line); len(flags) > 0 && text != "" {
			last := &flags[len(flags)-1]
			last.Usage = strings.TrimSpace(last.Usage + " " + text)
		}
	}
	return flags
}

// Table returns the flags as a table of Markdown.
func Table(flags []Flag) string {
	var out strings.Builder
	out.WriteString("| flag | |\n|---|---|\n")
	for _, flag := range flags {
		name := "--" + flag.Name
		if flag.Type != "" {
			name += " " + flag.Type
		}
		fmt.Fprintf(&out, "| `%s` | %s |\n", name, cell(flag.Usage))
	}
	return out.String()
}

// Variables returns environment variables and their purposes as a table of Markdown.
func Variables(purposes map[string]string) string {
	var out strings.Builder
	out.WriteString("| variable | |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(purposes)) {
		fmt.Fprintf(&out, "| `%s` | %s |\n", name, cell(purposes[name]))
	}
	return out.String()
}

// cell escapes what has a meaning in tables and in HTML.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`).Replace(strings.Join(strings.Fields(text), " "))
}

// Compare fails the test if a file of docs/reference differs from the generated text. If UPDATE_GOLDEN
// is set, it writes the file first.
func Compare(t *testing.T, path, generated string) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(generated), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(committed), generated); diff != "" {
		t.Errorf("%s is not up to date, run make generate (-committed +generated):\n%s", path, diff)
	}
}

// CheckVariables fails the test if the code below the folders reads an environment variable that is
// not in purposes. It skips tests, and files with build constraints, which are not part of the
// released programs.
func CheckVariables(t *testing.T, purposes map[string]string, folders ...string) {
	t.Helper()
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil || constrained(file) {
				return err
			}
			for _, name := range variablesOf(file) {
				if purposes[name] == "" {
					t.Errorf("%s reads the environment variable %s, which docs/reference does not describe; add its purpose to the argument purposes of CheckVariables", path, name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func constrained(file *ast.File) bool {
	for _, group := range file.Comments {
		if group.Pos() < file.Package && strings.HasPrefix(group.List[0].Text, "//go:build ") {
			return true
		}
	}
	return false
}

// variablesOf returns the arguments of Getenv and LookupEnv that are literals or names of constants of
// the file. Another name yields an empty string.
func variablesOf(file *ast.File) []string {
	constants, names := map[string]string{}, []string{}
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.ValueSpec:
			for i, value := range n.Values {
				if text, ok := literal(value); ok {
					constants[n.Names[i].Name] = text
				}
			}
		case *ast.CallExpr:
			function, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || function.Sel.Name != "Getenv" && function.Sel.Name != "LookupEnv" || len(n.Args) != 1 {
				return true
			}
			if text, ok := literal(n.Args[0]); ok {
				names = append(names, text)
			} else if constant, ok := n.Args[0].(*ast.Ident); ok {
				names = append(names, constants[constant.Name])
			}
		}
		return true
	})
	return names
}

func literal(node ast.Expr) (string, bool) {
	basic, ok := node.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(basic.Value)
	return text, err == nil
}
