package fhir_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/access/gate/gatetest"
	"github.com/paddock-health/paddock/apiserver/access/privacy"
	"github.com/paddock-health/paddock/apiserver/events"
	"github.com/paddock-health/paddock/apiserver/events/eventstest"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/store"
)

// recordEvents gives a site events of Practitioners, and returns what records them.
func recordEvents(ctx context.Context, open func(context.Context, ...func(*fhir.Endpoint)) site) (site, *eventstest.Recorder) {
	GinkgoHelper()
	rules := &privacy.Rules{Rules: []privacy.Rule{{Name: "union", Tags: []privacy.Coding{{Code: "union"}}, Deny: &privacy.Callers{Groups: []string{"kubernetes:x"}}}}}
	s := open(ctx)
	recorder := eventstest.Record(s.raw)
	opened, ok := openSites.Load(s.id)
	Expect(ok).To(BeTrue())
	served := opened.(fhir.Endpoint)
	served.Store = gatetest.WithEvents(recorder, &events.Source{
		SiteID:   s.id,
		Mappings: map[string]events.Mapping{"Practitioner": {Created: "user.created", Updated: "user.updated"}},
		KindOf:   func(string) *events.Kind { return fhir.EventKind },
		Targets:  func(eventType string) ([]string, error) { return []string{"hook-of-" + eventType}, nil },
		Restricts: func(recordType string, body store.Body) bool {
			return rules.Restricts(recordType, fhir.LabelsOf(recordType, body))
		},
	})
	openSites.Store(s.id, served)
	return s, recorder
}

var _ = Describe("Events of changes", func() {
	for name, open := range map[string]func(context.Context, ...func(*fhir.Endpoint)) site{"Cluster": newSite, "Postgres": newPostgresSite} {
		It("are made by every interaction that writes (storage: "+name+")", func(ctx SpecContext) {
			s, recorder := recordEvents(ctx, open)
			seen := 0
			// expect checks the one event of an interaction.
			expect := func(eventType, id string, changed any, restricted bool) {
				GinkgoHelper()
				made := recorder.Made()
				Expect(made).To(HaveLen(seen + 1))
				event := made[seen]
				seen++
				var envelope document
				Expect(json.Unmarshal([]byte(event.Text), &envelope)).To(Succeed(), event.Text)
				Expect(envelope).To(And(HaveKeyWithValue("type", eventType), HaveKeyWithValue("subject", "Practitioner/"+id), HaveKeyWithValue("siteId", s.id)))
				if changed == nil {
					Expect(envelope).To(HaveKeyWithValue("changedFields", BeNil()))
				} else {
					Expect(envelope).To(HaveKeyWithValue("changedFields", changed))
				}
				Expect(event.Restricted).To(Equal(restricted))
				Expect(event.Targets).To(Equal([]string{"hook-of-" + eventType}))
				data, _ := envelope["data"].(map[string]any)
				Expect(document(data)).To(Equal(s.do("GET", "/Practitioner/"+id, "").json()), "data is what a read answers")
			}
			const vet = `{"resourceType":"Practitioner","id":"Vet-1","active":true}`
			s.put("/Practitioner/Vet-1", vet)
			expect("user.created", "Vet-1", nil, false)
			s.put("/practitioner/vet-1", strings.Replace(strings.Replace(vet, "true", "false", 1), "Vet-1", "vet-1", 1))
			expect("user.updated", "Vet-1", []any{"active"}, false)
			s.put("/Practitioner/Vet-1", `{"id":"Vet-1","active":false,"resourceType":"Practitioner"}`)
			Expect(recorder.Made()).To(HaveLen(seen), "nothing changed")

			patch := s.do("PATCH", "/Practitioner/Vet-1", `[{"op":"add","path":"/gender","value":"female"},{"op":"remove","path":"/active"}]`, with("Content-Type", "application/json-patch+json"))
			Expect(patch.status).To(Equal(http.StatusOK), patch.body)
			expect("user.updated", "Vet-1", []any{"active", "gender"}, false)

			posted := s.do("POST", "/Practitioner", `{"resourceType":"Practitioner","identifier":[{"system":"urn:x","value":"1"}]}`)
			Expect(posted.status).To(Equal(http.StatusCreated), posted.body)
			id := posted.json()["id"].(string)
			expect("user.created", id, nil, false)
			again := s.do("POST", "/Practitioner", `{"resourceType":"Practitioner","identifier":[{"system":"urn:x","value":"1"}]}`, with("If-None-Exist", "identifier=urn:x|1"))
			Expect(again.status).To(Equal(http.StatusOK), again.body)
			Expect(recorder.Made()).To(HaveLen(seen))
			conditional := s.do("PUT", "/Practitioner?identifier=urn:x|1", `{"resourceType":"Practitioner","identifier":[{"system":"urn:x","value":"1"}],"active":true}`)
			Expect(conditional.status).To(Equal(http.StatusOK), conditional.body)
			expect("user.updated", id, []any{"active"}, false)

			for _, kind := range []string{"batch", "transaction"} {
				bundle := s.do("POST", "", bundleOf(kind, asks("PUT", "Practitioner/in-"+kind, `{"resourceType":"Practitioner","id":"in-`+kind+`","meta":{"security":[{"system":"`+privacy.ConfidentialitySystem+`","code":"R"}]}}`)))
				Expect(bundle.status).To(Equal(http.StatusOK), bundle.body)
				expect("user.created", "in-"+kind, nil, true)
			}
			s.put("/Practitioner/in-batch", `{"resourceType":"Practitioner","id":"in-batch","meta":{"tag":[{"code":"union"}]}}`)
			expect("user.updated", "in-batch", []any{"meta"}, true)

			s.put("/Patient/rex", `{"resourceType":"Patient","id":"rex"}`)
			Expect(s.do("DELETE", "/Practitioner/Vet-1", "").status).To(BeElementOf(http.StatusOK, http.StatusNoContent))
			Expect(recorder.Made()).To(HaveLen(seen), "no source, and a deletion")
			s.put("/Practitioner/Vet-1", vet)
			Expect(recorder.Made()).To(HaveLen(seen + 1))
			Expect(recorder.Made()[seen].Type).To(Equal("user.created"))
		})
	}
})
