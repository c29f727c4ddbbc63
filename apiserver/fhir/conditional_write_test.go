package fhir_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/fhir"
)

// tagged is a Patient with an identifier, and more members behind it.
func tagged(value, more string) string {
	return `{"resourceType":"Patient","identifier":[{"system":"urn:chip","value":"` + value + `"}]` + more + `}`
}

var _ = Describe("A conditional update", func() {
	const criteria = "/patient?identifier=urn:chip|1"

	It("creates when nothing matches, updates the one that does, and refuses several", func(ctx context.Context) {
		s := newSite(ctx)
		created := s.do("PUT", criteria, tagged("1", ""))
		Expect(created.status).To(Equal(http.StatusCreated), created.body)
		id := created.json()["id"].(string)
		Expect(created.header.Get("Location")).To(Equal(s.base + "/patient/" + id + "/_history/1"))

		updated := s.do("PUT", criteria+"&_format=json", tagged("1", `,"active":true`))
		Expect(updated.status).To(Equal(http.StatusOK), updated.body)
		Expect(updated.json()).To(HaveKeyWithValue("id", id))
		Expect(updated.header.Get("ETag")).To(Equal(`W/"2"`))
		Expect(updated.header.Get("Location")).To(HaveSuffix("/_history/2"))
		Expect(s.do("PUT", criteria, tagged("1", `,"active":true`)).header.Get("ETag")).To(Equal(`W/"2"`))

		s.do("POST", "/patient", tagged("1", ""))
		several := s.do("PUT", criteria, tagged("1", ""))
		Expect(several.status).To(Equal(http.StatusPreconditionFailed))
		Expect(several.code()).To(Equal("multiple_matches"))
		Expect(methods(s.do("GET", "/patient/"+id+"/_history", "").json())).To(Equal([]string{"PUT", "PUT"}))
	})

	It("without criteria is refused with the two ways to say which record is meant", func(ctx context.Context) {
		s := newSite(ctx)
		for _, query := range []string{"", "?_format=json"} {
			refused := s.do("PUT", "/Patient"+query, tagged("1", ""))
			Expect(refused.status).To(Equal(http.StatusBadRequest))
			Expect(refused.code()).To(Equal("invalid_query"))
			Expect(refused.json().at("issue", 0, "diagnostics")).To(HavePrefix("PUT Patient needs an id in the path (`PUT /Patient/{id}`), or search criteria for a conditional update"))
		}
	})

	It("takes the id of the body for a new record, and no other for one that matches", func(ctx context.Context) {
		s := newSite(ctx)
		created := s.do("PUT", criteria, tagged("1", `,"id":"Rex"`))
		Expect(created.status).To(Equal(http.StatusCreated), created.body)
		Expect(created.json()).To(HaveKeyWithValue("id", "Rex"))
		Expect(s.do("PUT", criteria, tagged("1", `,"id":"rEX","active":true`)).json()).To(HaveKeyWithValue("id", "Rex"))
		Expect(s.do("PUT", criteria, tagged("1", `,"id":"other"`)).code()).To(Equal("invalid_id"))

		By("keeping a record of that id that does not match")
		taken := s.do("PUT", "/patient?identifier=urn:chip|2", tagged("2", `,"id":"rex"`))
		Expect(taken.status).To(Equal(http.StatusConflict))
		Expect(taken.code()).To(Equal("id_taken"))

		By("not where the site chooses the ids")
		closed := newSite(ctx, func(site *fhir.Endpoint) { site.UpdateCreate = false })
		Expect(closed.do("PUT", criteria, tagged("1", `,"id":"rex"`)).code()).To(Equal("invalid_id"))
		Expect(closed.do("PUT", criteria, tagged("1", "")).status).To(Equal(http.StatusCreated))
	})

	It("refuses If-None-Exist, as every write but a create does", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/rex", tagged("1", ""))
		for _, write := range [][3]string{
			{"PUT", criteria, tagged("1", `,"active":true`)},
			{"PUT", "/patient/rex", tagged("1", `,"active":true`)},
			{"DELETE", criteria, ""},
			{"DELETE", "/patient/rex", ""},
		} {
			refused := s.do(write[0], write[1], write[2], with("If-None-Exist", "identifier=urn:chip|1"))
			Expect(refused.status).To(Equal(http.StatusBadRequest), refused.body)
			Expect(refused.json().at("issue", 0, "diagnostics")).To(HavePrefix("If-None-Exist is only supported on a create"))
		}
		a := s.do("POST", "", bundleOf("transaction", asks("PUT", "Patient/rex", luna, `"ifNoneExist":"identifier=urn:chip|1"`)))
		Expect(a.status).To(Equal(http.StatusBadRequest), a.body)
		Expect(a.json().at("issue", 0, "expression", 0)).To(Equal("Bundle.entry[0]"))
		Expect(s.do("GET", "/patient/rex", "").header.Get("ETag")).To(Equal(`W/"1"`))
	})

	It("honours If-Match and If-None-Match", func(ctx context.Context) {
		s := newSite(ctx)
		unmatched := s.do("PUT", criteria, tagged("1", ""), with("If-Match", `W/"1"`))
		Expect(unmatched.status).To(Equal(http.StatusPreconditionFailed))
		Expect(unmatched.json().at("issue", 0, "diagnostics")).To(Equal("If-Match requires a record, but no record matches the criteria; correct the criteria or omit the header"))
		Expect(s.do("PUT", criteria, tagged("1", ""), with("If-None-Match", "*")).status).To(Equal(http.StatusCreated))
		Expect(s.do("PUT", criteria, tagged("1", ""), with("If-None-Match", "*")).status).To(Equal(http.StatusPreconditionFailed))
		Expect(s.do("PUT", criteria, tagged("1", ""), with("If-Match", `W/"7"`)).status).To(Equal(http.StatusPreconditionFailed))
		Expect(s.do("PUT", criteria, tagged("1", `,"active":true`), with("If-Match", `W/"1"`)).status).To(Equal(http.StatusOK))
	})

	It("makes one record of many at once, and loses none of them", func(ctx context.Context) {
		s := newSite(ctx)
		const writers = 16
		var group sync.WaitGroup
		statuses := make([]int, writers)
		for i := range statuses {
			group.Go(func() {
				defer GinkgoRecover()
				statuses[i] = s.do("PUT", criteria, tagged("1", fmt.Sprintf(`,"multipleBirthInteger":%d`, i+1))).status
			})
		}
		group.Wait()
		Expect(statuses).To(HaveEach(BeElementOf(http.StatusCreated, http.StatusOK)))
		found := s.do("GET", criteria, "").json()
		Expect(found.ids()).To(HaveLen(1))
		Expect(found.at("entry", 0, "resource", "meta", "versionId")).To(Equal(fmt.Sprint(writers)))
		created := 0
		for _, status := range statuses {
			if status == http.StatusCreated {
				created++
			}
		}
		Expect(created).To(Equal(1))
	}, SpecTimeout(time.Minute))

	It("and conditional creates under the same criteria make one record", func(ctx context.Context) {
		s := newSite(ctx)
		var group sync.WaitGroup
		for i := range 16 {
			group.Go(func() {
				defer GinkgoRecover()
				a := answer{}
				if i%2 == 0 {
					a = s.do("PUT", criteria, tagged("1", ""))
				} else {
					a = s.do("POST", "/patient", tagged("1", ""), with("If-None-Exist", "identifier=urn:chip|1"))
				}
				Expect(a.status).To(BeElementOf(http.StatusCreated, http.StatusOK), a.body)
			})
		}
		group.Wait()
		Expect(s.do("GET", criteria, "").json().ids()).To(HaveLen(1))
	}, SpecTimeout(time.Minute))

	It("needs criteria, and the rights to update, search and create", func(ctx context.Context) {
		s := newSite(ctx)
		for _, path := range []string{"/patient", "/patient?", "/patient?_format=json", "/patient?identifier=", "/patient?_count=1", "/patient?colour=brown", "/patient/"} {
			for _, method := range []string{"PUT", "DELETE"} {
				refused := s.do(method, path, tagged("1", ""))
				Expect(refused.status).To(Equal(http.StatusBadRequest), method+" "+path)
				Expect(refused.code()).To(Equal("invalid_query"))
			}
			Expect(s.do("PATCH", path, "[]", sendPatch).status).To(Equal(http.StatusBadRequest), path)
		}
		for _, caller := range []string{"no-update", "no-list", "no-create"} {
			Expect(s.do("PUT", criteria, tagged("1", ""), with("X-Caller", caller)).status).To(Equal(http.StatusForbidden), caller)
		}
	})
})

var _ = Describe("A conditional patch", func() {
	const criteria, patch = "/Patient?identifier=urn:chip|1", `[{"op":"add","path":"/active","value":false}]`

	It("patches the one that matches: 404 for none, 412 for several", func(ctx context.Context) {
		s := newSite(ctx)
		Expect(s.do("PATCH", criteria, patch, sendPatch).status).To(Equal(http.StatusNotFound))
		s.do("PUT", "/patient/rex", tagged("1", ""))
		patched := s.do("PATCH", criteria, patch, sendPatch)
		Expect(patched.status).To(Equal(http.StatusOK), patched.body)
		Expect(patched.json()).To(HaveKeyWithValue("active", false))
		Expect(patched.header.Get("Location")).To(Equal(s.base + "/Patient/rex/_history/2"))
		Expect(s.do("PATCH", criteria, patch, sendPatch, with("If-Match", `W/"1"`)).status).To(Equal(http.StatusPreconditionFailed))
		s.do("PUT", "/patient/max", tagged("1", ""))
		Expect(s.do("PATCH", criteria, patch, sendPatch).code()).To(Equal("multiple_matches"))
	})

	It("loses none of many at once", func(ctx context.Context) {
		s := newSite(ctx)
		s.do("PUT", "/patient/rex", tagged("1", `,"name":[{"text":"n"}]`))
		var group sync.WaitGroup
		for range 10 {
			group.Go(func() {
				defer GinkgoRecover()
				a := s.do("PATCH", criteria, `[{"op":"add","path":"/name/-","value":{"text":"m"}}]`, sendPatch)
				Expect(a.status).To(Equal(http.StatusOK), a.body)
			})
		}
		group.Wait()
		Expect(s.do("GET", "/patient/rex", "").json()["name"]).To(HaveLen(11))
	}, SpecTimeout(time.Minute))
})

var _ = Describe("A conditional delete", func() {
	It("deletes the one that matches: nothing to do for none, 412 for several", func(ctx context.Context) {
		s := newSite(ctx)
		const criteria = "/patient?identifier=urn:chip|1"
		Expect(s.do("DELETE", criteria, "").body).To(Equal(`{"status":200,"statusText":"OK: no record matches the criteria, so nothing was deleted"}`))
		Expect(s.do("DELETE", criteria, "", acceptFHIR).code()).To(Equal("no_match"))
		unmatched := s.do("DELETE", criteria, "", with("If-Match", "*"))
		Expect(unmatched.status).To(Equal(http.StatusPreconditionFailed))
		Expect(unmatched.json().at("issue", 0, "diagnostics")).To(Equal("If-Match requires a record, but no record matches the criteria; correct the criteria or omit the header"))
		for _, id := range []string{"rex", "max"} {
			s.do("PUT", "/patient/"+id, tagged("1", ""))
		}
		several := s.do("DELETE", criteria, "")
		Expect(several.status).To(Equal(http.StatusPreconditionFailed))
		Expect(several.code()).To(Equal("multiple_matches"))
		Expect(s.do("GET", criteria, "").json().ids()).To(HaveLen(2))
		s.do("DELETE", "/patient/max", "")
		Expect(s.do("DELETE", criteria, "", with("If-Match", `W/"7"`)).status).To(Equal(http.StatusPreconditionFailed))
		Expect(s.do("DELETE", "/patient/?identifier=urn:chip|1", "", acceptFHIR).code()).To(Equal("deleted"))
		Expect(s.do("GET", "/patient/rex", "").status).To(Equal(http.StatusGone))
		Expect(s.do("DELETE", criteria, "", with("X-Caller", "no-list")).status).To(Equal(http.StatusForbidden))
	})
})
