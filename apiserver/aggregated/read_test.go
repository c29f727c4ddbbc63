package aggregated_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const group = "/apis/r4.fhir.paddock.health/v1alpha1"

// patient is a Patient as kubectl prints it.
type patient struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              map[string]any `json:"spec"`
}

// resource reads a patient by REST.
func resource(ctx context.Context, id string) map[string]any {
	GinkgoHelper()
	answer := send(ctx, http.MethodGet, siteURL("demo")+"/"+id, token, "")
	Expect(answer.status).To(Equal(http.StatusOK), "%s", answer.body)
	var read map[string]any
	Expect(json.Unmarshal(answer.body, &read)).To(Succeed())
	return read
}

// expectSame compares an object to what REST says of the same record.
func expectSame(ctx context.Context, object patient, id string) {
	GinkgoHelper()
	want := resource(ctx, id)
	meta := want["meta"].(map[string]any)
	Expect(object.APIVersion).To(Equal("r4.fhir.paddock.health/v1alpha1"))
	Expect(object.Kind).To(Equal("Patient"))
	Expect(object.Name).To(Equal(strings.ToLower(id)))
	Expect(object.Namespace).To(Equal("demo"))
	Expect(object.UID).NotTo(BeEmpty())
	Expect(object.ResourceVersion).NotTo(BeEmpty())
	Expect(object.CreationTimestamp.IsZero()).To(BeFalse())
	Expect(meta["versionId"]).To(BeEquivalentTo(json.Number(metaInt(object.Generation))))
	delete(want, "resourceType")
	delete(want, "id")
	delete(meta, "versionId")
	delete(meta, "lastUpdated")
	if len(meta) == 0 {
		delete(want, "meta")
	}
	Expect(object.Spec).To(Equal(want))
}

func metaInt(n int64) string {
	encoded, err := json.Marshal(n)
	Expect(err).NotTo(HaveOccurred())
	return string(encoded)
}

var _ = Describe("kubectl get of one patient", func() {
	It("prints the record that REST serves, as YAML and JSON", func(ctx SpecContext) {
		for _, id := range []string{"rex", "Bella-1", "p1"} {
			var fromYAML, fromJSON patient
			name := strings.ToLower(id)
			Expect(yaml.Unmarshal([]byte(must(ctx, "get", "patient", name, "-n", "demo", "-o", "yaml")), &fromYAML)).To(Succeed())
			expectSame(ctx, fromYAML, id)
			Expect(json.Unmarshal([]byte(must(ctx, "get", "patient", name, "-n", "demo", "-o", "json")), &fromJSON)).To(Succeed())
			Expect(fromJSON).To(Equal(fromYAML))
		}
	})

	It("counts versions as FHIR does", func(ctx SpecContext) {
		Expect(must(ctx, "get", "patient", "rex", "-n", "demo", "-o", "jsonpath={.metadata.generation}")).To(Equal("2"))
		Expect(must(ctx, "get", "patient", "p1", "-n", "demo", "-o", "jsonpath={.metadata.generation}")).To(Equal("1"))
	})

	It("keeps the digits of decimals on the wire", func(ctx SpecContext) {
		Expect(must(ctx, "get", "--raw", group+"/namespaces/demo/patients/rex")).To(ContainSubstring(`"valueDecimal":18.50`))
	})

	It("prints a row, a wide row, a name, columns and a description", func(ctx SpecContext) {
		narrow := rows(must(ctx, "get", "patient", "rex", "-n", "demo"))
		Expect(narrow[0]).To(Equal([]string{"NAME", "FULL", "NAME", "SPECIES", "OWNER", "BIRTHDATE", "ACTIVE", "VERSION", "AGE"}))
		Expect(narrow[1][:7]).To(Equal([]string{"rex", "Rex", "Oak", "Dog", "2019-04-01", "true", "2"}))
		wide := rows(must(ctx, "get", "patient", "rex", "-n", "demo", "-o", "wide"))
		Expect(wide[0]).To(ContainElements("GENDER", "BREED"))
		Expect(wide[1]).To(ContainElements("male", "Kelpie"))
		Expect(must(ctx, "get", "pat/rex", "-n", "demo", "-o", "name")).To(Equal("patient.r4.fhir.paddock.health/rex\n"))
		Expect(must(ctx, "get", "patient", "rex", "-n", "demo", "--no-headers", "-o", "custom-columns=B:.spec.birthDate")).To(Equal("2019-04-01\n"))
		Expect(must(ctx, "describe", "patient", "rex", "-n", "demo")).To(MatchRegexp(`Birth Date:\s+2019-04-01`))
	})

	It("does not find what is not there, was deleted, or goes by another name", func(ctx SpecContext) {
		put(ctx, "demo", token, "gone", `{"resourceType":"Patient","id":"gone"}`)
		Expect(must(ctx, "get", "patient", "gone", "-n", "demo", "-o", "name")).NotTo(BeEmpty())
		Expect(send(ctx, http.MethodDelete, siteURL("demo")+"/gone", token, "").status).To(Equal(http.StatusOK))
		for _, name := range []string{"gone", "never", "Rex", "Bella-1"} {
			Expect(refused(ctx, "get", "patient", name, "-n", "demo")).To(ContainSubstring(`(NotFound): patients.r4.fhir.paddock.health "` + name + `" not found`))
		}
		Expect(must(ctx, "get", "patient", "gone", "-n", "demo", "--ignore-not-found")).To(BeEmpty())
	})

	It("finds a record whose id no new object could have for a name", func(ctx SpecContext) {
		var object patient
		Expect(yaml.Unmarshal([]byte(must(ctx, "get", "-n", "demo", "-o", "yaml", "--", "patient", "-odd.")), &object)).To(Succeed())
		expectSame(ctx, object, "-odd.")
	})
})

var _ = Describe("kubectl get of all patients", func() {
	It("lists them by name, whatever the chunk size", func(ctx SpecContext) {
		for _, chunk := range []string{"0", "1", "2", "500"} {
			table := rows(must(ctx, "get", "patients", "-n", "demo", "--chunk-size="+chunk))
			names := []string{}
			for _, row := range table[1:] {
				names = append(names, row[0])
			}
			Expect(names).To(Equal(demoNames), "chunks of %s", chunk)
		}
	})

	It("answers by pages that continue", func(ctx SpecContext) {
		names, next, pages := []string{}, "", 0
		for {
			var page struct {
				Metadata metav1.ListMeta
				Items    []patient
			}
			answer := must(ctx, "get", "--raw", group+"/namespaces/demo/patients?limit=2&continue="+next)
			Expect(json.Unmarshal([]byte(answer), &page)).To(Succeed())
			Expect(len(page.Items)).To(BeNumerically("<=", 2))
			for _, item := range page.Items {
				names = append(names, item.Name)
			}
			pages++
			if next = page.Metadata.Continue; next == "" {
				break
			}
		}
		Expect(names).To(Equal(demoNames))
		Expect(pages).To(Equal(3))
	})

	It("prints the same objects as one by one", func(ctx SpecContext) {
		var list struct{ Items []patient }
		Expect(yaml.Unmarshal([]byte(must(ctx, "get", "fhir", "-n", "demo", "-o", "yaml")), &list)).To(Succeed())
		Expect(list.Items).To(HaveLen(len(demoNames)))
		for _, item := range list.Items {
			var single patient
			Expect(json.Unmarshal([]byte(must(ctx, "get", "-n", "demo", "-o", "json", "--", "patient", item.Name)), &single)).To(Succeed())
			Expect(item).To(Equal(single))
		}
	})

	It("selects by name and refuses other selectors", func(ctx SpecContext) {
		Expect(must(ctx, "get", "patients", "-n", "demo", "-o", "name", "--field-selector", "metadata.name=rex")).To(Equal("patient.r4.fhir.paddock.health/rex\n"))
		Expect(must(ctx, "get", "patients", "-n", "demo", "-o", "name", "--field-selector", "metadata.name=Rex")).To(BeEmpty())
		Expect(refused(ctx, "get", "patients", "-n", "demo", "--field-selector", "metadata.name!=rex")).To(ContainSubstring("(BadRequest)"))
		Expect(refused(ctx, "get", "patients", "-n", "demo", "--field-selector", "spec.active=true")).To(ContainSubstring("(BadRequest)"))
	})

	It("refuses to go across namespaces", func(ctx SpecContext) {
		Expect(refused(ctx, "get", "patients", "-A")).To(And(ContainSubstring("(BadRequest)"), ContainSubstring("patients are listed by namespace")))
	})

	It("is empty in a namespace without a site", func(ctx SpecContext) {
		Expect(must(ctx, "get", "patients", "-n", "default", "-o", "name")).To(BeEmpty())
		Expect(must(ctx, "get", "patients", "-n", "no-such-namespace", "-o", "name")).To(BeEmpty())
		Expect(refused(ctx, "get", "patient", "rex", "-n", "default")).To(ContainSubstring("(NotFound)"))
	})

	It("refuses old states and other lists' pages", func(ctx SpecContext) {
		for query, status := range map[string]int{
			"?resourceVersion=1&resourceVersionMatch=Exact": http.StatusGone,
			"?resourceVersion=1&limit=1":                    http.StatusGone,
			"?resourceVersion=0&limit=1":                    http.StatusOK,
			"?continue=bm9uc2Vuc2U":                         http.StatusBadRequest,
			"?continue=%25":                                 http.StatusBadRequest,
			"?limit=x":                                      http.StatusBadRequest,
		} {
			answer := ask(ctx, group+"/namespaces/demo/patients"+query, "application/json")
			Expect(answer.status).To(Equal(status), "%s: %s", query, answer.body)
			var object metav1.TypeMeta
			Expect(json.Unmarshal(answer.body, &object)).To(Succeed())
			Expect(object.Kind).To(Equal(map[bool]string{true: "PatientList", false: "Status"}[status == http.StatusOK]))
		}
	})

	It("answers in JSON where protobuf would do too", func(ctx SpecContext) {
		both := ask(ctx, group+"/namespaces/demo/patients", "application/vnd.kubernetes.protobuf, application/json")
		Expect(both.status).To(Equal(http.StatusOK))
		Expect(both.header.Get("Content-Type")).To(Equal("application/json"))
		Expect(ask(ctx, group+"/namespaces/demo/patients", "application/vnd.kubernetes.protobuf").status).To(Equal(http.StatusNotAcceptable))
	})
})

var _ = Describe("kubectl commands that are not served", func() {
	It("are refused as such", func(ctx SpecContext) {
		Expect(sendTo(ctx, http.MethodDelete, group+"/namespaces/demo/patients", "application/json", "").status).To(Equal(http.StatusMethodNotAllowed))
		Expect(refused(ctx, "get", "patient", "rex", "-n", "demo", "--watch-only")).To(ContainSubstring("(MethodNotAllowed)"))
		expectSame(ctx, func() (object patient) {
			Expect(yaml.Unmarshal([]byte(must(ctx, "get", "patient", "rex", "-n", "demo", "-o", "yaml")), &object)).To(Succeed())
			return object
		}(), "rex")
	})
})
