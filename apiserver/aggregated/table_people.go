package aggregated

import "github.com/go-json-experiment/json/jsontext"

// R4 patient.html, person.html, practitioner.html, relatedperson.html.

var (
	familyColumn    = column{name: "Family", cell: family, description: "The family name: of the official name, else of the first."}
	givenColumn     = column{name: "Given", cell: given, description: "The given names of the same name, or its text."}
	birthDateColumn = column{name: "Birthdate", cell: one[primitive]("birthDate"), description: "The date of birth, as exactly as it is known."}
	activeColumn    = column{name: "Active", cell: one[primitive]("active"), description: "Whether the record is in use."}
	genderColumn    = column{name: "Gender", cell: one[primitive]("gender"), description: "The administrative gender."}
	phoneColumn     = column{name: "Phone", cell: contact("phone"), description: "The first telephone number that is not an old one."}
	emailColumn     = column{name: "Email", cell: contact("email"), description: "The first e-mail address that is not an old one."}
)

// wide returns a column that is only printed with -o wide.
func wide(c column) column {
	c.wide = true
	return c
}

var patientTable = table{
	familyColumn,
	givenColumn,
	{name: "Species", cell: animal("species"), description: "The species, from the extension patient-animal."},
	birthDateColumn,
	activeColumn,
	wide(genderColumn),
	{name: "Breed", wide: true, cell: animal("breed"), description: "The breed, from the extension patient-animal."},
	{name: "Deceased", wide: true, cell: either(one[primitive]("deceasedDateTime"), one[primitive]("deceasedBoolean")), description: "When the patient died, or whether the patient died."},
	{name: "Organization", wide: true, cell: one[reference]("managingOrganization"), description: "The organization that keeps the record."},
}

var personTable = table{
	familyColumn,
	givenColumn,
	birthDateColumn,
	activeColumn,
	wide(genderColumn),
	wide(phoneColumn),
	{name: "Organization", wide: true, cell: one[reference]("managingOrganization"), description: "The organization that keeps the record."},
}

var practitionerTable = table{
	familyColumn,
	givenColumn,
	{name: "Qualification", cell: first[qualification]("qualification"), description: "The first qualification."},
	activeColumn,
	wide(phoneColumn),
	wide(emailColumn),
	wide(genderColumn),
	wide(birthDateColumn),
}

var relatedPersonTable = table{
	familyColumn,
	givenColumn,
	{name: "Patient", cell: one[reference]("patient"), description: "The patient to whom the person is related."},
	{name: "Relationship", cell: first[codeableConcept]("relationship"), description: "What the person is to the patient."},
	activeColumn,
	wide(phoneColumn),
	wide(emailColumn),
	wide(genderColumn),
	wide(birthDateColumn),
}

type qualification struct {
	Code codeableConcept `json:"code"`
}

func (q qualification) String() string { return q.Code.String() }

// animalExtension is the URL of the extension with the species and breed of a patient.
const animalExtension = "http://hl7.org/fhir/StructureDefinition/patient-animal"

type extension struct {
	URL                  string          `json:"url"`
	Extension            jsontext.Value  `json:"extension"`
	ValueCodeableConcept codeableConcept `json:"valueCodeableConcept"`
}

// animal shows a part of the extension patient-animal.
func animal(part string) cell {
	return func(resource elements) string {
		for _, outer := range read[[]extension](resource["extension"]) {
			if outer.URL != animalExtension {
				continue
			}
			for _, inner := range read[[]extension](outer.Extension) {
				if inner.URL == part {
					return inner.ValueCodeableConcept.String()
				}
			}
		}
		return ""
	}
}
