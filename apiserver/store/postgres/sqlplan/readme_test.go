package sqlplan

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
)

// TestExample compares the statement that the README explains with the one that is sent for the
// query string.
func TestExample(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	index := testIndex(t, &database{})
	parsed, err := search.Parse(url.Values{"family": {"smith"}, "birthdate": {"ge1990-01-01"}}, search.Options{Type: patient})
	if err != nil {
		t.Fatal(err)
	}
	page := pageOf(t, searchOf(t, index, store.Query{Where: parsed.Where, Sort: parsed.Sort, Count: parsed.Count}))
	_, block, found := strings.Cut(string(readme), "```sql\n")
	if !found {
		t.Fatal("README.md has no statement")
	}
	block, _, _ = strings.Cut(block, "```")
	var lines []string
	for line := range strings.Lines(block) {
		line, _, _ = strings.Cut(line, "--")
		lines = append(lines, line)
	}
	if diff := cmp.Diff(words(page.SQL), words(strings.Join(lines, " "))); diff != "" {
		t.Errorf("README.md explains another statement (-sent +explained):\n%s\nsent: %s %v", diff, page.SQL, page.Args)
	}
}

// words returns a text without the space that SQL ignores.
func words(sql string) string {
	return strings.NewReplacer("( ", "(", " )", ")").Replace(strings.Join(strings.Fields(sql), " "))
}

// TestConstants compares the numeric constants of the engine and its parts with those of the README.
func TestConstants(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tuning, _ := strings.Cut(string(readme), "## Tuning constants")
	var source strings.Builder
	files := 0
	for _, pattern := range []string{"*.go", "../*.go", "../../batcher/*.go", "../indexrow/*.go", "../schema/*.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files++
			source.Write(text)
			for _, constant := range numericConstants(t, text) {
				if !strings.Contains(tuning, "`"+constant+"`") {
					t.Errorf("README.md does not explain %s of %s", constant, name)
				}
			}
		}
	}
	if files < 40 {
		t.Errorf("found %d files", files)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|").FindAllStringSubmatch(tuning, -1) {
		for _, name := range regexp.MustCompile("`(?:Limits\\.)?([^`]*)`").FindAllStringSubmatch(row[1], -1) {
			if !strings.Contains(source.String(), name[1]) {
				t.Errorf("README.md explains %s, which does not exist", name[1])
			}
		}
	}
}

// numericConstants returns the names of a file's package constants whose value is written as a number
// or as a multiple of a unit of time.
func numericConstants(t *testing.T, text []byte) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(gotoken.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != gotoken.CONST {
			continue
		}
		for _, spec := range group.Specs {
			values := spec.(*ast.ValueSpec)
			for i, value := range values.Values {
				isNumber := false
				ast.Inspect(value, func(n ast.Node) bool {
					switch n := n.(type) {
					case *ast.BasicLit:
						isNumber = isNumber || n.Kind == gotoken.INT || n.Kind == gotoken.FLOAT
					case *ast.SelectorExpr:
						isNumber = isNumber || n.X.(*ast.Ident).Name == "time"
					}
					return true
				})
				if isNumber {
					names = append(names, values.Names[i].Name)
				}
			}
		}
	}
	return names
}
