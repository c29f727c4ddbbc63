package fhir_test

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/fhir"
)

// newSites opens a site of each engine.
var newSites = map[string]func(context.Context, ...func(*fhir.Endpoint)) site{"Cluster": newSite, "Postgres": newPostgresSite}

var _ = Describe("Canonical URLs", func() {
	for engine, open := range newSites {
		It("are found by URL, by version, above and below, in "+engine, func(ctx context.Context) {
			s := searching{open(ctx)}
			for id, profile := range map[string]string{
				"none": "http://p.example/a", "one": "http://p.example/a|1", "v10": "http://p.example/a|1.0", "v123": "http://p.example/a|1.2.3",
				"v12": "http://p.example/a|1.2", "v120": "http://p.example/a|1.20", "two": "http://p.example/a|2",
				"deeper": "http://p.example/a/b|1.2", "other": "http://p.example/ab|1.2",
			} {
				s.put("/Device/"+id, `{"resourceType":"Device","meta":{"profile":["`+profile+`"]}}`)
			}
			const a = "http://p.example/a"
			s.finds(map[string]string{
				"Device?_profile=" + a:                                 "none one two v10 v12 v120 v123",
				"Device?_profile=" + a + "|1.2":                        "v12",
				"Device?_profile=" + a + "|1.2.3":                      "v123",
				"Device?_profile=" + a + "|3":                          "",
				"Device?_profile=" + a + "|2,http://p.example/ab":      "other two",
				"Device?_profile=http://p.example/A":                   "",
				"Device?_profile=http://p.example":                     "",
				"Device?_profile:below=" + a:                           "deeper none one two v10 v12 v120 v123",
				"Device?_profile:below=http://p.example":               "deeper none one other two v10 v12 v120 v123",
				"Device?_profile:below=" + a + "|1":                    "one v10 v12 v120 v123",
				"Device?_profile:below=" + a + "|1.2":                  "v12 v123",
				"Device?_profile:below=" + a + "|1.2.3":                "v123",
				"Device?_profile:above=" + a + "|1.2.3":                "one v12 v123",
				"Device?_profile:above=" + a + "|1.20":                 "one v120",
				"Device?_profile:above=" + a + "/b":                    "deeper none one two v10 v12 v120 v123",
				"Device?_profile:above=http://p.example/ab":            "other",
				`Device?_profile=http://p.example/a\|1.2`:              "v12",
				"?_type=Device,Patient&_profile=" + a + "|2":           "two",
				"Patient?_has:Device:patient:_profile=" + a:            "",
				"Device?_profile:missing=true":                         "",
				"Device?_profile=" + a + "&_profile:below=" + a + "|2": "two",
			})
			s.refuses("Device?_profile="+a+"|", "Device?_profile=|1", "Device?_profile="+a+"|1|2", "Device?_profile:exact="+a)
			s.put("/Device/one", `{"resourceType":"Device","meta":{"profile":["`+a+`|2"]}}`)
			s.finds(map[string]string{"Device?_profile=" + a + "|1": "", "Device?_profile=" + a + "|2": "one two"})
			Expect(s.ask("Device?_profile=" + a + "|1").json().link("self")).To(Equal(s.base + "/Device?_profile=http%3A%2F%2Fp.example%2Fa%7C1"))
			conditional := s.do("PUT", "/Device?_profile="+a+"%7C1.2.3", `{"resourceType":"Device","meta":{"profile":["`+a+`|1.2.3"]},"lotNumber":"7"}`)
			Expect(conditional.status).To(Equal(http.StatusOK), conditional.body)
			Expect(conditional.json()).To(HaveKeyWithValue("id", "v123"))
		})
	}
})
