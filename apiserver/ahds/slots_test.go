package ahds_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	slotPath = "/availability-slot"
	slotID   = "availabilitySlotId"

	location = "0198c4f2-7d1e-7c3a-9b5f-000000000001"
	vet      = "0198c4f2-7d1e-7c3a-9b5f-000000000002"
	room     = "0198c4f2-7d1e-7c3a-9b5f-000000000003"
)

// day is the one on which slots are.
var day = time.Date(2031, 3, 1, 0, 0, 0, 0, time.UTC)

// fields of a body; nil leaves a field out.
type fields map[string]any

// slotBody is a slot of the vet at an hour, with changes.
func slotBody(hour float64, changes ...fields) string {
	start := day.Add(time.Duration(hour * float64(time.Hour)))
	all := fields{
		"startAt": start.Format(time.RFC3339), "endAt": start.Add(time.Hour).Format(time.RFC3339),
		"locationId": location, "resourceId": vet,
	}
	for _, change := range changes {
		maps.Copy(all, change)
	}
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	body, err := json.Marshal(all)
	Expect(err).NotTo(HaveOccurred())
	return string(body)
}

// raw is a value of a field that is written as it is.
func raw(text string) any { return json.RawMessage(text) }

var _ = Describe("Availability slots", func() {
	onBoth("the fields of contract 2.1", func(newSite func(context.Context, ...wrapper) site) {
		var s site
		BeforeEach(func(ctx SpecContext) { s = newSite(ctx) })

		It("come back as they were sent, with defaults for those left out", func() {
			id := uuid.NewString()
			created := s.do("POST", slotPath, slotBody(9, fields{slotID: id}))
			Expect(created.status).To(Equal(http.StatusCreated), created.body)
			want := document{
				slotID: id, "startAt": "2031-03-01T09:00:00Z", "endAt": "2031-03-01T10:00:00Z", "isActive": true, "isBooked": false,
				"locationId": location, "resourceId": vet, "serviceType": nil, "notes": "", "extensions": map[string]any{},
				"createdAt": created.text("createdAt"), "updatedAt": created.text("createdAt"),
			}
			Expect(created.json()).To(Equal(want))
			Expect(created.text("createdAt")).To(MatchRegexp(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`))
			Expect(created.header.Get("Location")).To(Equal(s.bases[0] + slotPath + "/" + id))
			Expect(created.header.Get("ETag")).To(MatchRegexp(`^"1-[-\w]{8}"$`))
			read := s.do("GET", slotPath+"/"+id, "")
			Expect(read.status).To(Equal(http.StatusOK))
			Expect(read.body).To(Equal(created.body))
			Expect(read.header.Get("ETag")).To(Equal(created.header.Get("ETag")))
			Expect(read.header.Get("Content-Type")).To(Equal("application/json"))
			head := s.do("HEAD", slotPath+"/"+strings.ToUpper(id), "")
			Expect(head.status).To(Equal(http.StatusOK))
			Expect(head.header.Get("ETag")).To(Equal(created.header.Get("ETag")))
			Expect(head.body).To(BeEmpty())
		})

		It("come back byte for byte", func() {
			const body = `{"startAt":"2031-03-30T02:30:00+05:45","endAt":"2031-03-30t03:30:00.000000-00:00","isActive":false,"isBooked":true,` +
				`"locationId":"0198C4F2-7d1e-7c3a-9b5f-000000000001","resourceId":"0198c4f2-7d1e-7c3a-9b5f-000000000002",` +
				`"serviceType":{"system":"urn:oid:1.2.3", "code":"v\u0061x","display":"é"},"notes":"a\u0000b\/\uD83D\uDC36","extensions":{ "z":1.50,"a":[null , {"n":12345678901234567890}],"" : "<&>"}}`
			created := s.do("POST", slotPath, body)
			Expect(created.status).To(Equal(http.StatusCreated), created.body)
			Expect(created.body).To(ContainSubstring(strings.TrimSuffix(strings.TrimPrefix(body, "{"), "}")))
			Expect(s.do("GET", slotPath+"/"+created.text(slotID), "").body).To(Equal(created.body))
			Expect(s.do("GET", slotPath, "").body).To(Equal(`{"data":[` + created.body + `],"meta":{"page":0,"pageSize":10,"total":1,"totalPages":1}}`))
		})

		DescribeTable("are refused with what is wrong where",
			func(change fields, want ...string) {
				a := s.do("POST", slotPath, slotBody(9, change))
				Expect(a.status).To(Equal(http.StatusBadRequest), a.body)
				Expect(a.errs()).To(ConsistOf(want))
				Expect(a.json()).To(HaveKeyWithValue("code", "invalid_request"))
				Expect(a.json()).To(HaveKeyWithValue("status", BeEquivalentTo(400)))
			},
			Entry("id: a UUID", fields{slotID: "7"}, "pointer /availabilitySlotId invalid_value"),
			Entry("id: a string", fields{slotID: 7}, "pointer /availabilitySlotId wrong_type"),
			Entry("startAt: required", fields{"startAt": nil}, "pointer /startAt missing_field"),
			Entry("startAt: not null", fields{"startAt": raw("null")}, "pointer /startAt missing_field"),
			Entry("startAt: a string", fields{"startAt": 1772357400}, "pointer /startAt wrong_type"),
			Entry("startAt: with an offset", fields{"startAt": "2031-03-01T09:00:00"}, "pointer /startAt invalid_value"),
			Entry("startAt: no leap second", fields{"startAt": "2031-03-01T08:59:60Z"}, "pointer /startAt invalid_value"),
			Entry("endAt: required", fields{"endAt": nil}, "pointer /endAt missing_field"),
			Entry("endAt: after startAt", fields{"endAt": "2031-03-01T09:00:00Z"}, "pointer /endAt out_of_range"),
			Entry("endAt: after startAt as an instant", fields{"endAt": "2031-03-01T14:44:00+05:45"}, "pointer /endAt out_of_range"),
			Entry("endAt: within 31 days", fields{"endAt": "2031-04-01T09:00:00.000001Z"}, "pointer /endAt out_of_range"),
			Entry("isActive: a boolean", fields{"isActive": "true"}, "pointer /isActive wrong_type"),
			Entry("isBooked: a boolean", fields{"isBooked": 1}, "pointer /isBooked wrong_type"),
			Entry("locationId: required", fields{"locationId": nil}, "pointer /locationId missing_field"),
			Entry("locationId: a UUID", fields{"locationId": "main"}, "pointer /locationId invalid_value"),
			Entry("resourceId: required", fields{"resourceId": nil}, "pointer /resourceId missing_field"),
			Entry("resourceId: a UUID", fields{"resourceId": ""}, "pointer /resourceId invalid_value"),
			Entry("serviceType: an object", fields{"serviceType": "vaccination"}, "pointer /serviceType wrong_type"),
			Entry("serviceType: with a code", fields{"serviceType": fields{"display": "x"}}, "pointer /serviceType/code missing_field"),
			Entry("serviceType: system a URI", fields{"serviceType": fields{"code": "x", "system": "local"}}, "pointer /serviceType/system invalid_value"),
			Entry("serviceType: display a string", fields{"serviceType": fields{"code": "x", "display": 1}}, "pointer /serviceType/display wrong_type"),
			Entry("serviceType: nothing else", fields{"serviceType": fields{"code": "x", "text": ""}}, "pointer /serviceType/text unknown_field"),
			Entry("notes: a string", fields{"notes": 7}, "pointer /notes wrong_type"),
			Entry("notes: 10,000 characters", fields{"notes": strings.Repeat("é", 10001)}, "pointer /notes too_long"),
			Entry("extensions: an object", fields{"extensions": raw("[]")}, "pointer /extensions wrong_type"),
			Entry("extensions: 16 KiB", fields{"extensions": fields{"a": strings.Repeat("x", 16<<10)}}, "pointer /extensions too_long"),
			Entry("nothing else", fields{"isbooked": true}, "pointer /isbooked unknown_field"),
			Entry("all faults at once", fields{"startAt": "now", "resourceId": nil, "note": "", "isActive": 0},
				"pointer /startAt invalid_value", "pointer /resourceId missing_field", "pointer /note unknown_field", "pointer /isActive wrong_type"),
		)

		DescribeTable("are taken at their bounds",
			func(change fields) {
				a := s.do("POST", slotPath, slotBody(9, change))
				Expect(a.status).To(Equal(http.StatusCreated), a.body)
			},
			Entry("a microsecond", fields{"endAt": "2031-03-01T09:00:00.000001Z"}),
			Entry("31 days", fields{"endAt": "2031-04-01T09:00:00Z"}),
			Entry("the first year", fields{"startAt": "1900-01-01T00:00:00Z", "endAt": "1900-01-01T01:00:00Z", "isBooked": true}),
			Entry("the last year", fields{"startAt": "9999-12-31T23:00:00Z", "endAt": "9999-12-31T23:59:59.999999Z", "isBooked": true}),
			Entry("notes", fields{"notes": strings.Repeat("é", 10000)}),
			Entry("extensions", fields{"extensions": raw(`{"a":"` + strings.Repeat("x", 16<<10-8) + `"}`)}),
			Entry("null where a field may be left out", fields{slotID: raw("null"), "isActive": raw("null"), "isBooked": raw("null"), "serviceType": raw("null"), "notes": raw("null"), "extensions": raw("null")}),
			Entry("the service's own fields, which are passed over", fields{"createdAt": 5, "updatedAt": "x", "heldUntil": raw("null")}),
		)
	})
})
