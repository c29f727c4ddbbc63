package ahds_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/ahds"
)

const generatePath = slotPath + "/generate"

// generated is the answer to a request for slots from opening hours.
type generated struct {
	Data []struct {
		AvailabilitySlotID, StartAt, EndAt string
		Created                            bool
	}
	Meta struct{ Created, Existing int }
}

func (g generated) starts() []string {
	starts := []string{}
	for _, each := range g.Data {
		starts = append(starts, each.StartAt)
	}
	return starts
}

// weekOf is a request for slots of an hour from Saturday until Monday, between which summer time
// begins.
func weekOf(changes ...fields) string {
	GinkgoHelper()
	all := fields{
		"timeZone": "Europe/Vienna", "from": "2031-03-29", "to": "2031-03-31", "durationMinutes": 60, "locationId": location, "resourceId": vet,
		"openingHours": []fields{{"days": []string{"saturday", "monday"}, "opensAt": "09:00", "closesAt": "11:00"}},
	}
	for _, change := range changes {
		for name, value := range change {
			all[name] = value
		}
	}
	body, err := json.Marshal(all)
	Expect(err).NotTo(HaveOccurred())
	return string(body)
}

var _ = Describe("Slots from opening hours", func() {
	onBoth("are generated", func(newSite func(context.Context, ...wrapper) site) {
		var s site
		BeforeEach(func(ctx SpecContext) { s = newSite(ctx) })
		generate := func(body string) (g generated) {
			GinkgoHelper()
			s.do("POST", generatePath, body).ok().decode(&g)
			return g
		}

		It("by the clocks of the zone, with the fields of the request", func() {
			g := generate(weekOf(fields{"notes": "ground floor", "serviceType": fields{"code": "vax"}, "extensions": fields{"a": 1}}))
			Expect(g.starts()).To(Equal([]string{"2031-03-29T09:00:00+01:00", "2031-03-29T10:00:00+01:00", "2031-03-31T09:00:00+02:00", "2031-03-31T10:00:00+02:00"}))
			Expect(g.Meta.Created).To(Equal(4))
			for _, each := range g.Data {
				Expect(each.Created).To(BeTrue())
				Expect(s.do("GET", slotPath+"/"+each.AvailabilitySlotID, "").ok().json()).To(And(
					HaveKeyWithValue("startAt", each.StartAt), HaveKeyWithValue("endAt", each.EndAt), HaveKeyWithValue("isActive", true), HaveKeyWithValue("isBooked", false),
					HaveKeyWithValue("locationId", location), HaveKeyWithValue("resourceId", vet), HaveKeyWithValue("notes", "ground floor"),
					HaveKeyWithValue("serviceType", HaveKeyWithValue("code", "vax")), HaveKeyWithValue("extensions", HaveKeyWithValue("a", BeEquivalentTo(1))),
				))
			}
			Expect(s.do("GET", slotPath+"?overlapsFrom=2031-03-31T07:00:00Z&overlapsTo=2031-03-31T08:00:00Z", "").ids(slotID)).To(Equal([]string{g.Data[2].AvailabilitySlotID}))
		})

		It("once, and slots that exist stay as they are", func() {
			first := generate(weekOf())
			booked, moved, deleted := slotPath+"/"+first.Data[0].AvailabilitySlotID, slotPath+"/"+first.Data[1].AvailabilitySlotID, slotPath+"/"+first.Data[2].AvailabilitySlotID
			s.do("POST", booked+"/book", "").ok()
			s.do("PATCH", moved, `{"notes":"late","startAt":"2031-03-29T10:15:00+01:00"}`).ok()
			Expect(s.do("DELETE", deleted, "").status).To(Equal(http.StatusNoContent))
			before := []string{s.do("GET", booked, "").body, s.do("GET", moved, "").body}
			again := generate(strings.Replace(weekOf(fields{"notes": "other"}), vet, strings.ToUpper(vet), 1))
			Expect([]string{s.do("GET", booked, "").body, s.do("GET", moved, "").body}).To(Equal(before))
			Expect([]int{again.Meta.Created, again.Meta.Existing}).To(Equal([]int{1, 3}))
			for i, each := range again.Data {
				Expect(each.AvailabilitySlotID).To(Equal(first.Data[i].AvailabilitySlotID))
				Expect(each.Created).To(Equal(i == 2), fmt.Sprint(i))
			}
			Expect(s.do("GET", slotPath, "").ids(slotID)).To(HaveLen(4))
		})

		It("separately for each resource, location, service and duration", func() {
			made := []string{}
			for _, change := range []fields{{}, {"resourceId": room}, {"locationId": room}, {"serviceType": fields{"code": "vax"}}, {"serviceType": fields{"code": "vax", "system": "urn:s"}}, {"durationMinutes": 30}} {
				g := generate(weekOf(change))
				Expect(g.Meta.Existing).To(BeZero(), fmt.Sprint(change))
				for _, each := range g.Data {
					made = append(made, each.AvailabilitySlotID)
				}
			}
			slices.Sort(made)
			Expect(slices.Compact(slices.Clone(made))).To(Equal(made))
		})

		It("once by requests at the same time", func() {
			var answers [16]answer
			var group sync.WaitGroup
			for i := range answers {
				group.Go(func() {
					defer GinkgoRecover()
					var err error
					answers[i], err = s.send(i%replicas, "POST", generatePath, weekOf())
					Expect(err).NotTo(HaveOccurred())
				})
			}
			group.Wait()
			created := 0
			for _, a := range answers {
				var g generated
				a.ok().decode(&g)
				created += g.Meta.Created
			}
			Expect(created).To(Equal(4))
			Expect(s.do("GET", slotPath, "").ids(slotID)).To(HaveLen(4))
		})

		It("without an Idempotency-Key", func() {
			Expect(s.do("POST", generatePath, weekOf(), key("k")).errs()).To(Equal([]string{"header Idempotency-Key invalid_header"}))
		})

		It("in the zone of the site if the request names none", func() {
			zone, err := time.LoadLocation("Asia/Kathmandu")
			Expect(err).NotTo(HaveOccurred())
			for i := range replicas {
				opened, _ := openSites[i].Load(s.id)
				changed := opened.(ahds.DataStore)
				changed.Zone = zone
				openSites[i].Store(s.id, changed)
			}
			Expect(generate(weekOf(fields{"timeZone": nil})).starts()[0]).To(Equal("2031-03-29T09:00:00+05:45"))
		})

		It("not at all if a field is wrong, if there are more than 500, or without the right to create", func() {
			for want, body := range map[string]string{
				"pointer /to out_of_range":                      weekOf(fields{"from": "2031-01-01", "to": "2031-12-31", "openingHours": []fields{{"days": []string{"monday"}, "opensAt": "00:00", "closesAt": "24:00"}}}),
				"pointer /openingHours/0/closesAt out_of_range": weekOf(fields{"openingHours": []fields{{"days": []string{"monday"}, "opensAt": "09:00", "closesAt": "08:00"}}}),
				"pointer /timeZone invalid_value":               weekOf(fields{"timeZone": "Europe/Wien"}),
				"pointer /resourceId missing_field":             weekOf(fields{"resourceId": nil}),
				"pointer /startAt unknown_field":                weekOf(fields{"startAt": "2031-03-01T09:00:00Z"}),
			} {
				a := s.do("POST", generatePath, body)
				Expect(a.status).To(Equal(http.StatusBadRequest), a.body)
				Expect(a.errs()).To(Equal([]string{want}))
			}
			Expect(s.do("POST", generatePath+"?x=1", weekOf()).errs()).To(Equal([]string{"parameter x unknown_parameter"}))
			Expect(s.do("GET", generatePath, "").status).To(Equal(http.StatusMethodNotAllowed))
			Expect(s.do("POST", generatePath, weekOf(), with("X-Caller", "no-create")).status).To(Equal(http.StatusForbidden))
			Expect(s.do("GET", slotPath, "").ids(slotID)).To(BeEmpty())
		})
	})
})
