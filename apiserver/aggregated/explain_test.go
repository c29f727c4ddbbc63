package aggregated_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("kubectl explain", Ordered, func() {
	// kube-apiserver takes a moment to merge the schemas.
	BeforeAll(func(ctx SpecContext) {
		Eventually(kubectl).WithContext(ctx).WithTimeout(specLag).WithArguments("explain", "patient").
			Should(And(ContainSubstring("KIND:       Patient"), ContainSubstring("spec\t<Object> -required-")))
	})

	It("tells what a kind is", func(ctx SpecContext) {
		Expect(must(ctx, "explain", "patient.spec")).To(ContainSubstring("without resourceType and id"))
		Expect(must(ctx, "explain", "patient.metadata.generation")).To(ContainSubstring("FIELD: generation <integer>"))
	})

	It("tells names, types and cardinalities of elements", func(ctx SpecContext) {
		for path, want := range map[string][]string{
			"patient.spec":                              {"name\t<[]HumanName>", "Names of the patient. 0..*, HumanName.", "birthDate\t<string>", "0..1, date."},
			"patient.spec.name":                         {"FIELD: name <[]HumanName>", "family\t<string>", "given\t<[]string>", "Given names in order, middle names included. 0..*, string.", "period\t<Period>"},
			"patient.spec.name.family":                  {"FIELD: family <string>", "Family name. 0..1, string."},
			"patient.spec.gender":                       {"ENUM:", "female", "male", "other", "unknown"},
			"patient.spec.deceasedDateTime":             {"FIELD: deceasedDateTime <string>", "0..1, dateTime, one of deceased[x]."},
			"patient.spec.deceasedBoolean":              {"FIELD: deceasedBoolean <boolean>"},
			"patient.spec._birthDate":                   {"FIELD: _birthDate <Element>", "Id and extensions of birthDate."},
			"patient.spec.link":                         {"other\t<Reference> -required-", "type\t<string> -required-", "1..1, Reference(Patient|RelatedPerson)."},
			"patient.spec.contact.name.given":           {"FIELD: given <[]string>"},
			"patient.spec.managingOrganization":         {"FIELD: managingOrganization <Reference>", "identifier\t<Identifier>", "0..1, Reference(Organization)."},
			"patient.spec.identifier.assigner.display":  {"FIELD: display <string>"},
			"patient.spec.extension":                    {"url\t<string> -required-", "valueCodeableConcept"},
			"patient.spec.contained":                    {"FIELD: contained <[]Object>"},
			"fhirep.spec":                               {"payloadType\t<[]CodeableConcept> -required-", "1..*, CodeableConcept."},
			"location.spec.position":                    {"latitude\t<number> -required-", "Latitude in degrees north. 1..1, decimal."},
			"devicemetric.spec.measurementPeriod":       {"repeat\t<TimingRepeat>"},
			"fhirgrp.spec.member":                       {"entity\t<Reference> -required-"},
			"practitionerrole.spec.availableTime":       {"daysOfWeek\t<[]string>", "allDay\t<boolean>"},
			"devicedefinition.spec.shelfLifeStorage":    {"period\t<Quantity> -required-"},
			"healthcareservice.spec.notAvailable":       {"during\t<Period>"},
			"organization.spec.contact":                 {"purpose\t<CodeableConcept>"},
			"organizationaffiliation.spec.network":      {"0..*, Reference(Organization)."},
			"practitioner.spec.qualification.code":      {"1..1, CodeableConcept."},
			"relatedperson.spec.communication.language": {"1..1, CodeableConcept."},
			"person.spec.link.target":                   {"1..1, Reference(Patient|Person|Practitioner|RelatedPerson)."},
			"device.spec.udiCarrier":                    {"carrierHRF\t<string>"},
		} {
			explained := strings.Join(strings.Fields(must(ctx, "explain", path)), " ")
			for _, text := range want {
				Expect(explained).To(ContainSubstring(strings.Join(strings.Fields(text), " ")), path)
			}
		}
	})

	It("refuses an element that is not R4's", func(ctx SpecContext) {
		Expect(refused(ctx, "explain", "patient.spec.nickname")).To(ContainSubstring(`field "nickname" does not exist`))
		Expect(refused(ctx, "explain", "patient.spec.id")).To(ContainSubstring(`field "id" does not exist`))
	})

	It("ends, recursively, for every kind", func(ctx SpecContext) {
		for _, kind := range kinds {
			whole := must(ctx, "explain", kind.short, "--recursive")
			Expect(whole).To(ContainSubstring("identifier\t<[]Identifier>"), kind.kind)
			Expect(strings.Count(whole, "\n")).To(BeNumerically("<", 4000), kind.kind)
			GinkgoWriter.Println(kind.kind, strings.Count(whole, "\n"), "lines")
		}
	})

	It("still explains other kinds", func(ctx SpecContext) {
		for path, want := range map[string]string{
			"pod.spec.containers":            "FIELD: containers <[]Container>",
			"endpoints.subsets":              "FIELD: subsets <[]EndpointSubset>",
			"site.spec":                      "FIELD: spec <Object>",
			"customresourcedefinition.spec":  "FIELD: spec <CustomResourceDefinitionSpec>",
			"deployment.spec.template.spec":  "FIELD: spec <PodSpec>",
			"apiservice.spec":                "FIELD: spec <APIServiceSpec>",
			"configmap.metadata.annotations": "FIELD: annotations <map[string]string>",
		} {
			Expect(must(ctx, "explain", path)).To(ContainSubstring(want))
		}
	})
})
