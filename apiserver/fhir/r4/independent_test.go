package r4

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-health/paddock/hack/examples"
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
	judgments := judge(t, samples)
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
	if len(samples) < 2000 {
		t.Errorf("there are %d samples", len(samples))
	}
}

// refusedByUs are the kinds of damage that R4 forbids and the other validator may
// let pass, with the class of the disagreement.
var refusedByUs = map[string]string{
	"a doubled name":                              "doubled names",
	"a misspelt name":                             "value[x] of a type that there is not",
	"two choices":                                 "several choices",
	"an object for a primitive":                   "objects for primitives",
	"an empty companion":                          "emptiness",
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
var refusedByThem = []struct {
	pattern *regexp.Regexp
	class   string
}{
	{regexp.MustCompile(`^String must contain non-whitespace content`), "strings of white space"},
	{regexp.MustCompile(`^Invalid numeric value`), "large exponents"},
	{regexp.MustCompile(`^Invalid (instant|dateTime|time) format`), "fractions of more than 9 digits"},
	{regexp.MustCompile(`tim-9|^Error evaluating invariant expression .*\.repeat$`), "tim-9 with several whens"},
}

// classify names the reason of a disagreement, as docs/fhir-validation.md does.
func classify(s sample, accepted bool, theirs []string) string {
	if !accepted {
		return refusedByUs[s.damage]
	}
	class := ""
	for _, issue := range theirs {
		i := slices.IndexFunc(refusedByThem, func(r struct {
			pattern *regexp.Regexp
			class   string
		}) bool {
			return r.pattern.MatchString(issue)
		})
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

// judge asks the independent validator what is wrong with each sample.
func judge(t *testing.T, samples []sample) [][]string {
	tool := installTool(t)
	definitions := filepath.Join(t.TempDir(), "definitions.json")
	if err := os.WriteFile(definitions, structureDefinitions(t), 0o600); err != nil {
		t.Fatal(err)
	}
	var input bytes.Buffer
	fmt.Fprintln(&input, definitions)
	for _, s := range samples {
		line, err := json.Marshal(s.body)
		if err != nil {
			t.Fatal(err)
		}
		input.Write(append(line, '\n'))
	}
	command := exec.CommandContext(t.Context(), "node", filepath.Join(tool, "check.mjs"))
	command.Stdin = &input
	var complaints bytes.Buffer
	command.Stderr = &complaints
	output, err := command.Output()
	if err != nil {
		t.Fatalf("node: %v\n%s", err, complaints.String())
	}
	var judgments [][]string
	for line := range bytes.Lines(output) {
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

// installTool installs hack/r4check below bin, where it stays.
func installTool(t *testing.T) string {
	const source = "../../../hack/r4check"
	tool, err := filepath.Abs("../../../bin/r4check")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(tool, 0o755); err != nil {
		t.Fatal(err)
	}
	current := true
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc", "check.mjs"} {
		text, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			t.Fatal(err)
		}
		before, _ := os.ReadFile(filepath.Join(tool, name))
		if !bytes.Equal(before, text) {
			current = current && name == "check.mjs"
			if err := os.WriteFile(filepath.Join(tool, name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(tool, "node_modules")); current && err == nil {
		return tool
	}
	command := exec.CommandContext(t.Context(), "npm", "ci", "--silent", "--no-audit", "--no-fund")
	command.Dir = tool
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, output)
	}
	return tool
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
