package extract_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/hack/examples"
	"github.com/paddock-health/paddock/hack/module"
)

// golden has the version of the extraction and the hash of what it finds in HL7's examples.
const golden = "testdata/version.txt"

// TestVersion fails when something else is found than when the version was last raised:
// databases would keep what the last release indexed.
func TestVersion(t *testing.T) {
	var found []string
	eachExample(t, func(name, recordType string, text []byte) {
		for _, entry := range fhir.Extract(recordType, text) {
			found = append(found, fmt.Sprintf("%s %s %T %v %t\n", name, entry.Param, entry.Value, entry.Value, fhir.IsFacet(entry.Param)))
		}
	})
	if len(found) < 1000 {
		t.Fatalf("only %d entries were found in the examples", len(found))
	}
	slices.Sort(found)
	got := fmt.Sprintf("%d %x\n", fhir.ExtractVersion, sha256.Sum256([]byte(strings.Join(found, ""))))
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the examples give %s, and %s has %s: where the entries have changed, raise fhir.ExtractVersion, and run this test with UPDATE_GOLDEN=1", got, golden, want)
	}
}

// TestReferences compares the references that are found alone with those among all entries.
func TestReferences(t *testing.T) {
	n := 0
	eachExample(t, func(name, recordType string, text []byte) {
		want := slices.DeleteFunc(fhir.Extract(recordType, text), func(entry store.Entry) bool {
			_, ok := entry.Value.(store.Reference)
			return !ok
		})
		n += len(want)
		if diff := cmp.Diff(want, fhir.References(recordType, text), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-among all +alone):\n%s", name, diff)
		}
	})
	if n < 50 {
		t.Errorf("the examples have %d references, expected are more than 50", n)
	}
}

func eachExample(t *testing.T, visit func(name, recordType string, text []byte)) {
	t.Helper()
	bin, err := module.Bin()
	if err != nil {
		t.Fatal(err)
	}
	path, err := examples.Fetch(t.Context(), bin)
	if err != nil {
		t.Fatal(err)
	}
	err = examples.Walk(path, func(name string, text []byte) error {
		recordType, _, _ := strings.Cut(filepath.Base(name), "-")
		visit(name, recordType, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
