package fhir_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/access/privacy"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/store"
)

// oneByOne lets a store that writes one record at a time take several, one by one:
// enough to see what the facade asks of a store that is atomic.
type oneByOne struct{ store.Restricted }

func (oneByOne) Atomic() bool { return true }

func (s oneByOne) Write(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	var all []store.Result
	for _, op := range ops {
		results, err := s.Restricted.Write(ctx, []store.Op{op})
		if err != nil {
			return nil, err
		}
		all = append(all, results...)
	}
	return all, nil
}

func writingSeveral(s *fhir.Endpoint) { s.Store = oneByOne{s.Store} }

// named gives an entry a fullUrl.
func named(fullURL, entry string) string { return `{"fullUrl":"` + fullURL + `",` + entry[1:] }

// relatedTo returns a RelatedPerson of a patient with additional members.
func relatedTo(reference, more string) string {
	return `{"resourceType":"RelatedPerson","patient":{"reference":"` + reference + `"}` + more + `}`
}

const (
	uuid1 = "urn:uuid:61ebe359-bfdc-4613-8bf2-c5e300945f0a"
	uuid2 = "urn:uuid:88f151c0-a954-468a-88bd-5ae15c08e059"
)

var _ = Describe("A transaction", func() {
	It("reads, or writes one record, on any storage", func(ctx context.Context) {
		s := newSite(ctx)
		a := s.do("POST", "", bundleOf("transaction",
			asks("GET", "Patient/rex", ""),
			asks("PUT", "Patient/rex", luna),
			asks("GET", "Patient?_id=rex", ""),
		), acceptFHIR)
		Expect(a.status).To(Equal(http.StatusOK), a.body)
		expectValid(a)
		Expect(a.json()).To(HaveKeyWithValue("type", "transaction-response"))
		Expect(statuses(a.json())).To(Equal([]string{"200 OK", "201 Created", "200 OK"}))
		Expect(a.json().entries()[0].at("resource", "id")).To(Equal("rex"))
		Expect(s.do("POST", "", bundleOf("transaction")).body).To(Equal(`{"resourceType":"Bundle","type":"transaction-response"}`))
		Expect(statuses(s.do("POST", "", bundleOf("transaction", asks("GET", "Patient/rex", ""))).json())).To(Equal([]string{"200 OK"}))
	})

	It("of several writes is not for this storage: 501, and nothing is written", func(ctx context.Context) {
		s := newSite(ctx)
		a := s.do("POST", "", bundleOf("transaction", asks("PUT", "Patient/a", luna), asks("PUT", "Patient/b", luna)))
		Expect(a.status).To(Equal(http.StatusNotImplemented))
		Expect(a.code()).To(Equal("not_supported"))
		Expect(a.body).To(ContainSubstring("storage.type: Postgres"))
		Expect(s.do("GET", "/patient", "").json().ids()).To(BeEmpty())
	})

	It("fails as a whole, where one entry does", func(ctx context.Context) {
		s := newSite(ctx, writingSeveral)
		s.put("/patient/rex", luna)
		write := asks("PUT", "Patient/new", luna)
		for entry, want := range map[string]struct {
			status   int
			code, at string
		}{
			asks("POST", "Patient", `{"resourceType":"Patient","active":"yes"}`):          {400, "", "Bundle.entry[1].resource.active"},
			asks("POST", "Patient", `{"resourceType":"Person"}`):                          {400, "resource_mismatch", "Bundle.entry[1].resource.resourceType"},
			asks("PUT", "Patient/rex", `{"resourceType":"Patient","id":"x"}`):             {400, "invalid_id", "Bundle.entry[1].resource.id"},
			asks("PUT", "Patient/rex", luna, `"ifMatch":"W/\"7\""`):                       {412, "version_conflict", "Bundle.entry[1]"},
			asks("PUT", "Patient/rex", luna, `"ifNoneMatch":"*"`):                         {412, "version_conflict", "Bundle.entry[1]"},
			asks("DELETE", "Patient/never", "", `"ifMatch":"*"`):                          {412, "version_conflict", "Bundle.entry[1]"},
			asks("PATCH", "Patient/never", binary(`[]`)):                                  {404, "resource_not_found", "Bundle.entry[1]"},
			asks("PATCH", "Patient/rex", binary(`[{"op":"remove","path":"/gender"}]`)):    {409, "patch_conflict", "Bundle.entry[1]"},
			asks("DELETE", "Patient/rex?identifier=urn:chip|1", ""):                       {400, "invalid_query", "Bundle.entry[1]"},
			asks("POST", "Patient?identifier=urn:chip|1", luna):                           {400, "invalid_query", "Bundle.entry[1]"},
			asks("GET", "Patient?colour=brown", ""):                                       {400, "invalid_query", "Bundle.entry[1]"},
			asks("GET", "Observation/1", ""):                                              {404, "unknown_type", "Bundle.entry[1]"},
			asks("POST", "Patient/$validate", luna):                                       {400, "invalid_bundle", "Bundle.entry[1].request"},
			asks("POST", "Patient/_search", ""):                                           {400, "invalid_bundle", "Bundle.entry[1].request"},
			asks("POST", "Patient", luna, `"ifNonExist":"x"`):                             {400, "invalid_bundle", "Bundle.entry[1].request"},
			`{"fullUrl":"` + uuid1 + `"}`:                                                 {400, "invalid_bundle", "Bundle.entry[1].request"},
			asks("PUT", "patient/NEW", luna):                                              {400, "invalid_bundle", "Bundle.entry[1]"},
			asks("DELETE", "Patient/new", ""):                                             {400, "invalid_bundle", "Bundle.entry[0]"},
			asks("POST", "RelatedPerson", relatedTo("Patient?identifier=urn:chip|9", "")): {400, "invalid_reference", "Bundle.entry[1]"},
			asks("POST", "RelatedPerson", relatedTo("Patient?colour=brown", "")):          {400, "invalid_query", "Bundle.entry[1]"},
			asks("POST", "RelatedPerson", relatedTo("Person?identifier=1", "")):           {400, "wrong_reference_target", "Bundle.entry[1].resource.patient.reference"},
		} {
			a := s.do("POST", "", bundleOf("transaction", write, entry))
			Expect(a.status).To(Equal(want.status), entry+a.body)
			if want.code != "" {
				Expect(a.code()).To(Equal(want.code), entry)
			}
			Expect(a.json().at("issue", 0, "expression", 0)).To(Equal(want.at), entry)
			Expect(s.do("GET", "/patient", "").json().ids()).To(Equal([]string{"rex"}), entry)
		}
		forbidden := s.do("POST", "", bundleOf("transaction", write, asks("POST", "Patient", luna)), with("X-Caller", "no-create"))
		Expect(forbidden.status).To(Equal(http.StatusForbidden))
		Expect(s.do("GET", "/patient", "").json().ids()).To(Equal([]string{"rex"}))
		By("with what is read alone too")
		Expect(s.do("POST", "", bundleOf("transaction", asks("GET", "Patient/never", ""))).status).To(Equal(http.StatusNotFound))
	})

	It("writes several records that refer to each other", func(ctx context.Context) {
		s := newSite(ctx, writingSeveral)
		const narrative = `,"text":{"status":"generated","div":"<div xmlns=\"http://www.w3.org/1999/xhtml\">see <a href=\"` + uuid1 + `\">her</a></div>"}`
		a := s.do("POST", "", bundleOf("transaction",
			named(uuid1, asks("POST", "Patient", `{"resourceType":"Patient","link":[{"other":{"reference":"`+uuid2+`"},"type":"seealso"}],"identifier":[{"system":"urn:ietf:rfc:3986","value":"`+uuid1+`"}],"extension":[{"url":"urn:e","valueDecimal":1.50},{"url":"urn:u","valueUri":"`+uuid2+`"}]}`)),
			named(uuid2, asks("POST", "RelatedPerson", relatedTo(uuid1, narrative))),
			named("http://elsewhere.example/fhir/Patient/7", asks("POST", "Patient", `{"resourceType":"Patient","meta":{"profile":["`+uuid1+`"]}}`)),
			named("http://elsewhere.example/fhir/RelatedPerson/8", asks("POST", "RelatedPerson", relatedTo("Patient/7", ""))),
			asks("POST", "RelatedPerson", relatedTo("http://elsewhere.example/fhir/Patient/7", "")),
			asks("POST", "RelatedPerson", relatedTo("Patient/7", "")),
		))
		Expect(a.status).To(Equal(http.StatusOK), a.body)
		Expect(statuses(a.json())).To(HaveEach("201 Created"))
		expectValid(a)
		entries := a.json().entries()
		id := func(i int) string {
			return fmt.Sprint(entries[i].at("resource", "resourceType"), "/", entries[i].at("resource", "id"))
		}
		Expect(entries[0].at("resource", "link", 0, "other", "reference")).To(Equal(id(1)))
		Expect(entries[0].at("resource", "extension", 1, "valueUri")).To(Equal(id(1)))
		Expect(entries[1].at("resource", "patient", "reference")).To(Equal(id(0)))
		Expect(entries[1].at("resource", "text", "div")).To(ContainSubstring(`<a href="` + id(0) + `">`))
		Expect(entries[3].at("resource", "patient", "reference")).To(Equal(id(2)))
		Expect(entries[4].at("resource", "patient", "reference")).To(Equal(id(2)))
		By("leaving what is no link as it is")
		Expect(entries[0].at("resource", "identifier", 0, "value")).To(Equal(uuid1))
		Expect(a.body).To(ContainSubstring(`"valueDecimal":1.50`))
		Expect(entries[2].at("resource", "meta", "profile", 0)).To(Equal(uuid1))
		Expect(entries[5].at("resource", "patient", "reference")).To(Equal("Patient/7"))
		Expect(s.do("GET", "/"+id(1), "").json().at("patient", "reference")).To(Equal(id(0)))
	})

	It("links to what its criteria find, stored or new", func(ctx context.Context) {
		s := newSite(ctx, writingSeveral)
		s.do("PUT", "/patient/rex", tagged("1", ""))
		s.do("PUT", "/patient/gone", tagged("3", ""))
		a := s.do("POST", "", bundleOf("transaction",
			named(uuid1, asks("POST", "Patient", tagged("1", ""), `"ifNoneExist":"identifier=urn:chip|1"`)),
			named(uuid2, asks("PUT", "Patient?identifier=urn:chip|2", tagged("2", ""))),
			asks("POST", "RelatedPerson", relatedTo(uuid1, "")),
			asks("POST", "RelatedPerson", relatedTo(uuid2, "")),
			asks("POST", "RelatedPerson", relatedTo("Patient?identifier=urn:chip|1", "")),
			asks("POST", "RelatedPerson", relatedTo("Patient?identifier=urn:chip|2", "")),
			asks("DELETE", "Patient?identifier=urn:chip|3", ""),
		))
		Expect(statuses(a.json())).To(Equal([]string{
			"200 OK", "201 Created", "201 Created", "201 Created", "201 Created", "201 Created", "200 OK",
		}), a.body)
		entries := a.json().entries()
		second := "Patient/" + entries[1].at("resource", "id").(string)
		for i, want := range map[int]string{2: "Patient/rex", 3: second, 4: "Patient/rex", 5: second} {
			Expect(entries[i].at("resource", "patient", "reference")).To(Equal(want), "%d", i)
		}
		Expect(s.do("GET", "/patient/gone", "").status).To(Equal(http.StatusGone))

		By("not to what is deleted with it, nor to one of several")
		refers := asks("POST", "RelatedPerson", relatedTo("Patient?identifier=urn:chip|2", ""))
		Expect(s.do("POST", "", bundleOf("transaction", refers, asks("DELETE", second, ""))).code()).To(Equal("invalid_reference"))
		s.do("POST", "/patient", tagged("2", ""))
		Expect(s.do("POST", "", bundleOf("transaction", refers)).code()).To(Equal("multiple_matches"))
		Expect(s.do("POST", "", bundleOf("transaction", refers), with("X-Caller", "no-list")).status).To(Equal(http.StatusForbidden))
	})

	It("resolves links with a single write too, which any storage takes", func(ctx context.Context) {
		s := newSite(ctx)
		s.do("PUT", "/patient/rex", tagged("1", ""))
		a := s.do("POST", "", bundleOf("transaction",
			named(uuid1, asks("POST", "Patient", tagged("1", ""), `"ifNoneExist":"identifier=urn:chip|1"`)),
			asks("POST", "RelatedPerson", relatedTo(uuid1, "")),
		))
		Expect(statuses(a.json())).To(Equal([]string{"200 OK", "201 Created"}), a.body)
		Expect(a.json().entries()[1].at("resource", "patient", "reference")).To(Equal("Patient/rex"))
	})

	It("has every record and every fullUrl once", func(ctx context.Context) {
		s := newSite(ctx, writingSeveral)
		s.do("PUT", "/patient/rex", tagged("1", ""))
		for name, entries := range map[string][]string{
			"two updates":                {asks("PUT", "Patient/rex", luna), asks("PUT", "patient/REX", luna)},
			"an update and a patch":      {asks("PUT", "Patient/rex", luna), asks("PATCH", "Patient/rex", binary(`[]`))},
			"one by id, one by criteria": {asks("PUT", "Patient/rex", luna), asks("DELETE", "Patient?identifier=urn:chip|1", "")},
			"two creates by criteria": {
				asks("POST", "Patient", tagged("2", ""), `"ifNoneExist":"identifier=urn:chip|2"`),
				asks("POST", "Patient", tagged("2", ""), `"ifNoneExist":"identifier=urn:chip|2"`),
			},
			"a create by criteria that match what is deleted": {
				asks("POST", "Patient", tagged("1", ""), `"ifNoneExist":"identifier=urn:chip|1"`), asks("DELETE", "Patient/REX", ""),
			},
			"a fullUrl twice": {named(uuid1, asks("POST", "Patient", luna)), named(uuid1, asks("POST", "Patient", luna))},
		} {
			a := s.do("POST", "", bundleOf("transaction", entries...))
			Expect(a.status).To(Equal(http.StatusBadRequest), name+a.body)
			Expect(a.code()).To(Equal("invalid_bundle"), name)
		}
		Expect(s.do("GET", "/patient", "").json().ids()).To(Equal([]string{"rex"}))
	})

	It("updates, creates, patches and deletes as each alone does", func(ctx context.Context) {
		s := newSite(ctx, writingSeveral)
		for _, id := range []string{"a", "b", "c"} {
			s.put("/patient/"+id, luna)
		}
		s.do("DELETE", "/patient/c", "")
		a := s.do("POST", "", bundleOf("transaction",
			asks("GET", "Patient/a", ""),
			asks("GET", "Patient/b", ""),
			asks("PATCH", "Patient/a", binary(`[{"op":"add","path":"/active","value":true}]`), `"ifMatch":"W/\"1\""`),
			asks("DELETE", "Patient/b", ""),
			asks("DELETE", "Patient/never", ""),
			asks("PUT", "Patient/c", luna),
			asks("PUT", "Patient/d", luna, `"ifNoneMatch":"*"`),
		))
		Expect(statuses(a.json())).To(Equal([]string{
			"200 OK", "410 Gone", "200 OK", "200 OK", "200 OK", "201 Created", "201 Created",
		}), a.body)
		Expect(a.json().entries()[0].at("resource", "active")).To(BeTrue())
		Expect(a.json().entries()[5].at("resource", "meta", "versionId")).To(Equal("3"))
		unchanged := s.do("POST", "", bundleOf("transaction", asks("PUT", "Patient/c", luna), asks("PUT", "Patient/d", luna)))
		Expect(unchanged.json().entries()[0].at("response", "etag")).To(Equal(`W/"3"`))
		By("a deleted record, if it was deleted in the version that is expected")
		restored := s.do("POST", "", bundleOf("transaction", asks("PUT", "Patient/b", luna, `"ifMatch":"W/\"2\""`)))
		Expect(statuses(restored.json())).To(Equal([]string{"201 Created"}), restored.body)
		s.do("DELETE", "/patient/b", "")
		conflict := s.do("POST", "", bundleOf("transaction", asks("PUT", "Patient/b", luna, `"ifMatch":"W/\"2\""`)))
		Expect(conflict.status).To(Equal(http.StatusPreconditionFailed), conflict.body)
		closed := newSite(ctx, writingSeveral, func(site *fhir.Endpoint) { site.UpdateCreate = false })
		Expect(closed.do("POST", "", bundleOf("transaction", asks("PUT", "Patient/d", luna))).status).To(Equal(http.StatusNotFound))
	})

	It("writes many records whose visibility is read first", func(ctx context.Context) {
		s := newPostgresSite(ctx)
		restrictNurse(s)
		const many = 25
		secret := `{"resourceType":"Patient","meta":{"security":[{"system":"` + privacy.ConfidentialitySystem + `","code":"R"}]}}`
		device := `{"resourceType":"Device","patient":{"reference":"Patient/rex"}}`
		s.put("/patient/rex", luna)
		var updates, creations, deletions []string
		for i := range many {
			s.put(fmt.Sprintf("/device/d%d", i), device)
			updates = append(updates, asks("PUT", fmt.Sprintf("Device/d%d", i), strings.Replace(device, "{", `{"status":"active",`, 1)))
			s.put(fmt.Sprintf("/patient/p%d", i), luna)
			Expect(s.do("DELETE", fmt.Sprintf("/patient/p%d", i), "").status).To(Equal(http.StatusOK))
			creations = append(creations, asks("PUT", fmt.Sprintf("Patient/p%d", i), luna))
			s.put(fmt.Sprintf("/patient/secret%d", i), secret)
			deletions = append(deletions, asks("DELETE", fmt.Sprintf("Patient/secret%d", i), ""))
		}
		write := func(entries []string, status string) {
			GinkgoHelper()
			a := s.do("POST", "", bundleOf("transaction", entries...), acceptFHIR, with("X-Caller", "nurse"))
			Expect(a.status).To(Equal(http.StatusOK), a.body)
			Expect(statuses(a.json())).To(And(HaveLen(many), HaveEach(status)))
		}
		write(updates, "200 OK")
		write(creations, "201 Created")
		write(deletions, "200 OK")
		Expect(s.do("GET", "/device/d0", "").body).To(ContainSubstring("active"))
		Expect(s.do("GET", "/patient/secret0", "").status).To(Equal(http.StatusOK), "what the caller may not see stays")
	})

	It("decides anew when others write in between", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/rex", `{"resourceType":"Patient","name":[{"text":"n"}]}`)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				defer GinkgoRecover()
				a := s.do("POST", "", bundleOf("transaction", asks("PATCH", "Patient/rex", binary(`[{"op":"add","path":"/name/-","value":{"text":"m"}}]`))))
				Expect(a.status).To(Equal(http.StatusOK), a.body)
			})
		}
		group.Wait()
		Expect(s.do("GET", "/patient/rex", "").json()["name"]).To(HaveLen(9))
	}, SpecTimeout(time.Minute))

	It("makes one record of conditional creates at once", func(ctx context.Context) {
		s := newSite(ctx)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				defer GinkgoRecover()
				a := s.do("POST", "", bundleOf("transaction", asks("POST", "Patient", tagged("1", ""), `"ifNoneExist":"identifier=urn:chip|1"`)))
				Expect(a.status).To(Equal(http.StatusOK), a.body)
			})
		}
		group.Wait()
		Expect(s.do("GET", "/patient?identifier=urn:chip|1", "").json().ids()).To(HaveLen(1))
	}, SpecTimeout(time.Minute))

	It("tells all that is wrong with its form at once", func(ctx context.Context) {
		s := newSite(ctx)
		a := s.do("POST", "", bundleOf("transaction", asks("FETCH", "Patient", "", `"urL":"x"`), asks("PUT", "Patient/x", "")))
		Expect(a.status).To(Equal(http.StatusBadRequest))
		Expect(strings.Count(a.body, `"invalid_bundle"`)).To(Equal(3), a.body)
	})
})
