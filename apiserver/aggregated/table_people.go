package aggregated

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// R4 patient.html, person.html, practitioner.html, relatedperson.html.

var (
	fullNameColumn  = column{name: "Full Name", cell: personName, description: "The text of the official name, or else its given and family names. Without an official name, the first element of name is shown."}
	familyColumn    = column{name: "Family", cell: family, description: "The family name of the official name or, without one, of the first element of name."}
	givenColumn     = column{name: "Given", cell: given, description: "The given names of the official name or, without one, of the first element of name. If that element has neither given nor family names, its text."}
	birthDateColumn = column{name: "Birthdate", cell: one[primitive]("birthDate"), description: "The date of birth: a day, a month or a year."}
	activeColumn    = column{name: "Active", cell: one[primitive]("active"), description: "Whether the record is in use."}
	genderColumn    = column{name: "Gender", cell: one[primitive]("gender"), description: "The administrative gender."}
	phoneColumn     = column{name: "Phone", cell: contact("phone"), description: "The first telephone number whose use is not old."}
	emailColumn     = column{name: "Email", cell: contact("email"), description: "The first e-mail address whose use is not old."}
)

// wide returns a column that is only printed with -o wide.
func wide(c column) column {
	c.wide = true
	return c
}

var patientTable = table{
	fullNameColumn,
	{name: "Species", cell: animal("species"), description: "The species, from the extension patient-animal."},
	{name: "Owner", cell: owner, description: "For an animal, the contact with the relationship owner, else the first contact with a name or an organization."},
	birthDateColumn,
	activeColumn,
	wide(familyColumn),
	wide(givenColumn),
	wide(genderColumn),
	{name: "Breed", wide: true, cell: animal("breed"), description: "The breed, from the extension patient-animal."},
	{name: "Deceased", wide: true, cell: either(one[primitive]("deceasedDateTime"), one[primitive]("deceasedBoolean")), description: "When the patient died, or whether the patient died."},
	{name: "Organization", wide: true, cell: one[reference]("managingOrganization"), description: "The organization that keeps the record."},
}

var personTable = table{
	fullNameColumn,
	birthDateColumn,
	activeColumn,
	wide(familyColumn),
	wide(givenColumn),
	wide(genderColumn),
	wide(phoneColumn),
	{name: "Organization", wide: true, cell: one[reference]("managingOrganization"), description: "The organization that keeps the record."},
}

var practitionerTable = table{
	fullNameColumn,
	{name: "Qualification", cell: first[qualification]("qualification"), description: "The first qualification."},
	activeColumn,
	wide(familyColumn),
	wide(givenColumn),
	wide(phoneColumn),
	wide(emailColumn),
	wide(genderColumn),
	wide(birthDateColumn),
}

var relatedPersonTable = table{
	fullNameColumn,
	{name: "Patient", cell: one[reference]("patient"), description: "The patient to whom the person is related."},
	{name: "Relationship", cell: first[codeableConcept]("relationship"), description: "The relationship of the person to the patient."},
	activeColumn,
	wide(familyColumn),
	wide(givenColumn),
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

// animalParts returns the parts of the extension patient-animal, and whether the patient has it.
func animalParts(resource elements) (parts []extension, isAnimal bool) {
	for _, outer := range read[[]extension](resource["extension"]) {
		if outer.URL == animalExtension {
			return read[[]extension](outer.Extension), true
		}
	}
	return nil, false
}

// animal prints a part of the extension patient-animal.
func animal(part string) cell {
	return func(resource elements) string {
		parts, _ := animalParts(resource)
		for _, inner := range parts {
			if inner.URL == part {
				return inner.ValueCodeableConcept.String()
			}
		}
		return ""
	}
}

// patientContact is a person or an organization that answers for a patient.
type patientContact struct {
	Relationship []codeableConcept `json:"relationship"`
	Name         humanName         `json:"name"`
	Organization reference         `json:"organization"`
}

func (c patientContact) String() string { return cmp.Or(c.Name.String(), c.Organization.String()) }

func (c patientContact) isOwner() bool {
	return slices.ContainsFunc(c.Relationship, func(r codeableConcept) bool { return strings.EqualFold(r.String(), "owner") })
}

// owner prints the owner of an animal. R4 has no element for owners, so owner prints the contact
// with the relationship owner, or else the first contact with a name or an organization.
func owner(resource elements) string {
	if _, isAnimal := animalParts(resource); !isAnimal {
		return ""
	}
	contacts := read[[]patientContact](resource["contact"])
	if i := slices.IndexFunc(contacts, patientContact.isOwner); i >= 0 {
		return contacts[i].String()
	}
	return first[patientContact]("contact")(resource)
}
