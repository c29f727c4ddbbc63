package ahds_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// refused expects a 409 with a code that names the slot which stands against it.
func (a answer) refused(code, slot string) {
	GinkgoHelper()
	Expect(a.status).To(Equal(http.StatusConflict), a.body)
	Expect(a.header.Get("Content-Type")).To(Equal("application/problem+json"))
	Expect(a.json()).To(And(HaveKeyWithValue("code", code), HaveKeyWithValue("conflictingSlotId", slot)))
}

// heldFor expects that a hold that was requested after began lasts for a time, and returns its end.
func (a answer) heldFor(duration time.Duration, began time.Time) time.Time {
	GinkgoHelper()
	until, err := time.Parse(time.RFC3339, a.text("heldUntil"))
	Expect(err).NotTo(HaveOccurred())
	Expect(until).To(And(
		BeTemporally(">", began.Add(duration-time.Millisecond)), // the text has milliseconds
		BeTemporally("<=", now().Add(duration)),
	))
	return until
}

func (a answer) ok() answer {
	GinkgoHelper()
	Expect(a.status).To(Equal(http.StatusOK), a.body)
	return a
}

// moveClock moves the facade's clock, until the test ends.
func moveClock(by time.Duration) {
	clockOffset.Add(int64(by))
	DeferCleanup(func() { clockOffset.Store(0) })
}

var _ = Describe("Nobody is booked twice:", func() {
	onBoth("slots of one resource", func(newSite func(context.Context, ...wrapper) site) {
		var s site
		BeforeEach(func(ctx SpecContext) { s = newSite(ctx) })

		create := func(hour float64, changes ...fields) string {
			GinkgoHelper()
			return s.do("POST", slotPath, slotBody(hour, changes...)).created(slotID)
		}
		booked := fields{"isBooked": true}

		It("overlap as offers, and not as bookings", func() {
			first, second, third := create(9), create(9.5), create(10)
			s.do("PATCH", slotPath+"/"+first, `{"isBooked":true}`).ok()
			s.do("PATCH", slotPath+"/"+second, `{"isBooked":true}`).refused("slot_conflict", first)
			s.do("PATCH", slotPath+"/"+third, `{"isBooked":true}`).ok() // where one ends another may begin
			s.do("POST", slotPath, slotBody(9.75, booked)).refused("slot_conflict", first)
			s.do("POST", slotPath, slotBody(8, booked, fields{"endAt": "2031-03-02T08:00:00Z"})).refused("slot_conflict", first)
			create(9.5, booked, fields{"resourceId": room})
			create(9.5, booked, fields{"isActive": false})
			By("as an instant, whatever the offset, and as a resource, whatever the spelling")
			s.do("POST", slotPath, slotBody(9, booked, fields{"startAt": "2031-03-01T15:29:00+05:45", "endAt": "2031-03-01T15:30:00+05:45"})).refused("slot_conflict", first)
			s.do("POST", slotPath, slotBody(9, booked, fields{"resourceId": strings.ToUpper(vet)})).refused("slot_conflict", first)
			By("to the microsecond")
			s.do("POST", slotPath, slotBody(8, booked, fields{"endAt": "2031-03-01T09:00:00.000001Z"})).refused("slot_conflict", first)
			create(8, booked)
		})

		It("are free again when a booking is given up, moved, inactive or deleted", func() {
			id := create(9, booked)
			path := slotPath + "/" + id
			s.do("PATCH", path, `{"isBooked":false}`).ok()
			other := create(9.5, booked)
			s.do("PATCH", path, `{"isBooked":true}`).refused("slot_conflict", other)
			s.do("PATCH", slotPath+"/"+other, `{"startAt":"2031-03-01T10:00:00Z","endAt":"2031-03-01T11:00:00Z"}`).ok()
			s.do("PATCH", path, `{"isBooked":true}`).ok()
			By("a move that does not succeed gives nothing up")
			s.do("PATCH", slotPath+"/"+other, `{"startAt":"2031-03-01T09:30:00Z"}`).refused("slot_conflict", id)
			s.do("POST", slotPath, slotBody(10, booked)).refused("slot_conflict", other)
			By("a move to another resource")
			s.do("PATCH", path, `{"resourceId":"`+room+`"}`).ok()
			create(9, booked)
			s.do("POST", slotPath, slotBody(9, booked, fields{"resourceId": room})).refused("slot_conflict", id)
			s.do("PATCH", path, `{"resourceId":"`+vet+`"}`).is(http.StatusConflict)
			By("an inactive one")
			s.do("PATCH", path, `{"isActive":false}`).ok()
			third := create(9, booked, fields{"resourceId": room})
			s.do("PATCH", path, `{"isActive":true}`).refused("slot_conflict", third)
			By("a deleted one")
			Expect(s.do("DELETE", slotPath+"/"+third, "").status).To(Equal(http.StatusNoContent))
			s.do("PATCH", path, `{"isActive":true}`).ok()
		})

		It("are not booked by whoever does not see that they are", func() {
			id := create(9)
			path := slotPath + "/" + id
			free := s.do("GET", path, "")
			booking := strings.Replace(free.body, `"isBooked":false`, `"isBooked":true`, 1)
			won := s.do("PUT", path, booking).ok()
			By("who read the free slot loses, by PUT and by PATCH")
			s.do("PUT", path, booking).refused("slot_booked", id)
			s.do("PUT", path, booking, ifMatch("*")).refused("slot_booked", id)
			blind := s.batch([]fields{entry("replace", fields{slotID: id, "ifMatch": "*", "slot": raw(booking)})})
			Expect(blind[0].Problem).To(HaveKeyWithValue("code", "slot_booked"))
			s.do("PATCH", path, `{"isBooked":true}`).refused("slot_booked", id)
			s.do("PATCH", path, `{"isBooked":true,"notes":"mine"}`, ifMatch(won.header.Get("ETag"))).refused("slot_booked", id)
			s.do("POST", path+"/book", "").refused("slot_booked", id)
			s.do("POST", path+"/hold", "").refused("slot_booked", id)
			By("who has seen the booking changes the rest of the slot")
			s.do("PATCH", path, `{"notes":"a"}`).ok()
			changed := s.do("GET", path, "")
			s.do("PUT", path, strings.Replace(changed.body, `"notes":"a"`, `"notes":"b"`, 1)).ok()
			s.do("PUT", path, strings.Replace(changed.body, `"notes":"a"`, `"notes":"c"`, 1)).refused("slot_booked", id)
			current := s.do("GET", path, "")
			s.do("PUT", path, strings.Replace(changed.body, `"notes":"a"`, `"notes":"c"`, 1), ifMatch(current.header.Get("ETag"))).ok()
		})

		It("are held for a while, booked by the holder, and released", func() {
			id := create(9)
			overlapping := create(9.5)
			path := slotPath + "/" + id
			began := now()
			held := s.do("POST", path+"/hold", `{"ttlSeconds":60}`).ok()
			Expect(held.text("holdToken")).NotTo(BeEmpty())
			held.heldFor(time.Minute, began)
			Expect(s.do("GET", path, "").json()).To(And(HaveKeyWithValue("heldUntil", held.text("heldUntil")), Not(HaveKey("holdToken")), HaveKeyWithValue("isBooked", false)))
			By("nobody else gets it, or what overlaps")
			for _, a := range []answer{
				s.do("POST", path+"/hold", ""), s.do("POST", path+"/book", "{}"), s.do("POST", path+"/release", ""),
				s.do("PATCH", path, `{"isBooked":true}`), s.do("PUT", path, strings.Replace(s.do("GET", path, "").body, `"isBooked":false`, `"isBooked":true`, 1)),
			} {
				a.refused("slot_held", id)
			}
			for _, verb := range []string{"/hold", "/book", "/release"} {
				s.do("POST", path+verb, `{"holdToken":"x"}`).refused("hold_ended", id)
			}
			s.do("POST", slotPath+"/"+overlapping+"/hold", "").refused("slot_conflict", id)
			s.do("PATCH", slotPath+"/"+overlapping, `{"isBooked":true}`).refused("slot_conflict", id)
			By("other changes leave it held")
			s.do("PATCH", path, `{"notes":"for Rex"}`).ok()
			token := `"holdToken":"` + held.text("holdToken") + `"`
			By("the holder prolongs, books and releases it")
			prolonged := s.do("POST", path+"/hold", `{"ttlSeconds":600,`+token+`}`).ok()
			Expect(prolonged.text("holdToken")).To(Equal(held.text("holdToken")))
			Expect(prolonged.text("heldUntil") > held.text("heldUntil")).To(BeTrue())
			Expect(s.do("POST", path+"/book", `{`+token+`}`).ok().json()).To(And(HaveKeyWithValue("isBooked", true), Not(HaveKey("heldUntil"))))
			s.do("POST", path+"/book", `{`+token+`}`).refused("slot_booked", id)
			s.do("POST", path+"/release", `{`+token+`}`).refused("hold_ended", id)
			Expect(s.do("POST", path+"/release", "").ok().json()).To(HaveKeyWithValue("isBooked", false))
			s.do("POST", path+"/release", "").ok() // free already
			By("a released hold is free at once")
			again := s.do("POST", path+"/hold", "").ok()
			Expect(again.text("holdToken")).NotTo(Equal(held.text("holdToken")))
			s.do("POST", path+"/book", `{`+token+`}`).refused("hold_ended", id)
			s.do("POST", path+"/release", `{"holdToken":"`+again.text("holdToken")+`"}`).ok()
			s.do("POST", slotPath+"/"+overlapping+"/book", "").ok()
		})

		It("are free the moment that a hold ends", func() {
			id, overlapping := create(9), create(9.5)
			path, other := slotPath+"/"+id, slotPath+"/"+overlapping
			var held answer
			var until time.Time
			for seconds := 1; ; seconds *= 2 {
				began := now()
				held = s.do("POST", path+"/hold", fmt.Sprintf(`{"ttlSeconds":%d}`, seconds)).ok()
				until = held.heldFor(time.Duration(seconds)*time.Second, began)
				booking := s.do("POST", other+"/book", "")
				if booking.status != http.StatusOK || now().Before(until) {
					booking.refused("slot_conflict", id)
					break
				}
				s.do("POST", other+"/release", "").ok() // the hold may have ended before the request
			}
			Eventually(now).Should(BeTemporally(">=", until))
			s.do("POST", path+"/book", `{"holdToken":"`+held.text("holdToken")+`"}`).refused("hold_ended", id)
			s.do("POST", other+"/book", "").ok()
			s.do("POST", path+"/hold", "").refused("slot_conflict", overlapping)
			s.do("POST", other+"/release", "").ok()
			began := now()
			held = s.do("POST", path+"/hold", "").ok()
			held.heldFor(5*time.Minute, began) // the default
			moveClock(4 * time.Minute)
			s.do("POST", path+"/hold", "").refused("slot_held", id)
			moveClock(time.Minute)
			s.do("PATCH", path, `{"notes":"still shows when it was held"}`).ok()
			Expect(s.do("GET", path, "").json()).NotTo(HaveKey("heldUntil"))
			Expect(held.text("holdToken")).NotTo(BeEmpty())
		})

		It("stay held and booked when the clock steps back, until it has caught up", func() {
			id, overlapping := create(9), create(9.5)
			path, other := slotPath+"/"+id, slotPath+"/"+overlapping
			s.do("POST", slotPath, slotBody(12, booked)).created(slotID)
			held := s.do("POST", path+"/hold", `{"ttlSeconds":60}`).ok()
			moveClock(-time.Hour)
			s.do("POST", path+"/hold", "").refused("slot_held", id)
			s.do("POST", other+"/book", "").refused("slot_conflict", id)
			Expect(s.do("POST", slotPath, slotBody(12, booked)).status).To(Equal(http.StatusConflict))
			Expect(s.do("GET", path, "").json()).To(HaveKeyWithValue("heldUntil", held.text("heldUntil")))
			moveClock(time.Hour - time.Minute) // for as long as the step, the hold lasts longer
			s.do("POST", other+"/book", "").refused("slot_conflict", id)
			moveClock(3 * time.Minute)
			s.do("POST", path+"/book", `{"holdToken":"`+held.text("holdToken")+`"}`).refused("hold_ended", id)
			s.do("POST", path+"/hold", "").ok()
		})

		It("are not held or booked when inactive", func() {
			id := create(9, fields{"isActive": false})
			for _, verb := range []string{"/hold", "/book"} {
				s.do("POST", slotPath+"/"+id+verb, "").refused("slot_inactive", id)
			}
			held := create(12)
			token := s.do("POST", slotPath+"/"+held+"/hold", "").ok().text("holdToken")
			s.do("PATCH", slotPath+"/"+held, `{"isActive":false}`).ok()
			create(12, booked)
			s.do("POST", slotPath+"/"+held+"/book", `{"holdToken":"`+token+`"}`).refused("slot_inactive", held)
		})

		DescribeTable("are held as asked",
			func(body string, want ...string) {
				a := s.do("POST", slotPath+"/"+create(9)+"/hold", body)
				if len(want) == 0 {
					a.ok()
					return
				}
				Expect(a.status).To(Equal(http.StatusBadRequest), a.body)
				Expect(a.errs()).To(ConsistOf(want))
			},
			Entry("by default", ""), Entry("for a second", `{"ttlSeconds":1}`), Entry("for an hour", `{"ttlSeconds":3600}`),
			Entry("by default, said so", `{"ttlSeconds":null,"holdToken":null}`),
			Entry("not for no time", `{"ttlSeconds":0}`, "pointer /ttlSeconds out_of_range"),
			Entry("not for longer", `{"ttlSeconds":3601}`, "pointer /ttlSeconds out_of_range"),
			Entry("in whole seconds", `{"ttlSeconds":1.5}`, "pointer /ttlSeconds out_of_range"),
			Entry("in numbers", `{"ttlSeconds":"1"}`, "pointer /ttlSeconds wrong_type"),
			Entry("in known words", `{"ttl":60,"holdToken":1}`, "pointer /ttl unknown_field", "pointer /holdToken wrong_type"),
			Entry("without a name that is empty", `{"":"`+vet+`"}`, "pointer / unknown_field"),
			Entry("by an object", `[]`, "pointer  wrong_type"),
		)

		It("are held, booked and released with an empty body in chunks", func() {
			chunked := func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("")), -1 }
			path := slotPath + "/" + create(9)
			for _, verb := range []string{"/book", "/release", "/hold"} {
				Expect(s.do("POST", path+verb, "", chunked, key(verb)).ok().body).To(Equal(s.do("POST", path+verb, "", key(verb)).ok().body), verb)
			}
		})

		It("are found by hold and book only where there is a slot", func() {
			for _, verb := range []string{"/hold", "/book", "/release"} {
				Expect(s.do("POST", slotPath+"/"+uuid.NewString()+verb, "").status).To(Equal(http.StatusNotFound))
				Expect(s.do("POST", slotPath+"/7"+verb, "").errs()).To(Equal([]string{"parameter id invalid_value"}))
				Expect(s.do("GET", slotPath+"/"+uuid.NewString()+verb, "").header.Get("Allow")).To(Equal("POST"))
			}
		})
	})
})

// is expects a status.
func (a answer) is(want int) {
	GinkgoHelper()
	Expect(a.status).To(Equal(want), a.body)
}
