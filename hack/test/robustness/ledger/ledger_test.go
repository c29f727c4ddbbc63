package ledger_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/hack/test/robustness/ledger"
)

func open(t *testing.T, path, code string) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(path, code)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func add(t *testing.T, l *ledger.Ledger, engine string, seed uint64, verdict string) {
	t.Helper()
	err := l.Append(ledger.Row{Engine: engine, Seed: seed, Commit: "abc", Faults: "kill etcd at 0.1s", Verdict: verdict, Operations: 10})
	if err != nil {
		t.Fatal(err)
	}
}

// TestLedger checks that results are found again, and that other code starts the count anew.
func TestLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.tsv")
	l := open(t, path, "code1")
	add(t, l, "cluster", 1, ledger.Passed)
	add(t, l, "cluster", 2, ledger.Failed)
	add(t, l, "cluster", 2, ledger.Passed)
	add(t, l, "postgres", 1, ledger.Passed)

	again := open(t, path, "code1")
	got := []string{again.Verdict("cluster", 1), again.Verdict("cluster", 2), again.Verdict("cluster", 3), again.Verdict("postgres", 2)}
	if diff := cmp.Diff([]string{ledger.Passed, ledger.Failed, "", ""}, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	if passed, failed := again.Count("cluster"); passed != 1 || failed != 1 {
		t.Errorf("cluster: %d passed and %d failed, want 1 and 1", passed, failed)
	}

	other := open(t, path, "code2")
	if passed, failed := other.Count("cluster"); passed != 0 || failed != 0 {
		t.Errorf("other code: %d passed and %d failed, want none", passed, failed)
	}
	add(t, other, "cluster", 1, ledger.Passed)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := "engine\tseed\tcommit\tcode\tfaults\tverdict\toperations\n" +
		"cluster\t2\tabc\tcode1\tkill etcd at 0.1s\tfailed\t10\n" +
		"cluster\t1\tabc\tcode2\tkill etcd at 0.1s\tpassed\t10\n"
	if diff := cmp.Diff(want, string(content)); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
}

func TestInvalidLedger(t *testing.T) {
	const header = "engine\tseed\tcommit\tcode\tfaults\tverdict\toperations\n"
	for content, want := range map[string]string{
		"nothing\n":             "the first line",
		header + "cluster\t1\n": "line 2: got 2 columns",
		header + "cluster\tx\tc\tc\tf\tpassed\t1\n": "line 2",
		header + "cluster\t1\tc\tc\tf\tmaybe\t1\n":  `line 2: column verdict is "maybe"`,
	} {
		path := filepath.Join(t.TempDir(), "ledger.tsv")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ledger.Open(path, "code"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got the error %v, want one with %q", content, err, want)
		}
	}
}

// TestCommittedLedger checks that the ledger of the repository can be read.
func TestCommittedLedger(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "ledger.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ledger.tsv")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, path, "code")
}

// module writes a module whose program imports one of its two packages, and returns its folder.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":            "module example.org/m\n\ngo 1.26\n",
		"main.go":           "package main\n\nimport _ \"example.org/m/linked\"\n\nfunc main() {}\n",
		"linked/linked.go":  "package linked\n\nimport _ \"embed\"\n\n//go:embed schema.sql\nvar Schema string\n",
		"linked/schema.sql": "SELECT 1",
		"other/other.go":    "package other\n",
	} {
		change(t, dir, name, content)
	}
	return dir
}

func change(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDigest checks that the digest changes with the code that is linked, and with nothing else.
func TestDigest(t *testing.T) {
	for name, test := range map[string]struct {
		file, content string
		changes       bool
	}{
		"code":             {"linked/linked.go", "package linked\n", true},
		"a migration":      {"linked/schema.sql", "SELECT 2", true},
		"a directive":      {"linked/linked.go", "package linked\n\nimport _ \"embed\"\n\n//go:embed *.sql\nvar Schema string\n", true},
		"a comment":        {"linked/linked.go", "// Package linked has a schema.\npackage linked\n\nimport _ \"embed\"\n\n//go:embed schema.sql\nvar Schema string // of tables\n", false},
		"white space":      {"linked/linked.go", "package linked\n\nimport _   \"embed\"\n//go:embed schema.sql\nvar Schema string", false},
		"another file":     {"linked/more.go", "package linked\n", true},
		"a test":           {"linked/linked_test.go", "package linked\n", false},
		"another package":  {"other/other.go", "package other\n\nvar X int\n", false},
		"a document":       {"README.md", "text", false},
		"the Go version":   {"go.mod", "module example.org/m\n\ngo 1.25\n", true},
		"the same content": {"linked/schema.sql", "SELECT 1", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := module(t)
			before := digest(t, dir)
			change(t, dir, test.file, test.content)
			if after := digest(t, dir); (after != before) != test.changes {
				t.Errorf("the digest was %s and is %s, want a change: %t", before, after, test.changes)
			}
		})
	}
}

func digest(t *testing.T, dir string) string {
	t.Helper()
	d, err := ledger.Digest(dir, ".")
	if err != nil {
		t.Fatal(err)
	}
	return d
}
