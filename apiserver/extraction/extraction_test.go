package extraction_test

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/paddock-health/paddock/apiserver/ahds/eventgroup"
	"github.com/paddock-health/paddock/apiserver/ahds/slot"
	"github.com/paddock-health/paddock/apiserver/extraction"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/hack/dev/examples"
	"github.com/paddock-health/paddock/hack/dev/module"
	"github.com/paddock-health/paddock/hack/test/searchtruth"
)

// golden has the version of the extraction, and for each type and parameter the number and a hash
// of the values in the samples.
const golden = "testdata/values.txt"

var extractor extraction.Extractor

// TestVersion fails if anything else is found in the samples than by the recorded version. Sites in
// Postgres would keep the index rows of the last release otherwise.
func TestVersion(t *testing.T) {
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	var recorded int64
	if _, err := fmt.Sscanf(string(text), "version %d\n", &recorded); err != nil {
		t.Fatalf("%s: %v", golden, err)
	}
	found := foundInSamples(t)
	got := fmt.Sprintf("version %d\n%s", extraction.Version, found)
	if got == string(text) {
		return
	}
	diff := cmp.Diff(strings.Split(string(text), "\n"), strings.Split(got, "\n"))
	switch {
	case extraction.Version < recorded:
		t.Fatalf("extraction.Version is %d, lower than the recorded %d: never lower it", extraction.Version, recorded)
	case extraction.Version == recorded:
		t.Fatalf("the values found in records have changed, so servers must reindex: set extraction.Version to %d in extraction.go, then run\n"+
			"\tUPDATE_GOLDEN=1 go test ./apiserver/extraction -run TestVersion\n(-recorded +found):\n%s", recorded+1, diff)
	case os.Getenv("UPDATE_GOLDEN") == "":
		t.Fatalf("extraction.Version is %d; record what it finds by\n\tUPDATE_GOLDEN=1 go test ./apiserver/extraction -run TestVersion\n(-recorded +found):\n%s", extraction.Version, diff)
	}
	if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
		t.Fatal(err)
	}
}

// foundInSamples returns a line for each type and parameter.
func foundInSamples(t *testing.T) string {
	t.Helper()
	type values struct {
		n   int
		all hash.Hash
	}
	found := map[string]*values{}
	for _, kind := range r4.Types {
		for _, p := range r4.SearchParameters(kind.Name) { // also those without values in the samples
			found[kind.Name+" "+p.Name] = &values{all: sha256.New()}
		}
	}
	add := func(key, text string) {
		if found[key] == nil {
			found[key] = &values{all: sha256.New()}
		}
		found[key].n++
		fmt.Fprint(found[key].all, text)
	}
	eachSample(t, func(recordType string, text []byte) {
		entries := extractor.Extract(recordType, text)
		var lines []string
		for _, entry := range entries {
			folded := ""
			if text, ok := entry.Value.(store.Text); ok {
				folded = extractor.Fold(text.Original)
			}
			lines = append(lines, fmt.Sprintf("%s %T %v %t %s\n", entry.Param, entry.Value, entry.Value, extractor.IsFacet(entry.Param), folded))
		}
		slices.Sort(lines)
		for _, line := range lines {
			param, _, _ := strings.Cut(line, " ")
			if param == "" {
				param = "(mentions)"
			}
			add(recordType+" "+param, line)
		}
		if labels := extractor.Labels(recordType, entries); len(labels.Names)+len(labels.Links) > 0 {
			add(recordType+" (labels)", fmt.Sprint(labels))
		}
	})
	var lines strings.Builder
	total := 0
	for _, name := range slices.Sorted(maps.Keys(found)) {
		total += found[name].n
		fmt.Fprintf(&lines, "%s: %d %.6x\n", name, found[name].n, found[name].all.Sum(nil))
	}
	if total < 1000 {
		t.Fatalf("only %d values were found in the samples", total)
	}
	return lines.String()
}

// TestReferences compares the results of References with the references among those of Extract.
func TestReferences(t *testing.T) {
	n := 0
	eachSample(t, func(recordType string, text []byte) {
		want := slices.DeleteFunc(extractor.Extract(recordType, text), func(entry store.IndexValue) bool {
			_, ok := entry.Value.(store.Reference)
			return !ok
		})
		n += len(want)
		if diff := cmp.Diff(want, extractor.References(recordType, text), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-among all +alone):\n%s\n%s", recordType, diff, text)
		}
	})
	if n < 50 {
		t.Errorf("the samples have %d references, expected are more than 50", n)
	}
}

// ahdsSamples are stored records of AHDS, by type.
var ahdsSamples = []struct{ recordType, content string }{
	{slot.Type, `{"startAt":"1970-01-01T05:45:01+05:45","endAt":"1970-01-01T00:00:02.5Z","isBooked":true,"isActive":true,"locationId":"0198C4F2-7d1e-7c3a-9b5f-00000000000a",` +
		`"resourceId":"0198c4f2-7d1e-7c3a-9b5f-00000000000b","serviceType":{"code":"Vax","system":"urn:s:1"},"notes":"Straße"}`},
	{eventgroup.Type, `{"name":"Spring","status":"active","category":"Campaign","description":"Every YEAR","locationId":"L.1","organizationId":"O.1"}`},
}

// eachSample visits HL7's examples, records with the extensions that additions search, and
// ahdsSamples.
func eachSample(t *testing.T, visit func(recordType string, text []byte)) {
	t.Helper()
	for _, sample := range ahdsSamples {
		visit(sample.recordType, fmt.Appendf(nil, `{"content":%s,"service":{}}`, sample.content))
	}
	bin, err := module.Bin()
	if err != nil {
		t.Fatal(err)
	}
	path, err := examples.Fetch(t.Context(), bin)
	if err != nil {
		t.Fatal(err)
	}
	additions, err := searchtruth.Additions(bin)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range additions {
		for _, fhirType := range slices.Sorted(maps.Keys(searchtruth.Samples)) {
			if a.ValueType() == "" {
				break // HL7's examples have its values, if any
			}
			visit(a.Base[0], fmt.Appendf(nil, `{"resourceType":%q,"extension":[%s]}`, a.Base[0], a.Extension(fhirType, searchtruth.Samples[fhirType])))
		}
	}
	err = examples.Walk(path, func(name string, text []byte) error {
		recordType, _, _ := strings.Cut(filepath.Base(name), "-")
		visit(recordType, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
