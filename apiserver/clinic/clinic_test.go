package clinic

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/hack/dev/examples"
)

// TestRecords holds the records to what every server of FHIR can store: they are valid without
// warnings, and refer only to records before them.
func TestRecords(t *testing.T) {
	before := map[string]bool{}
	for _, record := range Records() {
		resource, err := r4.Read(record.JSON, r4.Options{Type: record.Type, Warnings: true})
		if err != nil {
			t.Errorf("%s/%s: %v", record.Type, record.ID, err)
		}
		// A narrative, which dom-6 recommends, would repeat the other elements.
		warnings := slices.DeleteFunc(resource.Warnings, func(i r4.Issue) bool {
			return i.Severity == r4.SeverityWarning && strings.Contains(i.Diagnostics, "narrative")
		})
		if resource.ID != record.ID || len(warnings) > 0 {
			t.Errorf("%s/%s: got id %q and warnings %v", record.Type, record.ID, resource.ID, warnings)
		}
		for _, literal := range r4.Literals(record.JSON, record.Type) {
			if !before[literal.Reference] {
				t.Errorf("%s/%s refers to %s, which is not loaded before it", record.Type, record.ID, literal.Reference)
			}
		}
		before[record.Type+"/"+record.ID] = true
	}
	for _, kind := range r4.Types {
		if _, err := files.ReadDir("records/" + kind.Name); err != nil {
			t.Errorf("there is no %s: %v", kind.Name, err)
		}
	}
}

// TestAnimals holds the animals to the extension patient-animal and to microchips of ISO 11784.
func TestAnimals(t *testing.T) {
	// The country code 999 is reserved for tests, so that no real animal has these numbers.
	microchip := regexp.MustCompile(`^999[0-9]{12}$`)
	seen := map[string]bool{}
	animals := 0
	for _, record := range Records() {
		if record.Type != "Patient" {
			continue
		}
		animals++
		for _, part := range []string{"StructureDefinition/patient-animal", `"species"`, `"genderStatus"`} {
			if !bytes.Contains(record.JSON, []byte(part)) {
				t.Errorf("Patient/%s has no %s", record.ID, part)
			}
		}
		var patient struct {
			Identifier []struct{ System, Value string }
		}
		if err := json.Unmarshal(record.JSON, &patient); err != nil {
			t.Fatal(err)
		}
		for _, chip := range patient.Identifier {
			if chip.System != "urn:iso:std:iso:11784" || !microchip.MatchString(chip.Value) || seen[chip.Value] {
				t.Errorf("Patient/%s: the microchip %v is invalid or not unique", record.ID, chip)
			}
			seen[chip.Value] = true
		}
	}
	if animals != 8 || len(seen) < 6 {
		t.Errorf("got %d animals with %d microchips, want 8 with at least 6", animals, len(seen))
	}
}

// TestCodes holds every code to HL7's package: a code that it does not have is written as a text.
func TestCodes(t *testing.T) {
	known := hl7Codes(t)
	for _, record := range Records() {
		var body any
		if err := json.Unmarshal(record.JSON, &body); err != nil {
			t.Fatal(err)
		}
		for _, coding := range codings(body) {
			if !known[coding] {
				t.Errorf("%s/%s: HL7's package has no code %v with that display", record.Type, record.ID, coding)
			}
		}
	}
}

// coding is a code with the text that its code system, a value set or an example has for it.
type coding struct{ System, Code, Display string }

// hl7Codes returns the codes of all resources of HL7's package that can define or use codes of ours.
func hl7Codes(t *testing.T) map[coding]bool {
	t.Helper()
	path, err := examples.Fetch(t.Context(), filepath.Join("..", "..", "bin"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[coding]bool{}
	err = examples.Walk(path, func(name string, text []byte) error {
		kind, _, _ := strings.Cut(name, "-")
		switch {
		case kind == "CodeSystem":
			var system struct {
				URL     string
				Concept []coding
			}
			err := json.Unmarshal(text, &system)
			for _, concept := range system.Concept {
				known[coding{system.URL, concept.Code, concept.Display}] = true
			}
			return err
		case kind == "ValueSet":
			var set struct {
				Compose struct {
					Include []struct {
						System  string
						Concept []coding
					}
				}
			}
			err := json.Unmarshal(text, &set)
			for _, include := range set.Compose.Include {
				for _, concept := range include.Concept {
					known[coding{include.System, concept.Code, concept.Display}] = true
				}
			}
			return err
		case name == "Patient-animal.json":
			var animal any
			err := json.Unmarshal(text, &animal)
			for _, coding := range codings(animal) {
				known[coding] = true
			}
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return known
}

// codings returns the codings in a value, which have a system and a code.
func codings(value any) []coding {
	var found []coding
	switch value := value.(type) {
	case map[string]any:
		system, _ := value["system"].(string)
		code, isCoding := value["code"].(string)
		display, _ := value["display"].(string)
		if isCoding {
			found = append(found, coding{system, code, display})
		}
		for _, member := range value {
			found = append(found, codings(member)...)
		}
	case []any:
		for _, item := range value {
			found = append(found, codings(item)...)
		}
	}
	return found
}

// TestSchedules holds slots and bookings to the records: vets and rooms have the ids of the slots as
// identifiers, and the animals exist.
func TestSchedules(t *testing.T) {
	all := map[string][]byte{}
	identifiers := map[string]string{}
	for _, record := range Records() {
		all[record.Type+"/"+record.ID] = record.JSON
		for _, id := range regexp.MustCompile(`urn:uuid:([0-9a-f-]{36})`).FindAllSubmatch(record.JSON, -1) {
			if other := identifiers[string(id[1])]; other != "" {
				t.Errorf("%s/%s and a %s have the same UUID", record.Type, record.ID, other)
			}
			identifiers[string(id[1])] = record.Type
		}
	}
	for _, s := range schedules() {
		for field, kind := range map[string]string{"resourceId": "Practitioner", "locationId": "Location"} {
			if id := strings.Trim(string(s.Request[field]), `"`); identifiers[id] != kind {
				t.Errorf("%s %s is no identifier of a %s", field, id, kind)
			}
		}
		for _, b := range s.Bookings {
			if all["Patient/"+b.Patient] == nil {
				t.Errorf("a booking is for %q, which is no animal", b.Patient)
			}
		}
	}
}

// TestGitOpsSample holds config/samples/gitops to the same clinic, so that applying it to a demo
// site only adds labels.
func TestGitOpsSample(t *testing.T) {
	bodies := map[string]map[string]any{}
	for _, record := range Records() {
		var body map[string]any
		if err := json.Unmarshal(record.JSON, &body); err != nil {
			t.Fatal(err)
		}
		bodies[record.Type+"/"+record.ID] = body
	}
	paths, err := filepath.Glob(filepath.Join("..", "..", "config", "samples", "gitops", "[^k]*.yaml"))
	if err != nil || len(paths) != 4 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for decoder := yaml.NewYAMLOrJSONDecoder(file, 1<<10); ; {
			var object struct {
				Kind     string
				Metadata struct{ Name string }
				Spec     map[string]any
			}
			if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(path, err)
			}
			for element, want := range object.Spec {
				if diff := cmp.Diff(want, bodies[object.Kind+"/"+object.Metadata.Name][element]); diff != "" {
					t.Errorf("%s/%s: %s (-sample +clinic):\n%s", object.Kind, object.Metadata.Name, element, diff)
				}
			}
		}
	}
}
