package aggregated

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var patientTable = table{
	columns: []metav1.TableColumnDefinition{
		{Name: "Family", Type: "string", Description: "The family name: of the official name, else of the first."},
		{Name: "Given", Type: "string", Description: "The given names of the same name, or its text."},
		{Name: "Species", Type: "string", Description: "The species, from the extension patient-animal."},
		{Name: "Birthdate", Type: "string", Description: "The date of birth, as exactly as it is known."},
		{Name: "Active", Type: "string", Description: "Whether the record is in use."},
		{Name: "Gender", Type: "string", Priority: 1, Description: "The administrative gender."},
		{Name: "Breed", Type: "string", Priority: 1, Description: "The breed, from the extension patient-animal."},
	},
	cells: patientCells,
}

// patient is what the columns need of a Patient. R4 patient.html.
type patient struct {
	Active    *bool       `json:"active"`
	BirthDate string      `json:"birthDate"`
	Gender    string      `json:"gender"`
	Name      []humanName `json:"name"`
	Extension []extension `json:"extension"`
}

type humanName struct {
	Use    string   `json:"use"`
	Text   string   `json:"text"`
	Family string   `json:"family"`
	Given  []string `json:"given"`
}

type extension struct {
	URL                  string          `json:"url"`
	Extension            []extension     `json:"extension"`
	ValueCodeableConcept codeableConcept `json:"valueCodeableConcept"`
}

type codeableConcept struct {
	Text   string `json:"text"`
	Coding []struct {
		Code    string `json:"code"`
		Display string `json:"display"`
	} `json:"coding"`
}

// animalExtension has the species and breed of a patient in it.
const animalExtension = "http://hl7.org/fhir/StructureDefinition/patient-animal"

func patientCells(spec json.RawMessage) []any {
	var p patient
	if err := jsonv2.Unmarshal(spec, &p); err != nil {
		p = patient{} // an element of another shape than R4's leaves the row without details, not the list without the row
	}
	family, given := p.shownName()
	active := ""
	if p.Active != nil {
		active = strconv.FormatBool(*p.Active)
	}
	return []any{family, given, p.animal("species"), p.BirthDate, active, p.Gender, p.animal("breed")}
}

func (p *patient) shownName() (family, given string) {
	if len(p.Name) == 0 {
		return "", ""
	}
	shown := p.Name[0]
	if i := slices.IndexFunc(p.Name, func(n humanName) bool { return n.Use == "official" }); i >= 0 {
		shown = p.Name[i]
	}
	if shown.Family == "" && len(shown.Given) == 0 {
		return "", shown.Text
	}
	return shown.Family, strings.Join(shown.Given, " ")
}

// animal returns a part of the extension patient-animal, as text.
func (p *patient) animal(part string) string {
	for _, outer := range p.Extension {
		if outer.URL != animalExtension {
			continue
		}
		for _, inner := range outer.Extension {
			if inner.URL == part {
				return inner.ValueCodeableConcept.String()
			}
		}
	}
	return ""
}

// String is the text of a concept, or else what its first coding is called.
func (c codeableConcept) String() string {
	if c.Text != "" || len(c.Coding) == 0 {
		return c.Text
	}
	return cmp.Or(c.Coding[0].Display, c.Coding[0].Code)
}
