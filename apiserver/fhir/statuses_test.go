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

	"github.com/paddock-health/paddock/apiserver/fhir"
)

const luna = `{"resourceType":"Patient","active":true , "birthDate":"2019-06-14"}`

var _ = Describe("Create", func() {
	It("answers 201 with the stored resource, where it is and its version", func(ctx context.Context) {
		s := newSite(ctx)
		a := s.do("POST", "/patient", luna)
		Expect(a.status).To(Equal(http.StatusCreated))
		Expect(a.header.Get("Content-Type")).To(Equal("application/json"))
		Expect(a.header.Get("ETag")).To(Equal(`W/"1"`))
		id := a.json()["id"].(string)
		Expect(id).To(MatchRegexp(`^[0-9a-f]{8}-[0-9a-f]{4}-7`), "a UUID of version 7")
		Expect(a.header.Get("Location")).To(Equal(s.base + "/patient/" + id + "/_history/1"))
		Expect(a.body).To(MatchRegexp(`^\{"resourceType":"Patient","id":"%s","meta":\{"versionId":"1","lastUpdated":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"\},"active":true , "birthDate":"2019-06-14"\}$`, id))
		updated, err := time.Parse(time.RFC3339, a.json().at("meta", "lastUpdated").(string))
		Expect(err).NotTo(HaveOccurred())
		Expect(a.header.Get("Last-Modified")).To(Equal(updated.Format(http.TimeFormat)))

		By("finding it where Location says")
		Expect(s.do("GET", a.header.Get("Location"), "").body).To(Equal(a.body))
		Expect(s.do("GET", "/patient/"+id, "").body).To(Equal(a.body))
	})

	It("ignores the client's id, versionId and lastUpdated and keeps the rest of meta", func(ctx context.Context) {
		s := newSite(ctx)
		a := s.do("POST", "/patient", `{"resourceType":"Patient","id":"mine","meta":{"versionId":"9","lastUpdated":"2001-01-01T00:00:00Z","tag":[{"code":"x"}],"source":"#s"}}`)
		Expect(a.status).To(Equal(http.StatusCreated))
		Expect(a.json()["id"]).NotTo(Equal("mine"))
		Expect(a.json().at("meta", "versionId")).To(Equal("1"))
		Expect(a.body).To(MatchRegexp(`"lastUpdated":"20[2-9]\d-[^"]+","tag":\[\{"code":"x"\}\],"source":"#s"\}\}$`))
	})
})

var _ = Describe("Prefer", func() {
	DescribeTable("return", func(ctx context.Context, prefer, pattern string) {
		s := newSite(ctx)
		created := s.do("POST", "/patient", luna, with("Prefer", prefer))
		Expect(created.status).To(Equal(http.StatusCreated))
		Expect(created.header.Get("Location")).NotTo(BeEmpty())
		Expect(created.header.Get("ETag")).To(Equal(`W/"1"`))
		Expect(created.body).To(MatchRegexp(pattern))
		replaced := s.do("PUT", "/patient/a", luna, with("Prefer", prefer))
		Expect(replaced.status).To(Equal(http.StatusCreated))
		Expect(replaced.body).To(MatchRegexp(pattern))
	},
		Entry("minimal", "return=minimal", `^$`),
		Entry("representation", "return=representation", `"birthDate"`),
		Entry("OperationOutcome", "return=OperationOutcome", `"OperationOutcome".*"code":"created"`),
	)
})

var _ = Describe("Read", func() {
	It("answers 304 to who has the version already", func(ctx context.Context) {
		s := newSite(ctx)
		created := s.put("/patient/a", luna)
		for _, condition := range []option{
			with("If-None-Match", `W/"1"`), with("If-None-Match", `W/"7", W/"1"`), with("If-None-Match", "*"), with("If-None-Match", "1"),
			with("If-Modified-Since", created.header.Get("Last-Modified")),
		} {
			for _, path := range []string{"/patient/a", "/patient/a/_history/1"} {
				a := s.do("GET", path, "", condition)
				Expect(a.status).To(Equal(http.StatusNotModified))
				Expect(a.body).To(BeEmpty())
				Expect(a.header.Get("ETag")).To(Equal(`W/"1"`))
				Expect(a.header.Get("Last-Modified")).To(Equal(created.header.Get("Last-Modified")))
			}
		}
		for _, condition := range []option{
			with("If-None-Match", `W/"2"`),
			with("If-Modified-Since", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)),
		} {
			Expect(s.do("GET", "/patient/a", "", condition).status).To(Equal(http.StatusOK))
		}
		Expect(s.do("GET", "/patient/a", "", with("If-None-Match", "W/1")).code()).To(Equal("invalid_header"))
		Expect(s.do("GET", "/metadata", "", with("If-None-Match", "1")).status).To(Equal(http.StatusOK))
	})

	It("tells what never was from what is deleted", func(ctx context.Context) {
		s := newSite(ctx)
		never := s.do("GET", "/patient/a", "")
		Expect(never.status).To(Equal(http.StatusNotFound))
		Expect(never.code()).To(Equal("resource_not_found"))
		s.put("/patient/a", luna)
		s.do("DELETE", "/patient/a", "")
		gone := s.do("GET", "/patient/a", "")
		Expect(gone.status).To(Equal(http.StatusGone))
		Expect(gone.code()).To(Equal("deleted"))
		Expect(gone.header.Get("ETag")).To(Equal(`W/"2"`))
		Expect(s.do("GET", "/person/a", "").status).To(Equal(http.StatusNotFound), "another type")
	})

	It("reads versions by number", func(ctx context.Context) {
		s := newSite(ctx)
		first := s.put("/patient/a", luna)
		second := s.put("/patient/a", `{"resourceType":"Patient"}`)
		s.do("DELETE", "/patient/a", "")
		Expect(s.do("GET", "/patient/a/_history/1", "").body).To(Equal(first.body))
		Expect(s.do("GET", "/patient/%61/_history/%31", "").body).To(Equal(first.body))
		Expect(s.do("GET", "/patient/a/_history/2", "").body).To(Equal(second.body))
		Expect(s.do("GET", "/patient/a/_history/3", "").status).To(Equal(http.StatusGone))
		for _, version := range []string{"4", "0", "-1", "01", "x", "1.0", "99999999999999999999"} {
			Expect(s.do("GET", "/patient/a/_history/"+version, "").status).To(Equal(http.StatusNotFound), version)
		}
	})

	It("answers HEAD as GET, without the body", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/a", luna)
		for _, path := range []string{"/patient/a", "/patient/a/_history/1", "/patient/a/history", "/patient", "/patient/none"} {
			get, head := s.do("GET", path, ""), s.do("HEAD", path, "")
			Expect(head.status).To(Equal(get.status), path)
			Expect(head.body).To(BeEmpty())
			Expect(head.header.Get("ETag")).To(Equal(get.header.Get("ETag")))
			Expect(head.header.Get("Content-Length")).To(Equal(fmt.Sprint(len(get.body))))
		}
	})

	It("returns the elements asked for, tagged as a part", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/a", luna)
		part := s.do("GET", "/patient/a?_elements=birthDate", "").json()
		Expect(part).To(HaveKeyWithValue("birthDate", "2019-06-14"))
		Expect(part).NotTo(HaveKey("active"))
		Expect(part.at("meta", "tag", 0, "code")).To(Equal("SUBSETTED"))
		Expect(s.do("GET", "/patient/a?_summary=count", "").code()).To(Equal("invalid_query"))

		By("a part does not replace the whole")
		sent := s.do("GET", "/patient/a?_elements=birthDate", "").body
		for _, refused := range []answer{s.do("PUT", "/patient/a", sent), s.do("POST", "/patient", sent), s.do("PUT", "/Patient/a", sent, sendFHIR)} {
			Expect(refused.status).To(Equal(http.StatusBadRequest))
			Expect(refused.code()).To(Equal("subsetted_resource"))
		}
		Expect(s.do("POST", "/patient/a/$validate?mode=update", sent).code()).To(Equal("subsetted_resource"))
		_, failed := s.importAll("/$import", sent+"\n")
		Expect(failed).To(HaveLen(1))
		Expect(s.do("GET", "/patient/a", "").json()).To(HaveKey("active"))
	})
})

var _ = Describe("Update", func() {
	It("creates, updates, and leaves what is unchanged at its version", func(ctx context.Context) {
		s := newSite(ctx)
		created := s.do("PUT", "/patient/a", luna)
		Expect(created.status).To(Equal(http.StatusCreated))
		Expect(created.header.Get("Location")).To(Equal(s.base + "/patient/a/_history/1"))

		same := s.do("PUT", "/patient/a", luna)
		Expect(same.status).To(Equal(http.StatusOK))
		Expect(same.header.Get("ETag")).To(Equal(`W/"1"`))
		Expect(same.header.Get("Location")).To(Equal(s.base + "/patient/a/_history/1"))
		Expect(same.body).To(Equal(created.body))

		By("sending back what was read")
		Expect(s.do("PUT", "/patient/a", created.body).header.Get("ETag")).To(Equal(`W/"1"`))

		changed := s.do("PUT", "/patient/a", `{"resourceType":"Patient"}`)
		Expect(changed.status).To(Equal(http.StatusOK))
		Expect(changed.header.Get("ETag")).To(Equal(`W/"2"`))
		Expect(changed.json().at("meta", "versionId")).To(Equal("2"))
		before, after := created.json().at("meta", "lastUpdated").(string), changed.json().at("meta", "lastUpdated").(string)
		Expect(after > before).To(BeTrue(), "%s is later than %s", after, before)
	})

	It("brings back what was deleted", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/a", luna)
		s.do("DELETE", "/patient/a", "")
		again := s.do("PUT", "/patient/a", luna)
		Expect(again.status).To(Equal(http.StatusCreated))
		Expect(again.header.Get("ETag")).To(Equal(`W/"3"`))
	})

	It("honours If-Match", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/a", luna)
		stale := s.do("PUT", "/patient/a", `{"resourceType":"Patient"}`, with("If-Match", `W/"7"`))
		Expect(stale.status).To(Equal(http.StatusPreconditionFailed))
		Expect(stale.code()).To(Equal("version_conflict"))
		Expect(stale.header.Get("ETag")).To(Equal(`W/"1"`))
		for i, condition := range []string{`W/"1"`, `W/"9", W/"2"`, "*", `"4"`} {
			a := s.do("PUT", "/patient/a", fmt.Sprintf(`{"resourceType":"Patient","multipleBirthInteger":%d}`, i), with("If-Match", condition))
			Expect(a.status).To(Equal(http.StatusOK), condition)
			Expect(a.header.Get("ETag")).To(Equal(fmt.Sprintf(`W/"%d"`, i+2)))
			Expect(a.header.Get("Location")).To(Equal(fmt.Sprintf(`%s/patient/a/_history/%d`, s.base, i+2)))
		}
		for _, condition := range []string{`W/"1"`, `W/"1", W/"2"`, "*"} {
			absent := s.do("PUT", "/patient/none", luna, with("If-Match", condition))
			Expect(absent.status).To(Equal(http.StatusPreconditionFailed), condition)
		}
		Expect(s.do("PUT", "/patient/a", luna, with("If-Match", "1")).status).To(Equal(http.StatusBadRequest))
	})

	It("brings back what was deleted, if its deletion is what If-Match names", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/a", luna)
		s.do("DELETE", "/patient/a", "")
		tag := s.do("GET", "/patient/a", "").header.Get("ETag")
		Expect(tag).To(Equal(`W/"2"`))
		Expect(s.do("PUT", "/patient/a", luna, with("If-Match", `W/"1"`)).status).To(Equal(http.StatusPreconditionFailed))
		Expect(s.do("PUT", "/patient/a", luna, with("If-Match", tag), with("X-Caller", "no-create")).status).To(Equal(http.StatusForbidden))
		Expect(s.do("PATCH", "/patient/a", `[]`, sendPatch, with("If-Match", tag)).status).To(Equal(http.StatusPreconditionFailed))
		Expect(s.do("GET", "/patient/a", "").status).To(Equal(http.StatusGone))
		back := s.do("PUT", "/patient/a", luna, with("If-Match", tag))
		Expect(back.status).To(Equal(http.StatusCreated))
		Expect(back.header.Get("ETag")).To(Equal(`W/"3"`))
		Expect(s.do("PUT", "/patient/a", luna, with("If-Match", tag)).status).To(Equal(http.StatusPreconditionFailed))
		By("one of many who saw it deleted")
		s.do("DELETE", "/patient/a", "")
		statuses := race(8, func(i int) int {
			return s.do("PUT", "/patient/a", fmt.Sprintf(`{"resourceType":"Patient","multipleBirthInteger":%d}`, i), with("If-Match", `W/"9", W/"4"`)).status
		})
		Expect(statuses).To(Equal(map[int]int{http.StatusCreated: 1, http.StatusPreconditionFailed: 7}))
	})

	It("honours If-None-Match: *", func(ctx context.Context) {
		s := newSite(ctx)
		only := with("If-None-Match", "*")
		Expect(s.do("PUT", "/patient/a", luna, only).status).To(Equal(http.StatusCreated))
		again := s.do("PUT", "/patient/a", luna, only)
		Expect(again.status).To(Equal(http.StatusPreconditionFailed))
		Expect(again.header.Get("ETag")).To(Equal(`W/"1"`))
	})

	It("has exactly one winner among writers with one version", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/a", luna)
		statuses := race(16, func(i int) int {
			return s.do("PUT", "/patient/a", fmt.Sprintf(`{"resourceType":"Patient","multipleBirthInteger":%d}`, i), with("If-Match", `W/"1"`)).status
		})
		Expect(statuses).To(Equal(map[int]int{http.StatusOK: 1, http.StatusPreconditionFailed: 15}))
	})

	It("creates once when many write at once", func(ctx context.Context) {
		s := newSite(ctx)
		statuses := race(8, func(i int) int {
			return s.do("PUT", "/patient/a", fmt.Sprintf(`{"resourceType":"Patient","multipleBirthInteger":%d}`, i)).status
		})
		Expect(statuses).To(Equal(map[int]int{http.StatusCreated: 1, http.StatusOK: 7}))
		Expect(s.do("GET", "/patient/a", "").header.Get("ETag")).To(Equal(`W/"8"`))
	})

	It("does not create where the site does not allow it", func(ctx context.Context) {
		s := newSite(ctx, func(s *fhir.Endpoint) { s.UpdateCreate = false })
		Expect(s.do("PUT", "/patient/a", luna).status).To(Equal(http.StatusNotFound))
		Expect(s.do("PUT", "/patient/a", luna, with("If-None-Match", "*")).status).To(Equal(http.StatusNotFound))
		path := "/patient/" + s.do("POST", "/patient", luna).json()["id"].(string)
		Expect(s.do("PUT", path, `{"resourceType":"Patient"}`).status).To(Equal(http.StatusOK))
		Expect(s.do("PUT", path, luna, with("If-None-Match", "*")).status).To(Equal(http.StatusPreconditionFailed))
		s.do("DELETE", path, "")
		Expect(s.do("PUT", path, luna).status).To(Equal(http.StatusGone))
	})

	It("needs the right to create what it creates", func(ctx context.Context) {
		s := newSite(ctx)
		noCreate, noUpdate := with("X-Caller", "no-create"), with("X-Caller", "no-update")
		refused := s.do("PUT", "/patient/a", luna, noCreate)
		Expect(refused.status).To(Equal(http.StatusForbidden))
		Expect(refused.body).To(ContainSubstring("create patients.r4.fhir.paddock.health"))
		Expect(s.do("PUT", "/patient/a", luna, noCreate, with("If-None-Match", "*")).status).To(Equal(http.StatusForbidden))
		Expect(s.do("GET", "/patient/a", "").status).To(Equal(http.StatusNotFound))
		s.put("/patient/a", luna)
		Expect(s.do("PUT", "/patient/a", `{"resourceType":"Patient"}`, noCreate).status).To(Equal(http.StatusOK))
		Expect(s.do("PUT", "/patient/a", luna, noUpdate).status).To(Equal(http.StatusForbidden))
	})

	It("refuses another id than the path's, and one that is none", func(ctx context.Context) {
		s := newSite(ctx)
		other := s.do("PUT", "/patient/a", `{"resourceType":"Patient","id":"b"}`)
		Expect(other.status).To(Equal(http.StatusBadRequest))
		Expect(other.code()).To(Equal("invalid_id"))
		Expect(other.json().at("issue", 0, "expression", 0)).To(Equal("Patient.id"))
		Expect(s.do("PUT", "/patient/a_b", luna).code()).To(Equal("invalid_id"))
	})
})

var _ = Describe("Delete", func() {
	It("is idempotent, and needs no record", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/a", luna)
		for range 2 {
			a := s.do("DELETE", "/patient/a", "")
			Expect(a.status).To(Equal(http.StatusOK))
			Expect(a.header.Get("ETag")).To(Equal(`W/"2"`))
		}
		never := s.do("DELETE", "/patient/never", "")
		Expect(never.status).To(Equal(http.StatusOK))
		Expect(never.header.Get("ETag")).To(BeEmpty())
	})

	It("honours If-Match", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/a", luna)
		stale := s.do("DELETE", "/patient/a", "", with("If-Match", `W/"7"`))
		Expect(stale.status).To(Equal(http.StatusPreconditionFailed))
		Expect(stale.header.Get("ETag")).To(Equal(`W/"1"`))
		Expect(s.do("DELETE", "/patient/a", "", with("If-None-Match", "*")).status).To(Equal(http.StatusBadRequest))
		Expect(s.do("DELETE", "/patient/a", "", with("If-Match", `W/"1"`)).status).To(Equal(http.StatusOK))
		Expect(s.do("GET", "/patient/a", "").status).To(Equal(http.StatusGone))
	})
})

var _ = Describe("A write of one record", func() {
	const off = `[{"op":"replace","path":"/active","value":false}]`

	DescribeTable("refuses parameters that a read does not take, and writes nothing", func(ctx context.Context, method, path, body string, options ...option) {
		for _, lenient := range []bool{false, true} {
			s := newSite(ctx, func(s *fhir.Endpoint) { s.Lenient = lenient })
			s.put("/patient/rex", luna)
			for _, query := range []string{"identifier=urn:chip|1", "_id=rex&_pretty=true", "if-match=1", "_count=1"} {
				refused := s.do(method, path+"?"+query, body, append(options, with("Prefer", "handling=lenient"))...)
				Expect(refused.status).To(Equal(http.StatusBadRequest), query)
				Expect(refused.code()).To(Equal("invalid_query"), query)
				name, _, _ := strings.Cut(query, "=")
				Expect(refused.json().at("issue", 0, "diagnostics")).To(ContainSubstring(`"`+name+`"`), query)
			}
			history := s.do("GET", "/_history", "", acceptFHIR).json()
			Expect(history["total"]).To(BeEquivalentTo(1))
		}
	},
		Entry("create", "POST", "/patient", luna),
		Entry("create, below a slash", "POST", "/patient/", luna),
		Entry("conditional create", "POST", "/patient", luna, with("If-None-Exist", "identifier=urn:chip|1")),
		Entry("update", "PUT", "/patient/rex", `{"resourceType":"Patient"}`),
		Entry("update that creates", "PUT", "/patient/new", luna),
		Entry("patch", "PATCH", "/patient/rex", off, sendPatch),
		Entry("delete", "DELETE", "/patient/rex", ""),
	)

	It("takes those of a read, and answers as they say", func(ctx context.Context) {
		s := newSite(ctx)
		const query = "?_elements=birthDate&_pretty=true&_format=application/fhir%2Bjson"
		for _, a := range []answer{
			s.do("POST", "/patient"+query, luna), s.do("PUT", "/patient/rex"+query, luna), s.do("PATCH", "/patient/rex"+query, off, sendPatch),
		} {
			Expect(a.status).To(BeElementOf(http.StatusOK, http.StatusCreated), a.body)
			Expect(a.header.Get("Content-Type")).To(Equal("application/fhir+json; charset=utf-8"))
			Expect(a.body).To(HavePrefix("{\n"))
			Expect(a.json()).To(HaveKeyWithValue("birthDate", "2019-06-14"))
			Expect(a.json()).NotTo(HaveKey("active"))
			Expect(a.json().at("meta", "tag", 0, "code")).To(Equal("SUBSETTED"))
		}
		Expect(s.do("GET", "/patient/rex", "").json()).To(HaveKeyWithValue("active", false))
		Expect(s.do("PUT", "/patient/rex?_summary=all", luna).code()).To(Equal("invalid_query"))
		Expect(s.do("DELETE", "/patient/rex"+query, "").code()).To(Equal("deleted"))
	})
})

// race calls a function n times concurrently and counts the results.
func race(n int, do func(i int) int) map[int]int {
	var (
		mu      sync.Mutex
		group   sync.WaitGroup
		results = map[int]int{}
	)
	for i := range n {
		group.Go(func() {
			defer GinkgoRecover()
			result := do(i)
			mu.Lock()
			defer mu.Unlock()
			results[result]++
		})
	}
	group.Wait()
	return results
}
