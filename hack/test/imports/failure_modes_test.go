package imports

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/errorcode"
)

// TestFailureModes fails if a row of docs/failure-modes.md names a test or an error code that does not
// exist, or names no test.
func TestFailureModes(t *testing.T) {
	docs := filepath.Join("..", "..", "..", "docs")
	page, err := os.ReadFile(filepath.Join(docs, "failure-modes.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows, problems := checkFailureModes(string(page), func(path string) ([]string, error) { return testNames(filepath.Join(docs, path)) })
	for _, problem := range problems {
		t.Errorf("docs/failure-modes.md:%s", problem)
	}
	if rows < 18 { // one for each failure
		t.Errorf("docs/failure-modes.md has only %d rows", rows)
	}
}

var (
	// linkedTest is a link whose text is the name of a test and whose target is the file of the test.
	linkedTest = regexp.MustCompile(`\[([^\]]+)\]\(([^)]+)\)`)
	// codeOfStatus is an HTTP status with a code of package errorcode.
	codeOfStatus = regexp.MustCompile("\\b[45][0-9]{2} `([a-z_]+)`")
	// delimiter is the line below the header of a table.
	delimiter = regexp.MustCompile(`^\|( *:?-+:? *\|)+$`)
)

// checkFailureModes checks the tables of a page. The last column of each row has the tests. names
// returns the names of the tests in a file. It returns the number of rows, and a message that begins
// with the line number for each problem.
func checkFailureModes(page string, names func(path string) ([]string, error)) (rows int, problems []string) {
	lines := strings.Split(page, "\n")
	for i, line := range lines {
		report := func(format string, args ...any) {
			problems = append(problems, fmt.Sprintf("%d: ", i+1)+fmt.Sprintf(format, args...))
		}
		for _, code := range codeOfStatus.FindAllStringSubmatch(line, -1) {
			if _, ok := errorcode.Lookup(code[1]); !ok {
				report("there is no error code %q", code[1])
			}
		}
		isHeader := i+1 < len(lines) && delimiter.MatchString(lines[i+1])
		if !strings.HasPrefix(line, "|") || delimiter.MatchString(line) || isHeader {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if slices.ContainsFunc(cells, func(cell string) bool { return strings.TrimSpace(cell) == "" }) {
			report("a cell is empty")
		}
		tests := cells[len(cells)-1]
		linked := linkedTest.FindAllStringSubmatch(tests, -1)
		if len(linked) == 0 {
			report("the last cell names no test")
		}
		for _, test := range linked {
			found, err := names(test[2])
			if err != nil {
				report("%v", err)
			} else if !slices.Contains(found, test[1]) {
				report("%s has no test %q", test[2], test[1])
			}
		}
	}
	return rows, problems
}

// specFunctions are the functions of Ginkgo whose first argument is the text of a spec or a container.
var specFunctions = []string{"Context", "Describe", "DescribeTable", "Entry", "It", "Specify", "When"}

// testNames returns the names of the Test functions of a file and the texts of its specs. If a text is
// put together from several strings, each of them is a name, without the spaces around it.
func testNames(path string) ([]string, error) {
	if !strings.HasSuffix(path, "_test.go") {
		return nil, fmt.Errorf("%s is not a file of tests", path)
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("read tests: %w", err)
	}
	var names []string
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.FuncDecl:
			if strings.HasPrefix(n.Name.Name, "Test") && n.Recv == nil {
				names = append(names, n.Name.Name)
			}
		case *ast.CallExpr:
			if name, ok := n.Fun.(*ast.Ident); ok && slices.Contains(specFunctions, name.Name) && len(n.Args) > 0 {
				names = append(names, texts(n.Args[0])...)
			}
		}
		return true
	})
	return names, nil
}

// texts returns the string literals of an expression that joins strings.
func texts(expression ast.Expr) []string {
	switch e := expression.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return []string{strings.TrimSpace(text)}
		}
	case *ast.BinaryExpr:
		return append(texts(e.X), texts(e.Y)...)
	}
	return nil
}

func TestCheckFailureModes(t *testing.T) {
	const header = "| operation | shown by |\n|---|---|\n"
	names := func(path string) ([]string, error) {
		if path != "../a_test.go" {
			return nil, fmt.Errorf("%s does not exist", path)
		}
		return []string{"TestA", "loses nothing"}, nil
	}
	for name, test := range map[string]struct {
		page string
		rows int
		want []string
	}{
		"no table":         {page: "# Failures\n"},
		"a function":       {page: header + "| read | [TestA](../a_test.go) |\n", rows: 1},
		"a spec":           {page: header + "| read | [loses nothing](../a_test.go), [TestA](../a_test.go) |\n", rows: 1},
		"no test":          {page: header + "| read | the code |\n", rows: 1, want: []string{"3: the last cell names no test"}},
		"an empty cell":    {page: header + "|  | [TestA](../a_test.go) |\n", rows: 1, want: []string{"3: a cell is empty"}},
		"another function": {page: header + "| read | [TestB](../a_test.go) |\n", rows: 1, want: []string{`3: ../a_test.go has no test "TestB"`}},
		"part of a spec":   {page: header + "| read | [loses](../a_test.go) |\n", rows: 1, want: []string{`3: ../a_test.go has no test "loses"`}},
		"another file":     {page: header + "| read | [TestA](../b_test.go) |\n", rows: 1, want: []string{"3: ../b_test.go does not exist"}},
		"a code":           {page: "503 `unavailable`, 503 `gone_fishing`\n", want: []string{`1: there is no error code "gone_fishing"`}},
	} {
		t.Run(name, func(t *testing.T) {
			rows, problems := checkFailureModes(test.page, names)
			if rows != test.rows {
				t.Errorf("%d rows, want %d", rows, test.rows)
			}
			if diff := cmp.Diff(test.want, problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTestNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a_test.go")
	const source = "package a\n\nfunc TestA(t *testing.T) { other(\"no spec\") }\n\nfunc (s suite) TestOfSuite() {}\n\n" +
		"var _ = Describe(\"A site\", func() {\n\tIt(\"serves \"+name+`, alone `, func() {})\n})\n"
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := testNames(path)
	if diff := cmp.Diff([]string{"TestA", "A site", "serves", ", alone"}, got); err != nil || diff != "" {
		t.Errorf("error %v, names (-want +got):\n%s", err, diff)
	}
	for _, other := range []string{filepath.Join(filepath.Dir(path), "b_test.go"), filepath.Join(filepath.Dir(path), "a.go")} {
		if _, err := testNames(other); err == nil {
			t.Errorf("%s: got no error", other)
		}
	}
}
