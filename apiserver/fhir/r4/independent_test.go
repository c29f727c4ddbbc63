package r4

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-health/paddock/hack/dev/examples"
)

// sample is a resource, and the damage that was done to it, if any.
type sample struct {
	typ, damage, body string
}

// TestIndependentValidator has valid and damaged resources judged by a validator
// that shares nothing with ours but HL7's definitions. Where the two disagree, the
// reason must be one of those in docs/fhir-validation.md.
func TestIndependentValidator(t *testing.T) {
	samples := makeSamples(t)
	judgments := validatorProblems(t, samples)
	classes := map[string]int{}
	agreed := 0
	for i, s := range samples {
		_, err := Read([]byte(s.body), Options{Type: s.typ})
		accepted, theirs := err == nil, judgments[i]
		if accepted == (len(theirs) == 0) {
			agreed++
			continue
		}
		class := classify(s, accepted, theirs)
		if class == "" {
			t.Errorf("unexplained: damage %q, ours %v, theirs %q\n%s", s.damage, err, theirs, s.body)
			class = "unexplained"
		}
		classes[class]++
	}
	t.Logf("agreed on %d of %d", agreed, len(samples))
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		t.Logf("%5d %s", classes[class], class)
	}
	checkExplained(t, classes)
	if len(samples) < 2000 {
		t.Errorf("there are %d samples", len(samples))
	}
}

// checkExplained makes sure that the guide says whose error each class is.
func checkExplained(t *testing.T, classes map[string]int) {
	guide, err := os.ReadFile("../../../docs/fhir-validation.md")
	if err != nil {
		t.Fatal(err)
	}
	for class := range classes {
		if !strings.Contains(string(guide), "| "+class+" |") {
			t.Errorf("docs/fhir-validation.md does not explain the class %q", class)
		}
	}
}

// refusedByUs are the kinds of damage that R4 forbids and the other validator may
// let pass, with the class of the disagreement.
var refusedByUs = map[string]string{
	"a doubled name":                              "doubled names",
	"a misspelt name":                             "value[x] of a type that there is not",
	"two choices":                                 "several choices",
	"an object for a primitive":                   "objects for primitives",
	"an empty primitive extension":                "emptiness",
	"an empty string":                             "emptiness",
	"an empty array":                              "emptiness",
	"an empty object":                             "emptiness",
	"an object with nothing but an id":            "emptiness",
	"a control character":                         "control characters",
	"a code of no value set":                      "required value sets",
	"a code in capitals":                          "required value sets",
	"a fraction where an integer must be":         "how a number is written",
	"a day that no calendar has":                  "the calendar",
	"a time without a zone":                       "times without a zone",
	"white space in what has none":                "ids",
	"a period that ends before it starts":         "invariants",
	"a contact point without a system":            "invariants",
	"a contained resource that nothing refers to": "invariants",
	"an unusable id":                              "ids",
	"a reference of no form":                      "references",
	"a reference to an unknown type":              "references",
	"a reference to the wrong type":               "references",
	"a reference to nothing contained":            "references",
	"a script in a narrative":                     "narratives",
	"an event handler in a narrative":             "narratives",
}

// refusedByThem are the reasons for which the other validator refuses what R4 allows.
var refusedByThem = []reason{
	{regexp.MustCompile(`^String must contain non-whitespace content`), "strings of white space"},
	{regexp.MustCompile(`^Invalid numeric value`), "large exponents"},
	{regexp.MustCompile(`^Invalid (instant|dateTime|time) format`), "fractions of more than 9 digits"},
	{regexp.MustCompile(`^\w.* \w+\.meta\.(versionId|lastUpdated)$`), "what the server sets"},
	{regexp.MustCompile(`tim-9|^Error evaluating invariant expression .*\.repeat$`), "tim-9 with several whens"},
}

type reason struct {
	pattern *regexp.Regexp
	class   string
}

// classify names the reason of a disagreement, as docs/fhir-validation.md does.
func classify(s sample, accepted bool, theirs []string) string {
	if !accepted {
		return refusedByUs[s.damage]
	}
	class := ""
	for _, issue := range theirs {
		i := slices.IndexFunc(refusedByThem, func(r reason) bool { return r.pattern.MatchString(issue) })
		if i < 0 {
			return ""
		}
		class = refusedByThem[i].class
	}
	return class
}

// makeSamples makes valid resources, and breaks others in one place each.
func makeSamples(t *testing.T) (samples []sample) {
	for i, typ := range Types {
		g := newGenerator(uint64(1000 + i))
		index, _ := resourceNamed([]byte(typ.Name))
		for range 70 {
			body := g.generate(typ.Name)
			samples = append(samples, sample{typ: typ.Name, body: string(body)})
		}
		broken := 0
		for broken < 90 {
			root := parseTree(t, g.generate(typ.Name))
			found := places(root, index)
			if len(found) == 0 {
				continue
			}
			d := pick(g, damages...)
			undo := d.do(pick(g, found...))
			if undo == nil {
				continue
			}
			samples = append(samples, sample{typ: typ.Name, damage: d.name, body: root.String()})
			broken++
		}
	}
	return samples
}

// validatorProblems returns the problems that the independent validator reports for each sample.
func validatorProblems(t *testing.T, samples []sample) (judgments [][]string) {
	definitions := filepath.Join(t.TempDir(), "definitions.json")
	if err := os.WriteFile(definitions, structureDefinitions(t), 0o600); err != nil {
		t.Fatal(err)
	}
	input := [][]byte{[]byte(definitions)}
	for _, s := range samples {
		line, err := json.Marshal(s.body)
		if err != nil {
			t.Fatal(err)
		}
		input = append(input, line)
	}
	for _, line := range runTool(t, "check.mjs", input) {
		var issues []string
		if err := json.Unmarshal(line, &issues); err != nil {
			t.Fatal(err)
		}
		judgments = append(judgments, issues)
	}
	if len(judgments) != len(samples) {
		t.Fatalf("%d judgments of %d samples", len(judgments), len(samples))
	}
	return judgments
}

// structureDefinitions are HL7's of all types, as one array.
func structureDefinitions(t *testing.T) []byte {
	path, err := examples.Fetch(t.Context(), filepath.Join("..", "..", "..", "bin"))
	if err != nil {
		t.Fatal(err)
	}
	var all []json.RawMessage
	err = examples.Walk(path, func(name string, text []byte) error {
		if !strings.HasPrefix(name, "StructureDefinition-") {
			return nil
		}
		var head struct{ Kind, Derivation, URL string }
		if err := json.Unmarshal(text, &head); err != nil {
			return err
		}
		isType := head.Derivation != "constraint" && head.Kind != "logical"
		if isType || strings.HasSuffix(head.URL, "/SimpleQuantity") {
			all = append(all, text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 200 {
		t.Fatal(fs.ErrNotExist)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
