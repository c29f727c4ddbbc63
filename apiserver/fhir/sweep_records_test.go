package fhir_test

import (
	"fmt"
	"regexp"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/test/searchtruth"
)

// sweepBodies are the resources of the sweep: the specs that send the same requests to two sites, one
// with hidden records and one without, and expect equal responses. They have a value for each search
// parameter, except for the extensions of r4/search_additions.json, which sweepRecord.body adds.
// @Type stands for a reference (@MANAGER for one to a type that varies), #c for a concept, #i for
// identifiers, #n for names, #t for contact points, #a for an address and #l for a language
// (sweepElements). WORD is a word that differs between groups of records, as LONGITUDE does, and OWN
// the id of the record. An element whose codes are fixed has one of them instead of WORD.
var sweepBodies = map[string]string{
	"Device": `"identifier":#i,"deviceName":[{"name":"WORD","type":"user-friendly-name"}],"location":@Location,"manufacturer":"WORD","modelNumber":"WORD",` +
		`"owner":@Organization,"patient":@Patient,"status":"active","contact":#t,"type":#c,"udiCarrier":[{"carrierHRF":"WORD","deviceIdentifier":"WORD"}],"url":"http://WORD.example/a/b"`,
	"DeviceDefinition": `"identifier":#i,"parentDevice":@DeviceDefinition,"contact":#t,"type":#c`,
	"DeviceMetric":     `"identifier":#i,"type":#c,"category":"unspecified","parent":@Device,"source":@Device`,
	"Endpoint": `"identifier":#i,"status":"active","connectionType":{"system":"urn:c","code":"WORD","display":"WORD"},"name":"WORD","managingOrganization":@Organization,` +
		`"payloadType":[#c],"address":"https://e.example","contact":#t`,
	"Group": `"identifier":#i,"type":"animal","actual":true,"code":#c,"managingEntity":@MANAGER,` +
		`"member":[{"entity":@Device},{"entity":@Group},{"entity":@Patient},{"entity":@Practitioner},{"entity":@PractitionerRole}],` +
		`"characteristic":[{"code":#c,"valueCodeableConcept":#c,"exclude":false}]`,
	"HealthcareService": `"identifier":#i,"active":true,"name":"WORD","providedBy":@Organization,"characteristic":[#c],"coverageArea":[@Location],"endpoint":[@Endpoint],` +
		`"location":[@Location],"program":[#c],"category":[#c],"type":[#c],"specialty":[#c],"telecom":#t`,
	"Location": `"identifier":#i,"status":"active","operationalStatus":{"system":"urn:c","code":"WORD","display":"WORD"},"name":"WORD","type":[#c],"telecom":#t,"address":#a,` +
		`"position":{"longitude":LONGITUDE,"latitude":48.2},"managingOrganization":@Organization,"partOf":@Location,"endpoint":[@Endpoint]`,
	"Organization": `"identifier":#i,"active":true,"type":[#c],"name":"WORD","telecom":#t,"address":[#a],"partOf":@Organization,"endpoint":[@Endpoint]`,
	"OrganizationAffiliation": `"identifier":#i,"active":true,"period":{"start":"2019-05-03","end":"2021-07-01"},"organization":@Organization,"participatingOrganization":@Organization,` +
		`"network":[@Organization],"code":[#c],"specialty":[#c],"location":[@Location],"healthcareService":[@HealthcareService],"telecom":#t,"endpoint":[@Endpoint]`,
	"Patient": `"identifier":#i,"active":true,"name":#n,"telecom":#t,"gender":"female",` +
		`"birthDate":"2011-05-03","deceasedDateTime":"2020-06-01","address":[#a],"communication":[{"language":#l}],"generalPractitioner":[@Organization,@Practitioner,@PractitionerRole],` +
		`"managingOrganization":@Organization,"link":[{"other":@Patient,"type":"seealso"},{"other":@RelatedPerson,"type":"seealso"}]`,
	"Person": `"identifier":#i,"name":#n,"telecom":#t,"gender":"female","birthDate":"1981-05-03","address":[#a],"managingOrganization":@Organization,"active":true,` +
		`"link":[{"target":@Patient},{"target":@Person},{"target":@Practitioner},{"target":@RelatedPerson}]`,
	"Practitioner": `"identifier":#i,"active":true,"name":#n,"telecom":#t,"address":[#a],"gender":"female","birthDate":"1982-05-03","communication":[#l]`,
	"PractitionerRole": `"identifier":#i,"active":true,"period":{"start":"2019-05-03","end":"2021-07-01"},"practitioner":@Practitioner,"organization":@Organization,"code":[#c],` +
		`"specialty":[#c],"location":[@Location],"healthcareService":[@HealthcareService],"telecom":#t,"endpoint":[@Endpoint]`,
	"RelatedPerson": `"identifier":#i,"active":true,"patient":@Patient,"relationship":[#c],"name":#n,"telecom":#t,"gender":"female","birthDate":"1983-05-03","address":[#a]`,
}

var sweepElements = strings.NewReplacer(
	"#i", `[{"type":{"coding":[{"system":"urn:kind","code":"MR"}],"text":"WORD"},"system":"urn:i","value":"WORD"},{"system":"urn:only","value":"OWN"}]`,
	"#c", `{"coding":[{"system":"urn:c","code":"WORD","display":"WORD"}],"text":"WORD"}`,
	"#t", `[{"system":"phone","value":"WORD"},{"system":"email","value":"WORD@b.example"}]`,
	"#a", `{"use":"work","line":["WORD"],"city":"WORD","state":"WORD","postalCode":"WORD","country":"WORD"}`,
	"#n", `[{"family":"WORD","given":["WORD"]}]`,
	"#l", `{"coding":[{"system":"urn:ietf:bcp:47","code":"nl"}],"text":"WORD"}`,
)

// sweepValues are values of the FHIR types that differ between groups of records.
var sweepValues = map[string]string{
	"CodeableConcept": "#c", "Coding": `{"system":"urn:c","code":"WORD","display":"WORD"}`, "HumanName": `{"family":"WORD"}`, "Address": `#a`,
	"Identifier": `{"system":"urn:i","value":"WORD"}`, "Reference": "@Patient", "string": `"WORD"`, "uri": `"urn:WORD"`,
}

// sweepRecord is a record of the sweep.
type sweepRecord struct {
	kind, id string
	// word is in its texts, and refersTo is the id of all that it refers to.
	word, refersTo string
	// label is a member of meta that hides it, empty for none.
	label string
}

// The words: hiddenWord is in all hidden records and some visible ones, otherWord in other visible
// ones.
const (
	hiddenWord = "xylo"
	otherWord  = "quartz"
)

// The labels that the rules of the sweep hide.
const (
	labelR       = `"security":[{"system":"http://terminology.hl7.org/CodeSystem/v3-Confidentiality","code":"R"},{"system":"urn:s","code":"WORD","display":"WORD"}]`
	labelV       = `"security":[{"code":"V"},{"system":"urn:s","code":"WORD","display":"WORD"}]`
	labelTag     = `"tag":[{"system":"urn:tag","code":"secret"},{"system":"urn:t","code":"WORD","display":"WORD"}]`
	labelProfile = `"profile":["http://WORD.example/p/q","http://secret.example/p|1.0"]`
)

// body is the record as JSON.
func (r sweepRecord) body() string {
	extensions, err := searchtruth.Extensions(bin, r.kind, sweepValues)
	Expect(err).NotTo(HaveOccurred())
	text := references.ReplaceAllStringFunc(extensions+sweepBodies[r.kind], func(found string) string { return r.reference(found[1:]) })
	meta := []string{`"source":"http://WORD.example/s/t"`}
	plain := []string{`"security":[{"system":"urn:s","code":"WORD","display":"WORD"}]`, `"tag":[{"system":"urn:t","code":"WORD","display":"WORD"}]`, `"profile":["http://WORD.example/p/q"]`}
	for _, member := range plain {
		name, _, _ := strings.Cut(member, ":")
		if strings.HasPrefix(r.label, name) {
			member = r.label
		}
		meta = append(meta, member)
	}
	text = `{"resourceType":"` + r.kind + `","id":"OWN","meta":{` + strings.Join(meta, ",") + `},` + sweepElements.Replace(text) + `}`
	longitude := map[string]string{hiddenWord: "16.3", otherWord: "-70.5"}[r.word]
	return strings.NewReplacer("WORD", r.word, "OWN", r.id, "LONGITUDE", longitude).Replace(text)
}

// references finds references in sweepBodies.
var references = regexp.MustCompile("@[A-Za-z]+")

// reference returns the reference of the record to a record of a type. Visible Devices and
// DeviceMetrics refer to visible records, because access to them depends on the referenced one.
func (r sweepRecord) reference(target string) string {
	id := r.refersTo
	if target == "MANAGER" { // one of several types
		managers := []string{"Organization", "Practitioner", "PractitionerRole", "RelatedPerson"}
		target = managers[(len(r.id)+int(r.id[len(r.id)-1])/2)%len(managers)] // hidden ones have all of them
	}
	if r.word == otherWord && (r.kind == "Device" && target == "Patient" || r.kind == "DeviceMetric") {
		id = "seen-a"
	}
	return fmt.Sprintf(`{"reference":"%s/%s","identifier":{"system":"urn:ri","value":"%s"}}`, target, id, r.word)
}

// sweepWrite is a step of filling the sites of a sweep.
type sweepWrite struct {
	method string
	sweepRecord
	// hidden steps are those of one site only.
	hidden bool
}

// sweepWrites are the steps of filling the sites, with visible and hidden records in turn.
func sweepWrites(kinds []string) []sweepWrite {
	var writes []sweepWrite
	add := func(hidden bool, id, word, refersTo string, labels ...string) {
		for _, kind := range kinds {
			for _, label := range labels {
				step := sweepWrite{"PUT", sweepRecord{kind, id, word, refersTo, label}, hidden}
				if label == tombstone {
					step.method, step.label = "DELETE", ""
				}
				writes = append(writes, step)
			}
		}
	}
	add(false, "seen-a", hiddenWord, "seen-c", "")
	add(true, "hidden-r", hiddenWord, "seen-a", labelR)
	add(true, "hidden-v", hiddenWord, "hidden-r", labelV)
	add(false, "seen-b", otherWord, "hidden-r", "")
	add(false, "referred", otherWord, "seen-a", "")
	add(true, "hidden-t", hiddenWord, "referred", labelTag)
	add(true, "hidden-p", hiddenWord, "nowhere", labelProfile)
	add(true, "raised", hiddenWord, "seen-a", "", labelV)
	add(false, "seen-c", otherWord, "seen-a", "")
	add(true, "dead", hiddenWord, "seen-c", labelV, tombstone)
	add(true, "dead-raised", hiddenWord, "seen-c", "", labelV, tombstone)
	add(true, "again", hiddenWord, "seen-b", "", labelV, tombstone, labelR)
	add(false, "seen-d", hiddenWord, "seen-a", "", tombstone)
	add(false, "seen-c", otherWord, "hidden-r", "")
	for _, kind := range []string{"Device", "DeviceMetric"} {
		refersTo := map[string]string{"Device": "hidden-r", "DeviceMetric": "linked"}[kind]
		writes = append(writes, sweepWrite{"PUT", sweepRecord{kind, "linked", hiddenWord, refersTo, ""}, true})
	}
	return writes
}

// hiddenIDs are the ids of hidden records of each type, live ones first.
var hiddenIDs = []string{"hidden-r", "hidden-v", "hidden-t", "hidden-p", "raised", "again", "dead", "dead-raised"}

// visibleIDs are those of visible ones; the last is deleted.
var visibleIDs = []string{"seen-a", "seen-b", "seen-c", "referred", "seen-d"}

// tombstone, for a label, is a deletion.
const tombstone = "deleted"
