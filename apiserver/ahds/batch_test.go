package ahds_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const batchPath = slotPath + "/batch"

// batchAnswer is the answer to one entry of a batch.
type batchAnswer struct {
	Status  int
	ETag    string
	Slot    document
	Problem document
}

// entry is an entry of a batch.
func entry(action string, members fields) fields {
	all := fields{"action": action}
	for name, value := range members {
		all[name] = value
	}
	return all
}

// batch sends entries and returns the answers to them.
func (s site) batch(entries []fields, options ...option) []batchAnswer {
	GinkgoHelper()
	body, err := json.Marshal(entries)
	Expect(err).NotTo(HaveOccurred())
	var answered struct{ Data []batchAnswer }
	s.do("POST", batchPath, string(body), options...).ok().decode(&answered)
	Expect(answered.Data).To(HaveLen(len(entries)))
	return answered.Data
}

func statusesOf(answers []batchAnswer) []int {
	statuses := make([]int, len(answers))
	for i, a := range answers {
		statuses[i] = a.Status
	}
	return statuses
}

// faults returns the errors of a problem as pointer and code.
func (a batchAnswer) faults() []string {
	var faults []string
	listed, _ := a.Problem["errors"].([]any)
	for _, each := range listed {
		fault := each.(map[string]any)
		faults = append(faults, fmt.Sprint(fault["pointer"], " ", fault["code"]))
	}
	return faults
}

var _ = Describe("A batch of slots", func() {
	onBoth("is answered entry by entry", func(newSite func(context.Context, ...wrapper) site) {
		var s site
		BeforeEach(func(ctx SpecContext) { s = newSite(ctx) })
		ids := func(n int) []string {
			made := make([]string, n)
			for i := range made {
				made[i] = uuid.NewString()
			}
			return made
		}
		create := func(hour float64, changes ...fields) fields {
			return entry("create", fields{"slot": raw(slotBody(hour, changes...))})
		}

		It("creates, replaces and deletes as single requests do", func() {
			id := ids(2)
			made := s.batch([]fields{create(9, fields{slotID: id[0], "notes": "a"}), create(9, fields{slotID: id[1]}), create(10)})
			Expect(statusesOf(made)).To(Equal([]int{201, 201, 201}))
			for i, a := range made {
				read := s.do("GET", slotPath+"/"+a.Slot[slotID].(string), "").ok()
				Expect(a.Slot).To(Equal(read.json()), fmt.Sprint(i))
				Expect(a.ETag).To(Equal(read.header.Get("ETag")))
			}
			full := func(notes string) fields {
				return fields{"isActive": true, "isBooked": false, "serviceType": nil, "notes": notes, "extensions": fields{}}
			}
			replacement := func(notes string) any {
				return raw(strings.Replace(slotBody(11, full(notes)), "{", `{"serviceType":null,`, 1))
			}
			changed := s.batch([]fields{
				entry("replace", fields{slotID: id[0], "ifMatch": made[0].ETag, "slot": replacement("b")}),
				entry("replace", fields{slotID: id[0], "ifMatch": made[0].ETag, "slot": replacement("c")}),
				entry("delete", fields{slotID: id[1], "ifMatch": made[0].ETag}),
				entry("delete", fields{slotID: id[1], "ifMatch": made[1].ETag}),
				entry("delete", fields{slotID: id[1]}),
				entry("replace", fields{slotID: id[1], "slot": replacement("d")}),
				entry("replace", fields{slotID: strings.ToUpper(id[0]), "slot": replacement("e")}),
			})
			Expect(statusesOf(changed)).To(Equal([]int{200, 412, 412, 204, 404, 404, 200}))
			Expect(changed[0].Slot).To(HaveKeyWithValue("notes", "b"))
			Expect(changed[1].ETag).To(Equal(changed[0].ETag), "the current one")
			Expect(changed[1].Problem).To(And(HaveKeyWithValue("code", "version_conflict"), HaveKeyWithValue("status", BeEquivalentTo(412))))
			Expect(changed[3]).To(Equal(batchAnswer{Status: 204}))
			Expect(changed[4].Problem).To(HaveKeyWithValue("code", "resource_not_found"))
			Expect(s.do("GET", slotPath+"/"+id[0], "").ok().json()).To(HaveKeyWithValue("notes", "e"))
			Expect(s.do("GET", slotPath+"/"+id[1], "").status).To(Equal(http.StatusNotFound))
		})

		It("processes entries in order, and one that fails leaves the others", func() {
			id := ids(2)
			answers := s.batch([]fields{
				create(9, fields{slotID: id[0], "isBooked": true}),
				create(9.5, fields{slotID: id[1], "isBooked": true}),
				entry("delete", fields{slotID: id[0]}),
				create(9.5, fields{slotID: id[1], "isBooked": true}),
				create(9.5, fields{slotID: id[1], "isBooked": true}),
				create(12, fields{slotID: id[1]}),
			})
			Expect(statusesOf(answers)).To(Equal([]int{201, 409, 204, 201, 200, 409}))
			Expect(answers[1].Problem).To(And(HaveKeyWithValue("code", "slot_conflict"), HaveKeyWithValue("conflictingSlotId", id[0])))
			Expect(answers[5].Problem).To(HaveKeyWithValue("code", "id_taken"))
			Expect(s.do("GET", slotPath, "").ids(slotID)).To(Equal([]string{id[1]}))
		})

		It("names the fields that are wrong, and processes the other entries", func() {
			id := uuid.NewString()
			answers := s.batch([]fields{
				{"slot": fields{}},
				entry("upsert", nil),
				entry("create", nil),
				entry("create", fields{"slot": fields{"startAt": "soon"}, "ifmatch": "x"}),
				entry("create", fields{"slot": fields{"startAt": "soon", "endAt": "2031-03-01T10:00:00Z", "locationId": location, "resourceId": vet}}),
				entry("create", fields{slotID: id, "ifMatch": `"1"`, "slot": raw(slotBody(9))}),
				entry("replace", fields{slotID: "nine", "slot": "x"}),
				entry("replace", fields{"slot": raw(slotBody(9))}),
				entry("replace", fields{slotID: id, "slot": raw(slotBody(9))}),
				entry("delete", fields{slotID: id, "slot": raw(slotBody(9))}),
				entry("delete", fields{slotID: id, "ifMatch": "1"}),
				create(9),
			})
			var faults [][]string
			for _, a := range answers[:len(answers)-1] {
				Expect(a.Status).To(Equal(http.StatusBadRequest))
				Expect(a.Problem).To(HaveKeyWithValue("code", "invalid_request"))
				faults = append(faults, a.faults())
			}
			Expect(faults).To(Equal([][]string{
				{"/0/action missing_field"},
				{"/1/action invalid_value"},
				{"/2/slot missing_field"},
				{"/3/ifmatch unknown_field"},
				{"/4/slot/startAt invalid_value"},
				{"/5/availabilitySlotId invalid_value", "/5/ifMatch invalid_value"},
				{"/6/availabilitySlotId invalid_value", "/6/slot wrong_type"},
				{"/7/availabilitySlotId missing_field"},
				{"/8/slot/isActive missing_field", "/8/slot/isBooked missing_field", "/8/slot/serviceType missing_field", "/8/slot/notes missing_field", "/8/slot/extensions missing_field"},
				{"/9/slot invalid_value"},
				{"/10/ifMatch invalid_header"},
			}))
			Expect(answers[len(answers)-1].Status).To(Equal(http.StatusCreated))
		})

		It("refuses what is not a batch, and writes nothing", func() {
			many, err := json.Marshal(make([]fields, 501))
			Expect(err).NotTo(HaveOccurred())
			for body, want := range map[string]string{
				`{}`: "pointer  wrong_type", `[]`: "pointer  out_of_range", `[1]`: "pointer /0 wrong_type", `[{"action":"create"`: "pointer  unparseable_json",
				`[{"action":"create","action":"delete"}]`: "pointer /0/action unparseable_json", ``: "pointer  wrong_type",
				strings.ReplaceAll(string(many), "null", "{}"): "pointer  out_of_range",
			} {
				a := s.do("POST", batchPath, body, with("Content-Type", "application/json"))
				Expect(a.status).To(Equal(http.StatusBadRequest), body)
				Expect(a.errs()).To(HaveLen(1), a.body)
				Expect(a.errs()[0]).To(Equal(want), body)
			}
			one, err := json.Marshal([]fields{create(9)})
			Expect(err).NotTo(HaveOccurred())
			Expect(s.do("POST", batchPath+"?x=1", string(one)).errs()).To(Equal([]string{"parameter x unknown_parameter"}))
			Expect(s.do("POST", batchPath, string(one), with("If-Match", "*")).errs()).To(Equal([]string{"header If-Match invalid_header"}))
			Expect(s.do("POST", batchPath, string(one), with("Content-Type", "text/plain")).status).To(Equal(http.StatusUnsupportedMediaType))
			Expect(s.do("GET", batchPath, "").status).To(Equal(http.StatusMethodNotAllowed))
			Expect(s.do("GET", slotPath, "").ids(slotID)).To(BeEmpty())
		})

		It("takes as many as 500", func() {
			var entries []fields
			for i := range 500 {
				entries = append(entries, create(float64(i)))
			}
			for _, a := range s.batch(entries) {
				Expect(a.Status).To(Equal(http.StatusCreated))
			}
			Expect(s.do("GET", slotPath, "").json()["meta"]).To(HaveKeyWithValue("total", BeEquivalentTo(500)))
		})

		It("is processed once with an Idempotency-Key", func() {
			id := uuid.NewString()
			s.do("POST", slotPath, slotBody(8, fields{slotID: id}))
			replacement := raw(strings.Replace(slotBody(11, fields{"isActive": true, "isBooked": false, "notes": "x", "extensions": fields{}}), "{", `{"serviceType":null,`, 1))
			entries := []fields{create(9), create(9), entry("replace", fields{slotID: id, "slot": replacement})}
			key := with("Idempotency-Key", "k")
			first := s.batch(entries, key)
			again := s.batch(entries, key)
			Expect(statusesOf(first)).To(Equal([]int{201, 201, 200}))
			Expect(statusesOf(again)).To(Equal([]int{200, 200, 200}))
			for i := range first {
				Expect(again[i].Slot).To(Equal(first[i].Slot), fmt.Sprint(i))
			}
			entries[0] = create(10)
			other := s.batch(entries, key)
			Expect(statusesOf(other)).To(Equal([]int{422, 200, 200}))
			Expect(other[0].Problem).To(HaveKeyWithValue("code", "idempotency_key_reused"))
			Expect(s.do("GET", slotPath, "").ids(slotID)).To(HaveLen(3))
		})

		It("needs the rights of its entries", func() {
			entries := []fields{create(9), entry("delete", fields{slotID: uuid.NewString()})}
			body, err := json.Marshal(entries)
			Expect(err).NotTo(HaveOccurred())
			for caller, status := range map[string]int{"stranger": 403, "no-create": 403, "no-delete": 403, "nobody": 401} {
				a := s.do("POST", batchPath, string(body), with("X-Caller", caller))
				Expect(a.status).To(Equal(status), caller+a.body)
			}
			Expect(s.do("GET", slotPath, "").ids(slotID)).To(BeEmpty())
			Expect(s.do("POST", batchPath, "nonsense", with("X-Caller", "stranger")).status).To(Equal(http.StatusForbidden), "before the body is read")
			Expect(statusesOf(s.batch(entries, with("X-Caller", "no-update")))).To(Equal([]int{201, 404}))
		})
	})
})
