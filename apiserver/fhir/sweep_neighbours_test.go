package fhir_test

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/store"
)

var _ = Describe("A site in the storage of another one", func() {
	kinds := []string{"Device", "Group", "Organization", "Patient"}
	for engine, open := range newSites {
		Describe("in "+engine, Ordered, ContinueOnFailure, func() {
			var both *twins
			var before []string
			var questions []question
			// answers are those of the site without hidden records to each caller.
			answers := func() (all []string) {
				for _, q := range questions {
					for _, caller := range []string{nurse, chief} {
						asked := q
						asked.header = header("X-Caller", caller)
						for name, values := range q.header {
							asked.header[name] = values
						}
						all = append(all, asked.String()+"\n"+both.without.pages(asked))
					}
				}
				return all
			}
			BeforeAll(func(ctx context.Context) {
				both = &twins{with: openTwin(ctx, open, openPolicy, nil), without: openTwin(ctx, open, openPolicy, nil), kinds: kinds}
				both.without.fill(kinds)
				for _, table := range [][]question{readQuestions("Patient"), joinQuestions("Device"), both.controlQuestions("Patient"), both.parameterQuestions("Device"), siteQuestions()} {
					for i := 0; i < len(table); i += sparsity {
						questions = append(questions, table[i])
					}
				}
				before = answers()
				both.with.hides = true
				both.with.fill(kinds)
			})

			It("answers what it answered before the other had records of the same ids", func() {
				for i, after := range answers() {
					Expect(after).To(Equal(before[i]))
				}
			})
			It("takes ids, criteria and references without regard to the other, and changes nothing there", func(ctx context.Context) {
				stored := both.stored(ctx)
				ask := func(method, path, body string, pairs ...string) answer {
					return both.without.ask(question{method: method, path: path, body: body, header: header(append(pairs, "X-Caller", chief)...)})
				}
				for _, id := range hiddenIDs {
					Expect(ask("DELETE", "/Patient/"+id, "").status).To(BeElementOf(http.StatusOK, http.StatusNoContent), id)
					Expect(ask("PATCH", "/Patient/"+id, patches[0], "Content-Type", "application/json-patch+json").status).To(Equal(http.StatusNotFound), id)
					a := ask("POST", "/Organization", `{"resourceType":"Organization","name":"n","partOf":{"reference":"Organization/`+id+`"}}`)
					b := ask("POST", "/Organization", `{"resourceType":"Organization","name":"n","partOf":{"reference":"Organization/never"}}`)
					Expect(a.status).To(Equal(b.status), id+": "+a.body)
				}
				a := ask("POST", "/Patient", claimer(""), "If-None-Exist", "identifier=urn:only|claimed", headerLoose, "1")
				Expect(a.status).To(Equal(http.StatusCreated), a.body)
				for _, id := range hiddenIDs {
					a := ask("PUT", "/Patient/"+id, sweepRecord{"Patient", id, hiddenWord, "seen-a", ""}.body(), headerLoose, "1", "If-None-Match", "*")
					Expect(a.status).To(Equal(http.StatusCreated), id+": "+a.body)
				}
				Expect(both.stored(ctx)).To(Equal(stored))
			})
			It("takes no page tokens of the other", func() {
				for _, path := range []string{"/Patient?_count=1", "/?_count=1", "/Patient/_history?_count=1", "/_history?_count=1"} {
					for _, caller := range []string{nurse, chief} {
						as := header("X-Caller", caller)
						token := pageToken.FindStringSubmatch(both.with.ask(question{method: "GET", path: path, header: as}).body)
						Expect(token).NotTo(BeNil(), path)
						q := question{method: "GET", path: path + "&_page_token=" + token[1], header: as}
						Expect(both.with.ask(q).status).To(Equal(http.StatusOK), path)
						Expect(both.without.ask(q).status).To(Equal(http.StatusBadRequest), path)
					}
				}
			})
			It("shares no record with the other", func(ctx context.Context) {
				for _, kind := range kinds {
					own, err := both.without.raw.Get(ctx, store.Key{Type: kind, ID: "seen-a"})
					Expect(err).NotTo(HaveOccurred())
					other, err := both.with.raw.Get(ctx, store.Key{Type: kind, ID: "seen-a"})
					Expect(err).NotTo(HaveOccurred())
					Expect(own.UID).NotTo(Equal(other.UID))
				}
			})
		})
	}
})
