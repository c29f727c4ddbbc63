package fhir_test

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/fhir"
)

// parameters makes a Parameters resource of parameters.
func parameters(list string) string {
	return `{"resourceType":"Parameters","parameter":[` + list + `]}`
}

var _ = Describe("$validate", func() {
	const broken = `{"resourceType":"Patient","active":"yes","nme":[]}`

	It("judges a resource and writes nothing", func(ctx context.Context) {
		s := newSite(ctx)
		for _, path := range []string{"/patient/$validate", "/Patient/%24validate", "/patient/rex/$validate"} {
			for _, wrap := range []func(string) string{
				func(resource string) string { return resource },
				func(resource string) string { return parameters(`{"name":"resource","resource":` + resource + `}`) },
			} {
				valid := s.do("POST", path, wrap(luna))
				Expect(valid.status).To(Equal(http.StatusOK), valid.body)
				expectValid(valid)
				Expect(valid.json().at("issue", 0, "severity")).To(BeElementOf("information", "warning"))
				Expect(valid.body).NotTo(ContainSubstring(`"error"`))

				invalid := s.do("POST", path, wrap(broken))
				Expect(invalid.status).To(Equal(http.StatusOK))
				Expect(invalid.json().at("issue", 0, "severity")).To(Equal("error"))
				Expect(invalid.json().at("issue", 0, "expression", 0)).To(Equal("Patient.active"))
				Expect(s.do("POST", path, wrap(`{"resourceType":"Person"}`)).code()).To(Equal("resource_mismatch"))
				Expect(s.do("POST", path, wrap(`7`)).json().at("issue", 0, "severity")).To(Equal("error"))
			}
			Expect(s.do("POST", path, `{"resourceType":`).code()).To(Equal("unparseable_resource"))
		}
		Expect(s.do("GET", "/_history?_count=0", "").json()["total"]).To(BeEquivalentTo(0))
	})

	It("follows the mode", func(ctx context.Context) {
		s := newSite(ctx, func(site *fhir.Endpoint) { site.UpdateCreate = false })
		id := s.do("POST", "/patient", luna).json()["id"].(string)
		with := func(id string) string { return `{"resourceType":"Patient","id":"` + id + `"}` }
		for path, want := range map[string]map[string]string{
			"/patient/$validate?mode=create":                                             {with("x"): "valid", luna: "valid", broken: "error"},
			"/patient/$validate?mode=update":                                             {with(id): "valid", luna: "invalid_id", with("x"): "valid"},
			"/patient/" + id + "/$validate?mode=update":                                  {with(id): "valid", with("x"): "invalid_id", luna: "valid"},
			"/patient/never/$validate?mode=update":                                       {with("never"): "valid"},
			"/patient/" + id + "/$validate?mode=delete":                                  {"": "valid", broken: "valid"},
			"/patient/" + id + "/$validate?_format=json":                                 {with("x"): "valid"},
			"/patient/$validate?mode=create&_pretty=true":                                {luna: "valid"},
			"/patient/$validate?profile=http://hl7.org/fhir/StructureDefinition/Patient": {luna: "valid"},
		} {
			for body, code := range want {
				a := s.do("POST", path, body)
				Expect(a.status).To(Equal(http.StatusOK), path+a.body)
				switch code {
				case "valid":
					Expect(a.body).NotTo(MatchRegexp(`"severity": ?"error"`), path)
				case "error":
					Expect(a.body).To(ContainSubstring(`"severity":"error"`), path)
				default:
					Expect(a.code()).To(Equal(code), path+body)
				}
			}
		}
		inBody := parameters(`{"name":"mode","valueCode":"update"},{"name":"resource","resource":` + with("x") + `}`)
		Expect(s.do("POST", "/patient/$validate", inBody).status).To(Equal(http.StatusOK))
		By("without a word on which ids exist")
		Expect(s.do("DELETE", "/patient/"+id, "").status).To(BeNumerically("<", 300))
		for _, query := range []string{"mode=update", "mode=create", "_pretty=true"} {
			gone := s.do("POST", "/patient/"+id+"/$validate?"+query, with(id))
			never := s.do("POST", "/patient/never/$validate?"+query, with("never"))
			Expect(gone.status).To(Equal(never.status))
			Expect(gone.body).To(Equal(never.body))
			Expect(gone.body).NotTo(ContainSubstring(`"error"`))
		}
		By("with FHIR's rules for a body of FHIR")
		Expect(s.do("POST", "/patient/"+id+"/$validate?mode=update", luna, sendFHIR).code()).To(Equal("invalid_id"))
	})

	It("refuses what it cannot do", func(ctx context.Context) {
		s := newSite(ctx)
		resource := `{"name":"resource","resource":` + luna + `}`
		for body, code := range map[string]string{
			"": "invalid_parameters",
			parameters(`{"name":"mode","valueCode":"create"}`):                  "invalid_parameters",
			parameters(resource + "," + resource):                               "invalid_parameters",
			parameters(resource + `,{"name":"mode","valueCode":"delete"}`):      "invalid_parameters",
			parameters(resource + `,{"name":"mode","valueCode":"guess"}`):       "invalid_parameters",
			parameters(resource + `,{"name":"mode","valueInteger":1}`):          "invalid_parameters",
			parameters(resource + `,{"name":"mood","valueCode":"create"}`):      "invalid_parameters",
			parameters(resource + `,{"name":"profile","valueUri":"urn:other"}`): "invalid_parameters",
			parameters(resource + `,5`):                                         "invalid_parameters",
			`{"resourceType":"Parameters","parameter":{}}`:                      "invalid_parameters",
		} {
			refused := s.do("POST", "/patient/$validate", body)
			Expect(refused.status).To(Equal(http.StatusBadRequest), body)
			Expect(refused.code()).To(Equal(code), body)
		}
		for _, query := range []string{"mode=guess", "mode=create&mode=update", "level=1", "profile=urn:other"} {
			Expect(s.do("POST", "/patient/$validate?"+query, luna).status).To(Equal(http.StatusBadRequest), query)
		}
		Expect(s.do("POST", "/patient/$validate", "<Patient/>", with("Content-Type", "application/fhir+xml")).status).To(Equal(http.StatusUnsupportedMediaType))
		By("and who may not write")
		Expect(s.do("POST", "/patient/$validate", luna, with("X-Caller", "no-create")).status).To(Equal(http.StatusForbidden))
		Expect(s.do("POST", "/patient/rex/$validate", luna, with("X-Caller", "no-update")).status).To(Equal(http.StatusForbidden))
		Expect(s.do("POST", "/patient/rex/$validate?mode=delete", "", with("X-Caller", "no-delete")).status).To(Equal(http.StatusForbidden))
	})
})
