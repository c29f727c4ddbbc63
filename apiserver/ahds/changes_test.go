package ahds_test

import (
	"context"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// mergePatch sends the body as a merge patch.
var mergePatch = with("Content-Type", "application/merge-patch+json")

func ifMatch(tag string) option { return with("If-Match", tag) }

var _ = Describe("A record", func() {
	onBoth("is changed, replaced and deleted", func(newSite func(context.Context, ...wrapper) site) {
		var s site
		var id, path string
		var created answer
		BeforeEach(func(ctx SpecContext) {
			s = newSite(ctx)
			created = s.do("POST", slotPath, slotBody(9, fields{"notes": "first", "extensions": raw(`{"a" : 1.0,"b":{"c":null}}`), "serviceType": fields{"code": "x", "display": "X"}}))
			id = created.created(slotID)
			path = slotPath + "/" + id
		})

		It("by PATCH: only fields that are given (contract 4.2)", func() {
			patched := s.do("PATCH", path, `{"notes":"second"}`)
			Expect(patched.status).To(Equal(http.StatusOK), patched.body)
			want := created.json()
			want["notes"], want["updatedAt"] = "second", patched.text("updatedAt")
			Expect(patched.json()).To(Equal(want))
			Expect(patched.body).To(ContainSubstring(`"extensions":{"a":1.0,"b":{"c":null}}`))
			Expect(patched.text("updatedAt") > created.text("updatedAt")).To(BeTrue())
			Expect(patched.header.Get("ETag")).To(HavePrefix(`"2-`))

			By("a merge patch goes into objects, and null unsets")
			patched = s.do("PATCH", path, `{"extensions":{"b":{"d":[null]},"a":null},"serviceType":{"display":null},"notes":null}`, mergePatch)
			Expect(patched.body).To(ContainSubstring(`"serviceType":{"code":"x"},"notes":"","extensions":{"b":{"c":null,"d":[null]}}`))

			By("what changes nothing keeps the version")
			same := s.do("PATCH", path, `{}`)
			Expect(same.status).To(Equal(http.StatusOK))
			Expect(same.body).To(Equal(patched.body))
			Expect(same.header.Get("ETag")).To(Equal(patched.header.Get("ETag")))
		})

		DescribeTable("by PATCH: is refused with what is wrong where",
			func(patch string, want ...string) {
				a := s.do("PATCH", path, patch, mergePatch)
				Expect(a.status).To(Equal(http.StatusBadRequest), a.body)
				Expect(a.errs()).To(ConsistOf(want))
				Expect(s.do("GET", path, "").body).To(Equal(created.body))
			},
			Entry("what is required cannot be unset", `{"startAt":null,"resourceId":null}`, "pointer /startAt missing_field", "pointer /resourceId missing_field"),
			Entry("ids do not change", `{"availabilitySlotId":"0198c4f2-7d1e-7c3a-9b5f-00000000000f"}`, "pointer /availabilitySlotId id_mismatch"),
			Entry("fields together", `{"endAt":"2031-03-01T08:00:00Z"}`, "pointer /endAt out_of_range"),
			Entry("inside of objects", `{"serviceType":{"code":null}}`, "pointer /serviceType/code missing_field"),
			Entry("what it makes of them", `{"extensions":{"x":"`+strings.Repeat("x", 16<<10)+`"}}`, "pointer /extensions too_long"),
			Entry("unknown fields", `{"state":1,"serviceType":{"name":""}}`, "pointer /state unknown_field", "pointer /serviceType/name unknown_field"),
			Entry("doubled keys", `{"notes":"a","notes":"b"}`, "pointer /notes unparseable_json"),
			Entry("doubled keys further in", `{"extensions":{"n":{"a":1,"a":2}}}`, "pointer /extensions/n/a unparseable_json"),
			Entry("no object", `[]`, "pointer  wrong_type"),
			Entry("null", `null`, "pointer  wrong_type"),
			Entry("nothing", ``, "pointer  unparseable_json"),
		)

		It("by PUT: all fields must be provided (contract 4.2)", func() {
			missing := s.do("PUT", path, `{"startAt":"2031-03-01T11:00:00Z","endAt":"2031-03-01T12:00:00Z"}`)
			Expect(missing.status).To(Equal(http.StatusBadRequest))
			Expect(missing.errs()).To(ConsistOf(
				"pointer /isActive missing_field", "pointer /isBooked missing_field", "pointer /locationId missing_field", "pointer /resourceId missing_field",
				"pointer /serviceType missing_field", "pointer /notes missing_field", "pointer /extensions missing_field"))
			replaced := s.do("PUT", path, slotBody(11, fields{"isActive": false, "isBooked": false, "serviceType": raw("null"), "notes": "third", "extensions": fields{}}))
			Expect(replaced.status).To(Equal(http.StatusOK), replaced.body)
			Expect(replaced.json()).To(And(HaveKeyWithValue("startAt", "2031-03-01T11:00:00Z"), HaveKeyWithValue("notes", "third"), HaveKeyWithValue("createdAt", created.text("createdAt"))))
			Expect(s.do("GET", path, "").body).To(Equal(replaced.body))
		})

		It("by PUT: what was read can be put back, whatever it is", func() {
			for _, change := range []string{`{}`, `{"isBooked":true}`, `{"isActive":false}`, `{"isActive":true,"isBooked":false}`} {
				read := s.do("PATCH", path, change)
				Expect(read.status).To(Equal(http.StatusOK), read.body)
				back := s.do("PUT", path, read.body)
				Expect(back.status).To(Equal(http.StatusOK), back.body)
				Expect(back.body).To(Equal(read.body))
				Expect(back.header.Get("ETag")).To(Equal(read.header.Get("ETag")))
			}
			held := s.do("POST", path+"/hold", "")
			Expect(held.status).To(Equal(http.StatusOK), held.body)
			read := s.do("GET", path, "")
			back := s.do("PUT", path, read.body)
			Expect(back.status).To(Equal(http.StatusOK), back.body)
			Expect(back.body).To(Equal(read.body))
			other := s.do("PUT", path, strings.ReplaceAll(read.body, id, "0198c4f2-7d1e-7c3a-9b5f-00000000000f"))
			Expect(other.errs()).To(Equal([]string{"pointer /availabilitySlotId id_mismatch"}))
		})

		It("by DELETE: for good", func() {
			deleted := s.do("DELETE", path, "")
			Expect(deleted.status).To(Equal(http.StatusNoContent))
			Expect(deleted.body).To(BeEmpty())
			for _, again := range []answer{s.do("GET", path, ""), s.do("DELETE", path, ""), s.do("PATCH", path, `{}`), s.do("PUT", path, created.body), s.do("POST", path+"/book", "")} {
				Expect(again.status).To(Equal(http.StatusNotFound), again.body)
				Expect(again.json()).To(HaveKeyWithValue("code", "resource_not_found"))
			}
			Expect(s.do("GET", slotPath, "").json()).To(HaveKeyWithValue("data", BeEmpty()))

			By("its id can be used again, for another record")
			again := s.do("POST", slotPath, slotBody(12, fields{slotID: id}))
			Expect(again.status).To(Equal(http.StatusCreated), again.body)
			Expect(again.header.Get("ETag")).NotTo(Equal(created.header.Get("ETag")))
			Expect(s.do("PATCH", path, `{"notes":"x"}`, ifMatch(created.header.Get("ETag"))).status).To(Equal(http.StatusPreconditionFailed))
		})

		It("under If-Match only at the version named", func() {
			first := created.header.Get("ETag")
			second := s.do("PATCH", path, `{"notes":"2"}`, ifMatch(`"x", `+first)).header.Get("ETag")
			Expect(second).To(HavePrefix(`"2-`))
			put := slotBody(9, fields{"isActive": true, "isBooked": false, "serviceType": raw("null"), "notes": "", "extensions": fields{}})
			for _, stale := range []string{first, "W/" + second, `"2"`, `""`} {
				for _, a := range []answer{
					s.do("PATCH", path, `{"notes":"3"}`, ifMatch(stale)), s.do("PUT", path, put, ifMatch(stale)), s.do("DELETE", path, "", ifMatch(stale)),
					s.do("POST", path+"/hold", "", ifMatch(stale)), s.do("POST", path+"/book", `{}`, ifMatch(stale)),
				} {
					Expect(a.status).To(Equal(http.StatusPreconditionFailed), a.body)
					Expect(a.json()).To(HaveKeyWithValue("code", "version_conflict"))
					Expect(a.header.Get("ETag")).To(Equal(second))
				}
			}
			Expect(s.do("PUT", path, put, ifMatch(second)).status).To(Equal(http.StatusOK))
			Expect(s.do("PATCH", path, `{"notes":"4"}`, ifMatch("*")).status).To(Equal(http.StatusOK))
			Expect(s.do("PATCH", path, `{}`, ifMatch("4")).errs()).To(Equal([]string{"header If-Match invalid_header"}))
			Expect(s.do("PATCH", path, `{}`, ifMatch("")).errs()).To(Equal([]string{"header If-Match invalid_header"}))
			Expect(s.do("PATCH", path, `{}`, with("If-None-Match", "*")).errs()).To(Equal([]string{"header If-None-Match invalid_header"}))
			const past = "Sat, 01 Jan 2000 00:00:00 GMT"
			Expect(s.do("PATCH", path, `{}`, with("If-Unmodified-Since", past)).errs()).To(Equal([]string{"header If-Unmodified-Since invalid_header"}))
			s.do("PATCH", path, `{}`, with("If-Unmodified-Since", past), with("If-Match", "*")).ok()
			Expect(s.do("DELETE", path, "", ifMatch("*")).status).To(Equal(http.StatusNoContent))
		})

		It("and is not sent again to who has it", func() {
			tag := created.header.Get("ETag")
			for _, header := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
				a := s.do("GET", path, "", with("If-None-Match", header))
				Expect(a.status).To(Equal(http.StatusNotModified))
				Expect(a.body).To(BeEmpty())
				Expect(a.header.Get("ETag")).To(Equal(tag))
			}
			Expect(s.do("GET", path, "", with("If-None-Match", `"1"`)).status).To(Equal(http.StatusOK))
			Expect(s.do("GET", path, "", with("If-Modified-Since", created.header.Get("Last-Modified"))).status).To(Equal(http.StatusNotModified))
			Expect(s.do("GET", path, "", with("If-Modified-Since", "Tue, 01 Jan 2019 00:00:00 GMT")).status).To(Equal(http.StatusOK))
		})
	})
})
