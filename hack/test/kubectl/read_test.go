package kubectl_test

import (
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// records are what the read scripts find, written by REST.
var records = map[string]string{
	"/organization/oak": `{"resourceType":"Organization","id":"oak","active":true,"name":"Oak Street Animal Hospital",
		"telecom":[{"system":"phone","value":"+61 3 5550 1042"},{"system":"email","value":"desk@oak.example"}],"address":[{"city":"Geelong"}]}`,
	"/location/room-1": `{"resourceType":"Location","id":"room-1","status":"active","name":"Consulting room 1","managingOrganization":{"reference":"Organization/oak"}}`,
	"/practitioner/ana": `{"resourceType":"Practitioner","id":"ana","active":true,"name":[{"family":"Silva","given":["Ana","Maria"]}],
		"qualification":[{"code":{"text":"BVSc"}}]}`,
	"/practitioner-role/ana-surgeon": `{"resourceType":"PractitionerRole","id":"ana-surgeon","active":true,"practitioner":{"reference":"Practitioner/ana","display":"Dr Ana Silva"},
		"organization":{"reference":"Organization/oak"},"code":[{"text":"Surgeon"}]}`,
	"/patient/rex": `{"resourceType":"Patient","id":"rex","active":true,"gender":"male","birthDate":"2019-04-01","name":[{"family":"Oak","given":["Rex"]}],
		"extension":[{"url":"http://hl7.org/fhir/StructureDefinition/patient-animal","extension":[{"url":"species","valueCodeableConcept":{"coding":[{"display":"Dog"}]}}]}]}`,
	"/patient/bella": `{"resourceType":"Patient","id":"bella","active":false,"birthDate":"2015","name":[{"given":["Bella"]}]}`,
	"/patient/milo":  `{"resourceType":"Patient","id":"milo","birthDate":"2021-12"}`,
	"/endpoint/pacs": `{"resourceType":"Endpoint","id":"pacs","status":"active","connectionType":{"code":"dicom-wado-rs"},"payloadType":[{"text":"DICOM"}],"address":"https://pacs.oak.example"}`,
}

type object struct {
	Kind     string
	Metadata struct {
		Name, Namespace, UID, ResourceVersion string
		Generation                            int
	}
	Spec  map[string]any
	Items []object
}

var _ = Describe("A script of reads", func() {
	for _, engine := range engines {
		Context("of records in "+engine, Ordered, func() {
			s := &script{namespace: engine}
			ok := func(ctx SpecContext, line string, more ...string) string {
				GinkgoHelper()
				return s.ok(ctx, line, more...)
			}
			no := func(ctx SpecContext, line string, more ...string) string {
				GinkgoHelper()
				return s.no(ctx, line, more...)
			}

			BeforeAll(func(ctx SpecContext) { putAll(ctx, engine, editor(ctx, engine), records) })
			AfterAll(func() { GinkgoWriter.Printf("%d invocations of kubectl\n", s.calls) })

			It("prints tables", func(ctx SpecContext) {
				table := rows(ok(ctx, "get patients"))
				Expect(table[0]).To(Equal([]string{"NAME", "FULL", "NAME", "SPECIES", "OWNER", "BIRTHDATE", "ACTIVE", "VERSION", "AGE"}))
				Expect(table[1][:4]).To(Equal([]string{"bella", "Bella", "2015", "false"}))
				Expect(table[2][:3]).To(Equal([]string{"milo", "2021-12", "1"}))
				Expect(table[3][:7]).To(Equal([]string{"rex", "Rex", "Oak", "Dog", "2019-04-01", "true", "1"}))
				Expect(rows(ok(ctx, "get patients -o wide"))[0]).To(ContainElements("GENDER", "BREED", "DECEASED", "ORGANIZATION"))
				Expect(ok(ctx, "get patients --no-headers")).NotTo(ContainSubstring("NAME"))
				Expect(ok(ctx, "get patients --show-kind")).To(ContainSubstring("patient.r4.fhir.paddock.health/rex"))
				Expect(rows(ok(ctx, "get patients --show-labels"))[0]).To(ContainElement("LABELS"))
				Expect(rows(ok(ctx, "get patients -L team"))[0]).To(ContainElement("TEAM"))
				Expect(rows(ok(ctx, "get patients --server-print=false"))[0]).To(Equal([]string{"NAME", "AGE"}))
			})

			It("prints a table of each kind", func(ctx SpecContext) {
				Expect(rows(ok(ctx, "get org"))[1]).To(ContainElements("oak", "Oak", "Street", "Geelong", "+61", "true"))
				Expect(ok(ctx, "get org -o wide")).To(ContainSubstring("desk@oak.example"))
				Expect(rows(ok(ctx, "get loc"))[1]).To(ContainElements("room-1", "Consulting", "Organization/oak", "active"))
				Expect(rows(ok(ctx, "get prac ana"))[1]).To(ContainElements("ana", "Silva", "Ana", "Maria", "BVSc", "true"))
				Expect(rows(ok(ctx, "get pracrole"))[1]).To(ContainElements("ana-surgeon", "Dr", "Surgeon"))
				Expect(rows(ok(ctx, "get fhirep"))[1]).To(ContainElements("pacs", "dicom-wado-rs", "https://pacs.oak.example"))
				Expect(ok(ctx, "get practitioners,locations -o name")).To(Equal("practitioner.r4.fhir.paddock.health/ana\nlocation.r4.fhir.paddock.health/room-1\n"))
				Expect(strings.Count(ok(ctx, "get fhir -o name"), "\n")).To(Equal(len(records)))
				Expect(ok(ctx, "get patient/rex practitioner/ana -o name")).To(Equal("patient.r4.fhir.paddock.health/rex\npractitioner.r4.fhir.paddock.health/ana\n"))
			})

			It("prints in every format", func(ctx SpecContext) {
				var fromJSON, fromYAML object
				Expect(json.Unmarshal([]byte(ok(ctx, "get patients -o json")), &fromJSON)).To(Succeed())
				Expect(fromJSON.Kind).To(Equal("List"))
				Expect(fromJSON.Items).To(HaveLen(3))
				Expect(yaml.Unmarshal([]byte(ok(ctx, "get patients -o yaml")), &fromYAML)).To(Succeed())
				Expect(fromYAML).To(Equal(fromJSON))
				rex := fromJSON.Items[2]
				Expect(rex.Kind).To(Equal("Patient"))
				Expect(rex.Metadata.Namespace).To(Equal(engine))
				Expect(rex.Spec).To(HaveKeyWithValue("birthDate", "2019-04-01"))
				Expect(ok(ctx, "get patients -o name")).To(Equal("patient.r4.fhir.paddock.health/bella\npatient.r4.fhir.paddock.health/milo\npatient.r4.fhir.paddock.health/rex\n"))
				Expect(ok(ctx, "get patients -o jsonpath={.items[*].metadata.name}")).To(Equal("bella milo rex"))
				Expect(ok(ctx, "get patient rex -o jsonpath-as-json={.spec.name[0].given}")).To(MatchJSON(`[["Rex"]]`))
				Expect(ok(ctx, "get patients -o", `go-template={{range .items}}{{.metadata.name}}/{{.metadata.generation}} {{end}}`)).To(Equal("bella/1 milo/1 rex/1 "))
				Expect(ok(ctx, "get patients --no-headers -o custom-columns=ID:.metadata.name,BORN:.spec.birthDate")).To(Equal("bella   2015\nmilo    2021-12\nrex     2019-04-01\n"))
				Expect(ok(ctx, "get patients -o jsonpath-file="+file("path", "{.items[0].metadata.name}"))).To(Equal("bella"))
				Expect(ok(ctx, "get patients -o go-template-file="+file("template", "{{len .items}}"))).To(Equal("3"))
				Expect(ok(ctx, "get patient rex -o custom-columns-file="+file("columns", "ID\n.metadata.name\n"))).To(Equal("ID\nrex\n"))
				Expect(ok(ctx, "get patients --no-headers -o custom-columns=ID:.metadata.name --sort-by=.spec.birthDate")).To(Equal("bella\nrex\nmilo\n"))
				Expect(ok(ctx, "get patient rex -o kyaml")).To(ContainSubstring(`birthDate: "2019-04-01"`))
			})

			It("reads in chunks, from files, and what is not there", func(ctx SpecContext) {
				for _, size := range []string{"1", "2", "0", "500"} {
					Expect(ok(ctx, "get patients -o jsonpath={.items[*].metadata.name} --chunk-size="+size)).To(Equal("bella milo rex"))
				}
				manifest := fmt.Sprintf("apiVersion: r4.fhir.paddock.health/v1alpha1\nkind: Patient\nmetadata: {name: rex, namespace: %s}\nspec: {}\n", engine)
				Expect(ok(ctx, "get -o name -f "+file("rex.yaml", manifest))).To(Equal("patient.r4.fhir.paddock.health/rex\n"))
				Expect(ok(ctx, "get patient never --ignore-not-found")).To(BeEmpty())
				Expect(no(ctx, "get patient never")).To(Equal("Error from server (NotFound): patients.r4.fhir.paddock.health \"never\" not found\n"))
				Expect(ok(ctx, "get devices -o name")).To(BeEmpty())
				Expect(no(ctx, "get patients -A")).To(ContainSubstring("(BadRequest)"))
			})

			It("selects by field", func(ctx SpecContext) {
				Expect(ok(ctx, "get patients -o name --field-selector metadata.name=rex")).To(Equal("patient.r4.fhir.paddock.health/rex\n"))
				Expect(ok(ctx, "get patients -o name --field-selector metadata.name=never")).To(BeEmpty())
				Expect(no(ctx, "get patients --field-selector spec.active=true")).To(ContainSubstring("(BadRequest)"))
			})

			It("describes", func(ctx SpecContext) {
				described := ok(ctx, "describe patient rex")
				Expect(described).To(MatchRegexp(`Name:\s+rex\n`))
				Expect(described).To(MatchRegexp(`Birth Date:\s+2019-04-01`))
				Expect(described).To(MatchRegexp(`Generation:\s+1`))
				Expect(described).To(MatchRegexp(`Events:\s+<none>`))
				Expect(ok(ctx, "describe patients")).To(And(MatchRegexp(`Name:\s+bella\n`), MatchRegexp(`Name:\s+milo\n`)))
				Expect(ok(ctx, "describe prac/ana")).To(MatchRegexp(`Family:\s+Silva`))
				Expect(no(ctx, "describe patient never")).To(ContainSubstring("(NotFound)"))
			})

			It("discovers and explains", func(ctx SpecContext) {
				Expect(strings.Count(ok(ctx, "api-resources --api-group=r4.fhir.paddock.health -o name"), "\n")).To(BeNumerically(">=", 14))
				Expect(strings.Count(ok(ctx, "api-resources --categories=fhir -o name"), "\n")).To(Equal(14))
				Expect(ok(ctx, "api-versions")).To(ContainSubstring("r4.fhir.paddock.health/v1alpha1\n"))
				Eventually(func() string { output, _, _ := s.run(ctx, "", "explain patient.spec.name"); return output }).
					WithContext(ctx).WithTimeout(lag).Should(ContainSubstring("FIELD: name <[]HumanName>"))
				Expect(ok(ctx, "explain endpoints --api-version=r4.fhir.paddock.health/v1alpha1")).To(ContainSubstring("KIND:       Endpoint\n"))
				Expect(ok(ctx, "explain pracrole --recursive")).To(ContainSubstring("availableStartTime\t<string>"))
				Eventually(func() string {
					output, _, _ := s.run(ctx, "", "explain prac.spec.qualification --output=plaintext-openapiv2")
					return output
				}).WithContext(ctx).WithTimeout(lag).Should(ContainSubstring("code\t<Object> -required-"))
			})

			It("asks for rights", func(ctx SpecContext) {
				Expect(ok(ctx, "auth can-i get patients")).To(Equal("yes\n"))
				Expect(ok(ctx, "auth can-i delete patients/rex --as=system:serviceaccount:"+engine+":editor")).To(Equal("yes\n"))
				Expect(no(ctx, "auth can-i list patients --as=nobody")).To(BeEmpty())
				Expect(ok(ctx, "auth can-i --list --as=system:serviceaccount:"+engine+":editor")).To(ContainSubstring("patients.r4.fhir.paddock.health"))
				Expect(ok(ctx, "get patient rex -o name --as=system:serviceaccount:"+engine+":editor")).To(Equal("patient.r4.fhir.paddock.health/rex\n"))
				Expect(no(ctx, "get patient rex --as=nobody")).To(ContainSubstring(`(Forbidden): patients.r4.fhir.paddock.health "rex" is forbidden: User "nobody" cannot get resource "patients"`))
				Expect(ok(ctx, "auth whoami -o jsonpath={.status.userInfo.username}")).NotTo(BeEmpty())
			})

			It("reads raw paths", func(ctx SpecContext) {
				var page struct {
					Metadata struct{ Continue string }
					Items    []object
				}
				base := group + "/namespaces/" + engine
				Expect(json.Unmarshal([]byte(ok(ctx, "get --raw "+base+"/patients?limit=2")), &page)).To(Succeed())
				Expect(page.Items).To(HaveLen(2))
				Expect(page.Metadata.Continue).NotTo(BeEmpty())
				Expect(json.Unmarshal([]byte(ok(ctx, "get --raw "+base+"/patients?limit=2&continue="+page.Metadata.Continue)), &page)).To(Succeed())
				Expect(page.Items).To(HaveLen(1))
				Expect(ok(ctx, "get --raw "+base+"/patients/rex")).To(ContainSubstring(`"birthDate":"2019-04-01"`))
				Expect(no(ctx, "get --raw "+base+"/patients/never")).To(ContainSubstring("(NotFound)"))
			})

			It("reads the FHIR API by raw paths", func(ctx SpecContext) {
				fhir := group + "/namespaces/" + engine + "/facades/" + engine + "/fhir"
				var found struct{ Total int }
				Expect(json.Unmarshal([]byte(ok(ctx, "get --raw "+fhir+"/patient?birthdate=2019")), &found)).To(Succeed())
				Expect(found.Total).To(Equal(1))
				Expect(ok(ctx, "get --raw "+fhir+"/patient/rex")).To(And(ContainSubstring(`"resourceType":"Patient"`), ContainSubstring(`"versionId":"1"`)))
				Expect(ok(ctx, "get --raw "+fhir+"/metadata")).To(ContainSubstring(`"CapabilityStatement"`))
				Expect(no(ctx, "get --raw "+fhir+"/patient/never")).NotTo(BeEmpty())
				Expect(no(ctx, "get --raw "+fhir+"/patient/rex --as=nobody")).To(ContainSubstring("orbidden"))
			})

			It("says what is not served", func(ctx SpecContext) {
				Expect(no(ctx, "get patients --watch-only")).To(ContainSubstring("(MethodNotAllowed)"))
				Expect(no(ctx, "wait patient/rex --for=jsonpath={.spec.active}=false --timeout=5s")).NotTo(BeEmpty())
				Expect(no(ctx, "scale patient rex --replicas=2")).To(ContainSubstring("(NotFound)"))
				Expect(no(ctx, "get patient rex --subresource=status")).To(ContainSubstring("(NotFound)"))
			})
		})
	}
})
