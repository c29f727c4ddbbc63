// Package searchcost limits what any search may cost. It makes the records of a practice and queries
// for them. Its test counts the pages that each query touches in Postgres. The test of the etcd-backed
// engine measures the processor time of the same queries.
package searchcost

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// There is one Practitioner for perPractitioner Patients, one Organization for perOrganization
// Patients, and one RelatedPerson for perRelated Patients.
const (
	perPractitioner = 33
	perOrganization = 200
	perRelated      = 5
)

type object = map[string]any

// clinic makes the records of a practice. Words have frequencies like those of real records: few words
// are common and many are rare. Some elements are in few records, and some are in nearly all records.
type clinic struct{ *rand.Rand }

// zipf returns a number below n. Small numbers are common.
func (c clinic) zipf(n int) int { return int(float64(n) * c.Float64() * c.Float64() * c.Float64()) }

func (c clinic) chance(percent int) bool { return c.IntN(100) < percent }

var syllables = []string{"an", "bel", "cor", "dou", "es", "fin", "gra", "hol", "is", "jen", "kal", "lor", "mac", "nor", "ow", "per", "qui", "ros", "sta", "tor", "ul", "ven", "wal", "xan", "yor", "zel"}

// word returns the n-th word of a kind.
func word(kind, n int) string {
	a, b, c := syllables[(n*7+kind)%len(syllables)], syllables[(n/len(syllables)+n*3+kind*5)%len(syllables)], syllables[(n/7+kind*11)%len(syllables)]
	return string(a[0]-32) + a[1:] + b + c
}

func (c clinic) pick(words ...string) string { return words[c.zipf(len(words))] }

func (c clinic) address() []any {
	return []any{object{
		"use": c.pick("home", "work", "temp"), "line": []any{fmt.Sprintf("%d %s Street", 1+c.IntN(400), word(3, c.zipf(800)))},
		"city": word(4, c.zipf(300)), "state": c.pick("VIC", "NSW", "QLD", "WA", "SA", "TAS", "NT", "ACT"), "postalCode": fmt.Sprint(2000 + c.zipf(3000)), "country": c.pick("AU", "NZ", "GB"),
	}}
}

func (c clinic) telecom() []any {
	all := []any{object{"system": "phone", "value": fmt.Sprintf("+61 3 %08d", c.IntN(1e8)), "use": "home"}}
	if c.chance(97) {
		all = append(all, object{"system": "email", "value": fmt.Sprintf("%s.%d@example.org", word(1, c.zipf(2000)), c.IntN(1e6))})
	}
	return all
}

func (c clinic) name(kind int) []any {
	return []any{object{"use": "usual", "family": word(kind, c.zipf(3000)), "given": []any{word(2, c.zipf(600)), word(2, c.zipf(600))}}}
}

func identifiers(kind string, n int) []any {
	return []any{
		object{"system": "https://clinic.example.org/" + kind, "value": fmt.Sprintf("%s-%07d", kind, n)},
		object{"system": "urn:oid:1.2.36.146.595.217.0.1", "value": fmt.Sprintf("9851%011d", n), "type": object{"coding": []any{object{"system": "http://terminology.hl7.org/CodeSystem/v2-0203", "code": "MR"}}}},
	}
}

func reference(typeName string, n int) object {
	return object{"reference": fmt.Sprintf("%s/%s-%d", typeName, typeName, n)}
}

func coding(system, code string) object {
	return object{"coding": []any{object{"system": system, "code": code}}}
}

// birth returns a birth date of the last 25 years, sometimes without day or month.
func (c clinic) birth() string {
	year, month := 2001+c.IntN(25), 1+c.IntN(12)
	if c.chance(1) {
		return fmt.Sprint(year)
	}
	if c.chance(1) {
		return fmt.Sprintf("%d-%02d", year, month)
	}
	return fmt.Sprintf("%d-%02d-%02d", year, month, 1+c.IntN(28))
}

func (c clinic) patient(n, patients int) object {
	species := c.pick("canislf", "feliscat", "equus", "oryctol", "bostaur")
	r := object{
		"identifier": identifiers("patients", n), "active": c.chance(95), "name": c.name(0), "telecom": c.telecom(), "gender": c.pick("female", "male", "unknown", "other"), "address": c.address(),
		"generalPractitioner": []any{reference("Practitioner", c.zipf(1+patients/perPractitioner))}, "managingOrganization": reference("Organization", c.zipf(1+patients/perOrganization)),
		"communication": []any{object{"language": coding("urn:ietf:bcp:47", c.pick("en", "vi", "it", "zh"))}},
		"extension": []any{object{"url": "http://hl7.org/fhir/StructureDefinition/patient-animal", "extension": []any{
			object{"url": "species", "valueCodeableConcept": coding("http://hl7.org/fhir/animal-species", species)},
			object{"url": "breed", "valueCodeableConcept": coding("http://snomed.info/sct", fmt.Sprint(58108001+c.zipf(200)))},
			object{"url": "genderStatus", "valueCodeableConcept": coding("http://hl7.org/fhir/animal-genderstatus", c.pick("neutered", "intact", "unknown"))},
		}}},
	}
	if c.chance(99) {
		r["birthDate"] = c.birth()
	}
	if c.chance(3) {
		r["deceasedDateTime"] = fmt.Sprintf("2026-%02d-%02dT10:00:00Z", 1+c.IntN(6), 1+c.IntN(28))
	}
	if c.IntN(1000) == 0 {
		r["meta"] = object{"tag": []any{object{"system": "https://clinic.example.org/tags", "code": "recall"}}}
	}
	return r
}

func (c clinic) practitioner(n int) object {
	return object{
		"identifier": identifiers("practitioners", n), "active": c.chance(98), "name": c.name(5), "telecom": c.telecom(), "address": c.address(), "gender": c.pick("female", "male"),
		"communication": []any{coding("urn:ietf:bcp:47", c.pick("en", "vi"))},
	}
}

func (c clinic) organization(n int) object {
	r := object{
		"identifier": identifiers("organizations", n), "active": c.chance(98), "name": word(6, c.zipf(500)) + " Clinic", "telecom": c.telecom(), "address": c.address(),
		"type": []any{coding("http://terminology.hl7.org/CodeSystem/organization-type", c.pick("prov", "dept", "team"))},
	}
	for _, contact := range []string{"address", "telecom"} { // R4 org-2, org-3
		for _, each := range r[contact].([]any) {
			if each.(object)["use"] == "home" {
				each.(object)["use"] = "work"
			}
		}
	}
	if n > 10 {
		r["partOf"] = reference("Organization", c.zipf(10))
	}
	return r
}

func (c clinic) related(n, patients int) object {
	return object{
		"identifier": identifiers("related", n), "active": c.chance(98), "patient": reference("Patient", c.IntN(patients)), "name": c.name(7), "telecom": c.telecom(), "address": c.address(),
		"relationship": []any{coding("http://terminology.hl7.org/CodeSystem/v3-RoleCode", c.pick("OWNER", "GUARD"))},
	}
}

// Records calls write with the operations that write the records of a practice with a number of
// Patients, up to 2,000 at a time. The last call may have no operations. Records reuses the slice
// after write has returned.
func Records(seed uint64, patients int, write func([]store.Op) error) error {
	c := clinic{rand.New(rand.NewPCG(seed, 1))}
	var portion []store.Op
	add := func(typeName string, n int, r object) error {
		r["resourceType"], r["id"] = typeName, fmt.Sprintf("%s-%d", typeName, n)
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		read, err := r4.Read(text, r4.Options{Type: typeName})
		if err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
		portion = append(portion, store.Op{
			Kind: store.Put, Method: store.MethodPut, Key: store.Key{Type: typeName, ID: fmt.Sprintf("%s-%d", typeName, n)},
			Body: store.Body{JSON: read.Body, IDOffset: read.IDOffset, MetaOffset: read.MetaOffset},
		})
		if len(portion) < 2000 {
			return nil
		}
		err = write(portion)
		portion = portion[:0]
		return err
	}
	for n := range patients {
		err := add("Patient", n, c.patient(n, patients))
		if err == nil && n%perPractitioner == 0 {
			err = add("Practitioner", n/perPractitioner, c.practitioner(n/perPractitioner))
		}
		if err == nil && n%perOrganization == 0 {
			err = add("Organization", n/perOrganization, c.organization(n/perOrganization))
		}
		if err == nil && n%perRelated == 0 {
			err = add("RelatedPerson", n/perRelated, c.related(n/perRelated, patients))
		}
		if err != nil {
			return err
		}
	}
	return write(portion)
}
