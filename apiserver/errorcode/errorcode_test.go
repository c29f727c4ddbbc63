package errorcode

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// foreign are constants named like codes that are codes of other protocols.
var foreign = []string{"invalid_token", "invalid_request"}

// emitted returns the codes in the source of the API server: the constants whose name begins with
// Code or code, the literals in a field Code of an r4.Issue, and those that a function information
// gets. The value is where the code is.
func emitted(t *testing.T) map[string]string {
	t.Helper()
	codes := map[string]string{}
	add := func(files *token.FileSet, value ast.Expr) {
		literal, ok := value.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return
		}
		if code, err := strconv.Unquote(literal.Value); err == nil {
			codes[code] = files.Position(literal.Pos()).String()
		}
	}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || !ofAnAPI(path) {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if i < len(n.Values) && isCodeName(name.Name) {
						add(files, n.Values[i])
					}
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Code" {
					add(files, n.Value)
				}
			case *ast.CallExpr:
				if called, ok := n.Fun.(*ast.Ident); ok && called.Name == "information" {
					add(files, n.Args[0])
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return codes
}

// ofAnAPI reports whether a file is of a package whose errors clients of the HTTP APIs get.
func ofAnAPI(path string) bool {
	return slices.ContainsFunc([]string{"../fhir/", "../ahds/", "../web/", "../portal/", "../native/"}, func(folder string) bool { return strings.HasPrefix(filepath.ToSlash(path), folder) })
}

func isCodeName(name string) bool {
	rest, ok := strings.CutPrefix(strings.ToLower(name[:1])+name[1:], "code")
	return ok && rest != "" && rest[:1] == strings.ToUpper(rest[:1])
}

// TestEveryCodeHasAnEntry compares the codes in the source with the table.
func TestEveryCodeHasAnEntry(t *testing.T) {
	codes := emitted(t)
	if len(codes) < 80 {
		t.Errorf("found %d codes in the source, want at least 80", len(codes))
	}
	for code, place := range codes {
		if _, ok := Lookup(code); !ok && !slices.Contains(foreign, code) {
			t.Errorf("%s: the code %q has no entry in entries.go", place, code)
		}
	}
	for _, entry := range All() {
		if _, ok := codes[entry.Code]; !ok {
			t.Errorf("no error has the code %q of entries.go", entry.Code)
		}
	}
}

func TestEntries(t *testing.T) {
	all := All()
	if !slices.IsSortedFunc(all, func(a, b Entry) int { return strings.Compare(a.Code, b.Code) }) {
		t.Error("the entries are not sorted by code")
	}
	for _, entry := range append(all, mustLookup(t, "per-1")) {
		for _, text := range []string{entry.Text, entry.Cause, entry.Remedy} {
			if !strings.HasSuffix(strings.TrimRight(text, "`"), ".") || strings.ToUpper(text[:1]) != text[:1] && text[0] != '_' && !strings.HasPrefix(text, "isActive") && !strings.HasPrefix(text, "resourceType") {
				t.Errorf("%s: %q is not a sentence", entry.Code, text)
			}
		}
		if got := mustLookup(t, entry.Code); got != entry {
			t.Errorf("%s: got %v", entry.Code, got)
		}
	}
	for _, code := range []string{"", "nonsense", "per-", "PER-1", "per-1x", "../per-1"} {
		if _, ok := Lookup(code); ok {
			t.Errorf("%q has an entry", code)
		}
	}
	if Text("nonsense") != "nonsense" || Pages("").Of("timeout") != "/errors/timeout" || Pages("https://h/errors").Of("timeout") != "https://h/errors/timeout" {
		t.Error("wrong text or address")
	}
}

func mustLookup(t *testing.T, code string) Entry {
	t.Helper()
	entry, ok := Lookup(code)
	if !ok {
		t.Fatalf("%s has no entry", code)
	}
	return entry
}

// TestGuide compares docs/guides/errors.md with the table. With UPDATE_GOLDEN it writes the guide.
func TestGuide(t *testing.T) {
	const guide = "../../docs/guides/errors.md"
	want := []byte(writeGuide())
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(guide, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("run UPDATE_GOLDEN=1 go test ./apiserver/errorcode: (-want +got)\n%s", cmp.Diff(string(want), string(got)))
	}
}

func writeGuide() string {
	var text strings.Builder
	text.WriteString(`# Codes of errors

Every error has a stable code for programs. In an OperationOutcome of the FHIR API it is ` + "`issue.details.coding.code`" + `, whose ` + "`system`" + ` is the address of the pages that the server has about codes; in a problem of the AHDS API it is ` + "`code`" + `, and ` + "`type`" + ` is the address of its page. So each error leads to the text below: ` + "`{public URL}/errors/{code}`" + ` is a page for browsers and JSON for programs.

This file is written from the table in ` + "`apiserver/errorcode`" + ` by ` + "`UPDATE_GOLDEN=1 go test ./apiserver/errorcode`" + `.
`)
	for _, entry := range append(All(), mustInvariant()) {
		fmt.Fprintf(&text, "\n## %s\n\n%s\n\n- **Cause:** %s\n- **What to do:** %s\n", entry.Code, entry.Text, entry.Cause, entry.Remedy)
	}
	return text.String()
}

func mustInvariant() Entry {
	entry, _ := Lookup("per-1")
	entry.Code = "per-1 and other keys of invariants"
	return entry
}
