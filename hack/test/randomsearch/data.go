package randomsearch

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// schemas has the elements of random resources by type, each as name:kind. An element whose name ends
// in * has one to three values. An element whose name ends in ! is always there.
var schemas = map[string]string{
	"Device": `identifier*:identifier status:code/active,inactive,entered-in-error,unknown type:concept deviceName*:deviceName
		manufacturer:text modelNumber:text udiCarrier*:udi owner:to/Organization patient:to/Patient location:to/Location contact*:contact url:uri`,
	"DeviceDefinition": `identifier*:identifier type:concept parentDevice:to/DeviceDefinition contact*:contact`,
	"DeviceMetric":     `identifier*:identifier type!:concept category!:code/measurement,setting,calculation,unspecified source:to/Device parent:to/Device`,
	"Endpoint": `identifier*:identifier status!:code/active,suspended,error,off,entered-in-error,test connectionType!:coding name:text
		managingOrganization:to/Organization payloadType*!:concept address!:uri contact*:contact`,
	"Group": `identifier*:identifier type!:code/person,animal,practitioner,device,medication,substance actual!:yes code:concept name:text
		managingEntity:to/Organization,Practitioner,PractitionerRole,RelatedPerson characteristic*:characteristic member*:member`,
	"HealthcareService": `identifier*:identifier active:bool providedBy:to/Organization category*:concept type*:concept specialty*:concept
		location*:to/Location name:text telecom*:contact coverageArea*:to/Location program*:concept characteristic*:concept endpoint*:to/Endpoint`,
	"Location": `identifier*:identifier status:code/active,suspended,inactive operationalStatus:coding name:text alias*:text type*:concept telecom*:contact
		address:address position:position managingOrganization:to/Organization partOf:to/Location endpoint*:to/Endpoint`,
	"Organization": `identifier*!:identifier active:bool type*:concept name!:text alias*:text telecom*:contact address*:address
		partOf:to/Organization contact*:contacts endpoint*:to/Endpoint`,
	"OrganizationAffiliation": `identifier*:identifier active:bool period:period organization:to/Organization participatingOrganization:to/Organization
		network*:to/Organization code*:concept specialty*:concept location*:to/Location healthcareService*:to/HealthcareService telecom*:contact endpoint*:to/Endpoint`,
	"Patient": `identifier*:identifier active:bool name*:name telecom*:contact gender:code/male,female,other,unknown birthDate:date address*:address
		communication*:language generalPractitioner*:to/Organization,Practitioner,PractitionerRole managingOrganization:to/Organization link*:patientLink extension*:animal`,
	"Person": `identifier*:identifier name*:name telecom*:contact gender:code/male,female,other,unknown birthDate:date address*:address
		managingOrganization:to/Organization active:bool link*:personLink`,
	"Practitioner": `identifier*:identifier active:bool name*:name telecom*:contact address*:address gender:code/male,female,other,unknown birthDate:date
		communication*:tongue`,
	"PractitionerRole": `identifier*:identifier active:bool period:period practitioner:to/Practitioner organization:to/Organization code*:concept
		specialty*:concept location*:to/Location healthcareService*:to/HealthcareService telecom*:contact endpoint*:to/Endpoint`,
	"RelatedPerson": `identifier*:identifier active:bool patient!:to/Patient relationship*:concept name*:name telecom*:contact
		gender:code/male,female,other,unknown birthDate:date address*:address`,
}

// The lists are short, so that records share values. Some values have characters that queries must
// escape or fold.
var (
	texts = []string{
		"Smith", "smith", "Smyth", "Schmidt", "Müller", "MULLER", "O'Brien", "de la Cruz", "a,b", "x|y", "c$d", `back\slash`, "Straße", "strasse",
		" Zoë ", "Zoe Anna", "猫田", "50% (x)", "Anna", "Ann",
	}
	systems   = []string{"urn:s1", "urn:s2", "http://s.example/3"}
	codes     = []string{"a", "B", "b", "c d", "x|y", "é"}
	numbers   = []string{"1", "2", "A-3", "a-3", "4,5"}
	uris      = []string{"http://u.example/a", "http://u.example/a/b", "http://u.example/a/b/c", "http://u.example/ab", "http://u.example", "urn:a:b", "http://U.example/a"}
	versions  = []string{"1", "1.0", "1.2", "1.2.3", "1.20", "2", "2.0.0-rc.1"}
	dates     = []string{"1980", "1980-01", "1980-01-01", "1980-05", "1980-05-01", "1980-05-03", "1980-05-04", "1981", "1999-12-31", "1999-12", "2000-01-01", "2000-02", "2000"}
	moments   = []string{"1980-05-03T10:00:00Z", "1980-05-03T23:30:00-02:00", "2000-01-01T00:00:00.5Z", "1999-12-31T23:59:59.999Z", "2010-06-15T12:00:00+05:30"}
	languages = []string{"en", "de", "fr-CH"}
	places    = [][2]float64{{52.52, 13.405}, {52.53, 13.41}, {48.1374, 11.5755}, {-33.8688, 151.2093}, {0, 179.99}, {0, -179.99}, {89.9, 10}}
)

// data makes resources at random.
type data struct {
	*rand.Rand
	// base is the address of the site.
	base string
	// ids has the ids of the records of each type. Some references have an id that is not among them.
	ids map[string][]string
}

type object = map[string]any

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func (d *data) chance(percent int) bool { return d.IntN(100) < percent }

// resource makes a resource.
func (d *data) resource(typ, id string) object {
	r := object{"resourceType": typ, "id": id}
	if d.chance(50) {
		r["meta"] = d.meta()
	}
	for _, element := range strings.Fields(schemas[typ]) {
		name, kind, _ := strings.Cut(element, ":")
		always := strings.HasSuffix(name, "!")
		if !always && d.chance(45) {
			continue
		}
		name = strings.TrimSuffix(name, "!")
		if many, ok := strings.CutSuffix(name, "*"); ok {
			var values []any
			for range 1 + d.IntN(3) {
				values = append(values, d.value(typ, kind))
			}
			r[many] = values
		} else {
			r[name] = d.value(typ, kind)
		}
	}
	if typ == "Patient" && d.chance(30) {
		r["deceasedBoolean"] = d.chance(50)
	} else if typ == "Patient" && d.chance(30) {
		r["deceasedDateTime"] = pick(d.Rand, append(dates, moments...))
	}
	return r
}

func (d *data) meta() object {
	meta := object{}
	for _, name := range []string{"tag", "security"} {
		if d.chance(50) {
			meta[name] = []any{d.coding(), d.coding()}
		}
	}
	if d.chance(50) {
		meta["profile"] = []any{d.canonical(), d.canonical()}
	}
	if d.chance(50) || len(meta) == 0 {
		meta["source"] = pick(d.Rand, uris)
	}
	return meta
}

// canonical makes a canonical URL, with or without a version.
func (d *data) canonical() string {
	if d.chance(40) {
		return pick(d.Rand, uris)
	}
	return pick(d.Rand, uris) + "|" + pick(d.Rand, versions)
}

// value makes a value of one of the kinds in schemas.
func (d *data) value(typ, kind string) any {
	kind, choices, _ := strings.Cut(kind, "/")
	switch kind {
	case "bool":
		return d.chance(50)
	case "yes":
		return true
	case "code":
		return pick(d.Rand, strings.Split(choices, ","))
	case "text":
		return pick(d.Rand, texts)
	case "uri":
		return pick(d.Rand, uris)
	case "date":
		return pick(d.Rand, dates)
	case "to":
		return d.reference(pick(d.Rand, strings.Split(choices, ",")))
	case "position":
		place := pick(d.Rand, places)
		return object{"latitude": place[0], "longitude": place[1]}
	case "coding":
		return d.coding()
	case "concept":
		return d.concept()
	case "identifier":
		return d.identifier()
	case "name":
		return d.name()
	case "contact":
		return d.contact()
	case "address":
		return d.address(typ)
	case "period":
		return d.period()
	}
	return d.component(kind)
}

// component makes a value of a kind that has elements of its own and is used by few types.
func (d *data) component(kind string) any {
	language := object{"coding": []any{object{"system": "urn:ietf:bcp:47", "code": pick(d.Rand, languages)}}}
	switch kind {
	case "deviceName":
		return object{"name": pick(d.Rand, texts), "type": "user-friendly-name"}
	case "udi":
		return object{"deviceIdentifier": pick(d.Rand, texts), "carrierHRF": pick(d.Rand, texts)}
	case "contacts":
		return object{"telecom": []any{d.contact(), d.contact()}}
	case "language":
		return object{"language": language}
	case "tongue":
		return language
	case "patientLink":
		return object{"type": "seealso", "other": d.reference(pick(d.Rand, []string{"Patient", "RelatedPerson"}))}
	case "personLink":
		return object{"target": d.reference(pick(d.Rand, []string{"Patient", "Practitioner", "RelatedPerson", "Person"}))}
	case "member":
		return object{"entity": d.reference(pick(d.Rand, []string{"Patient", "Practitioner", "PractitionerRole", "Device", "Group", "Medication"}))}
	case "characteristic":
		c := object{"code": d.concept(), "exclude": d.chance(30)}
		if d.chance(70) {
			c["valueCodeableConcept"] = d.concept()
		} else {
			c["valueBoolean"] = d.chance(50)
		}
		return c
	case "animal":
		return object{"url": "http://hl7.org/fhir/StructureDefinition/patient-animal", "extension": []any{
			object{"url": pick(d.Rand, []string{"species", "breed", "genderStatus"}), "valueCodeableConcept": d.concept()},
		}}
	}
	panic("randomsearch: no kind " + kind)
}

func (d *data) coding() object {
	coding := object{}
	if d.chance(80) {
		coding["system"] = pick(d.Rand, systems)
	}
	if d.chance(90) || len(coding) == 0 {
		coding["code"] = pick(d.Rand, codes)
	}
	if d.chance(40) {
		coding["display"] = pick(d.Rand, texts)
	}
	return coding
}

func (d *data) concept() object {
	concept := object{}
	if d.chance(85) {
		concept["coding"] = []any{d.coding(), d.coding()}[:1+d.IntN(2)]
	}
	if d.chance(30) || len(concept) == 0 {
		concept["text"] = pick(d.Rand, texts)
	}
	return concept
}

func (d *data) identifier() object {
	identifier := object{"value": pick(d.Rand, numbers)}
	if d.chance(80) {
		identifier["system"] = pick(d.Rand, systems)
	}
	if d.chance(40) {
		identifier["type"] = d.concept()
	}
	return identifier
}

func (d *data) name() object {
	name := object{"family": pick(d.Rand, texts)}
	if d.chance(60) {
		name["given"] = []any{pick(d.Rand, texts), pick(d.Rand, texts)}[:1+d.IntN(2)]
	}
	for _, part := range []string{"prefix", "suffix"} {
		if d.chance(15) {
			name[part] = []any{pick(d.Rand, texts)}
		}
	}
	if d.chance(20) {
		name["text"] = pick(d.Rand, texts)
	}
	return name
}

func (d *data) contact() object {
	return object{"system": pick(d.Rand, []string{"phone", "email", "url"}), "value": pick(d.Rand, []string{"555", "556", "a@b.example", "A@b.example"})}
}

func (d *data) address(typ string) object {
	address := object{"city": pick(d.Rand, texts)}
	for _, part := range []string{"text", "district", "state", "postalCode", "country"} {
		if d.chance(30) {
			address[part] = pick(d.Rand, texts)
		}
	}
	if d.chance(30) {
		address["line"] = []any{pick(d.Rand, texts)}
	}
	if d.chance(60) {
		uses := []string{"home", "work", "temp", "old", "billing"}
		if typ == "Organization" { // org-2
			uses = uses[1:]
		}
		address["use"] = pick(d.Rand, uses)
	}
	return address
}

func (d *data) period() object {
	period := object{}
	if d.chance(70) {
		period["start"] = pick(d.Rand, []string{"1980", "1980-05-03", "1980-05-03T10:00:00Z", "1981-02"})
	}
	if d.chance(70) || len(period) == 0 {
		period["end"] = pick(d.Rand, []string{"1999-12-31", "2000", "2000-01-01T00:00:00.5Z", "2010-07"})
	}
	return period
}

// reference makes a reference to a record of a type, in one of the forms that references have.
func (d *data) reference(typ string) object {
	id := "gone"
	if ids := d.ids[typ]; len(ids) > 0 && d.chance(93) {
		id = pick(d.Rand, ids)
	}
	local := typ + "/" + id
	reference := object{}
	switch n := d.IntN(100); {
	case n < 60:
		reference["reference"] = local
	case n < 68:
		reference["reference"] = d.base + "/" + local
	case n < 74:
		reference["reference"] = local + "/_history/1"
	case n < 78:
		reference["reference"] = typ + "/" + strings.ToUpper(id)
	case n < 84:
		reference["reference"] = "https://other.example/fhir/" + local
	case n < 88:
		reference["reference"] = fmt.Sprintf("urn:uuid:00000000-0000-4000-8000-00000000000%d", d.IntN(4))
	case n < 94:
		reference["type"] = typ
	default:
		reference["display"] = pick(d.Rand, texts)
	}
	if d.chance(15) || reference["type"] != nil {
		reference["identifier"] = d.identifier()
	}
	return reference
}
