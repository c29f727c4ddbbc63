package ahds_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	groupPath = "/eventgroup"
	groupID   = "eventgroupId"
)

// groupBody is an event group with changes.
func groupBody(changes ...fields) string {
	all := fields{"name": "Spring vaccination", "status": "active"}
	for _, change := range changes {
		maps.Copy(all, change)
	}
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	body, err := json.Marshal(all)
	Expect(err).NotTo(HaveOccurred())
	return string(body)
}

var _ = Describe("Event groups", func() {
	onBoth("their fields and operations", func(newSite func(context.Context, ...wrapper) site) {
		var s site
		BeforeEach(func(ctx SpecContext) { s = newSite(ctx) })

		It("are created, read, listed, changed, replaced and deleted (contract 4.3)", func() {
			id := uuid.NewString()
			created := s.do("POST", groupPath, groupBody(fields{groupID: id}))
			Expect(created.status).To(Equal(http.StatusCreated), created.body)
			Expect(created.json()).To(Equal(document{
				groupID: id, "name": "Spring vaccination", "status": "active", "category": "", "description": "", "locationId": "", "organizationId": "",
				"extensions": map[string]any{}, "createdAt": created.text("createdAt"), "updatedAt": created.text("createdAt"),
			}))
			path := groupPath + "/" + id
			Expect(created.header.Get("Location")).To(Equal(s.bases[0] + path))
			Expect(s.do("GET", path, "").body).To(Equal(created.body))
			Expect(s.do("GET", groupPath, "").body).To(Equal(`{"data":[` + created.body + `],"meta":{"page":0,"pageSize":10,"total":1,"totalPages":1}}`))

			patched := s.do("PATCH", path, `{"status":"archived","extensions":{"a":{"b":1}}}`, mergePatch)
			Expect(patched.status).To(Equal(http.StatusOK), patched.body)
			Expect(patched.json()).To(And(HaveKeyWithValue("name", "Spring vaccination"), HaveKeyWithValue("status", "archived")))

			missing := s.do("PUT", path, `{"name":"Autumn"}`)
			Expect(missing.errs()).To(ConsistOf("pointer /status missing_field", "pointer /category missing_field", "pointer /description missing_field",
				"pointer /locationId missing_field", "pointer /organizationId missing_field", "pointer /extensions missing_field"))
			replaced := s.do("PUT", path, strings.Replace(patched.body, "Spring vaccination", "Autumn", 1), ifMatch(patched.header.Get("ETag")))
			Expect(replaced.status).To(Equal(http.StatusOK), replaced.body)
			Expect(replaced.text("name")).To(Equal("Autumn"))

			Expect(s.do("DELETE", path, "").status).To(Equal(http.StatusNoContent))
			Expect(s.do("GET", path, "").status).To(Equal(http.StatusNotFound))
			Expect(s.do("DELETE", path, "").status).To(Equal(http.StatusNotFound))
		})

		DescribeTable("are refused with what is wrong where",
			func(change fields, want ...string) {
				a := s.do("POST", groupPath, groupBody(change))
				Expect(a.status).To(Equal(http.StatusBadRequest), a.body)
				Expect(a.errs()).To(ConsistOf(want))
			},
			Entry("eventgroupId: a UUID", fields{groupID: "spring"}, "pointer /eventgroupId invalid_value"),
			Entry("name: required", fields{"name": nil}, "pointer /name missing_field"),
			Entry("name: a character at least", fields{"name": ""}, "pointer /name invalid_value"),
			Entry("name: 200 characters at most", fields{"name": strings.Repeat("é", 201)}, "pointer /name too_long"),
			Entry("status: required", fields{"status": nil}, "pointer /status missing_field"),
			Entry("status: one of three", fields{"status": "Active"}, "pointer /status invalid_value"),
			Entry("category: a string", fields{"category": raw("[]")}, "pointer /category wrong_type"),
			Entry("description: 10,000 characters at most", fields{"description": strings.Repeat("x", 10001)}, "pointer /description too_long"),
			Entry("locationId: an id", fields{"locationId": "a b"}, "pointer /locationId invalid_value"),
			Entry("organizationId: an id", fields{"organizationId": 1}, "pointer /organizationId wrong_type"),
			Entry("extensions: an object", fields{"extensions": "x"}, "pointer /extensions wrong_type"),
			Entry("nothing else", fields{"eventGroupId": uuid.Nil.String()}, "pointer /eventGroupId unknown_field"),
		)

		It("are taken at their bounds", func() {
			for _, change := range []fields{
				{"name": "x", "status": "inactive"},
				{"name": strings.Repeat("é", 200), "category": strings.Repeat("é", 64), "description": strings.Repeat("x", 10000)},
				{"locationId": strings.Repeat("a", 64), "organizationId": uuid.NewString()},
				{"category": raw("null"), "description": raw("null"), "locationId": raw("null")},
			} {
				a := s.do("POST", groupPath, groupBody(change))
				Expect(a.status).To(Equal(http.StatusCreated), a.body)
			}
		})
	})
})
