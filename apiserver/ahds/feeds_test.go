package ahds_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	ics "github.com/arran4/golang-ical"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/ahds"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/limits"
)

const (
	feedPath = "/availability-slot-feed"
	feedID   = "availabilitySlotFeedId"
)

var _ = Describe("The calendar of a resource", func() {
	onBoth("as iCalendar", func(newSite func(context.Context, ...wrapper) site) {
		var s site
		BeforeEach(func(ctx SpecContext) { s = newSite(ctx) })

		// today is a slot of today, so that the calendar reaches it.
		today := func(hour int, changes ...fields) string {
			GinkgoHelper()
			start := time.Now().UTC().Truncate(24 * time.Hour).Add(time.Duration(hour) * time.Hour)
			times := fields{"startAt": start.Format(time.RFC3339), "endAt": start.Add(time.Hour).Format(time.RFC3339)}
			return s.do("POST", slotPath, slotBody(0, append([]fields{times}, changes...)...)).created(slotID)
		}
		read := func(url string, options ...option) answer {
			return s.do("GET", url, "", append([]option{caller("nobody"), with("Accept", "text/calendar")}, options...)...)
		}

		It("is read by whoever has its address, until it is revoked", func() {
			free := today(9, fields{"notes": "secret notes", "serviceType": fields{"code": "vax", "display": "Vaccination; cats, dogs\nand others"}})
			booked := today(10, fields{"isBooked": true})
			held := today(11)
			s.do("POST", slotPath+"/"+held+"/hold", "").ok()
			today(9, fields{"resourceId": room})
			today(12, fields{"isActive": false})
			s.do("POST", slotPath, slotBody(9)).created(slotID) // too far away

			feed := s.do("POST", feedPath, `{"resourceId":"`+strings.ToUpper(vet)+`","description":"Dr. Mäx"}`)
			path := feedPath + "/" + feed.created(feedID)
			url := feed.text("url")
			Expect(url).To(HavePrefix(s.bases[0] + slotPath + ".ics?token="))
			a := read(url)
			Expect(a.status).To(Equal(http.StatusOK), a.body)
			Expect(a.header.Get("Content-Type")).To(Equal("text/calendar; charset=utf-8"))
			Expect(a.body).NotTo(ContainSubstring("secret"))
			Expect(strings.Count(a.body, "\n")).To(Equal(strings.Count(a.body, "\r\n")))
			calendar, err := ics.ParseCalendar(bytes.NewReader([]byte(a.body)))
			Expect(err).NotTo(HaveOccurred())
			told := map[string][]string{}
			for _, event := range calendar.Events() {
				start, err := event.GetStartAt()
				Expect(err).NotTo(HaveOccurred())
				told[strings.SplitN(event.Id(), "@", 2)[0]] = []string{
					event.GetProperty(ics.ComponentPropertySummary).Value, event.GetProperty(ics.ComponentPropertyTransp).Value,
					event.GetProperty(ics.ComponentPropertyStatus).Value, start.UTC().Format("15:04"),
				}
			}
			Expect(told).To(Equal(map[string][]string{
				free:   {"Free: Vaccination; cats, dogs\nand others", "TRANSPARENT", "CONFIRMED", "09:00"},
				booked: {"Booked", "OPAQUE", "CONFIRMED", "10:00"},
				held:   {"Held", "OPAQUE", "TENTATIVE", "11:00"},
			}))

			By("it is not sent again to who has it")
			Expect(read(url, with("If-None-Match", a.header.Get("ETag"))).status).To(Equal(http.StatusNotModified))
			s.do("PATCH", slotPath+"/"+free, `{"isBooked":true}`).ok()
			Expect(read(url, with("If-None-Match", a.header.Get("ETag"))).status).To(Equal(http.StatusOK))
			soon := time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)
			Expect(read(url, with("If-Modified-Since", soon)).status).To(Equal(http.StatusOK), "a calendar has no time of its last change")

			By("its address can be read again, by those with the right")
			Expect(s.do("GET", path, "").ok().text("url")).To(Equal(url))
			By("no other token counts")
			for _, bad := range []string{url[:len(url)-1], url + "A", strings.Replace(url, ".ics?token=", ".ics?token=0", 1), s.bases[0] + slotPath + ".ics?token=x", strings.ToUpper(url[len(url)-44:])} {
				if !strings.HasPrefix(bad, "http") {
					bad = url[:len(url)-44] + bad
				}
				Expect(read(bad).status).To(Equal(http.StatusNotFound), bad)
			}
			for _, bad := range []string{"", "?token=", "?token=a&token=b", "?resourceId=" + vet} {
				Expect(read(s.bases[0] + slotPath + ".ics" + bad).status).To(BeElementOf(http.StatusBadRequest, http.StatusNotFound))
			}
			Expect(read(strings.Replace(url, s.id, "absent", 1)).status).To(Equal(http.StatusNotFound))

			By("deleting it revokes the address, also when its id is used again")
			Expect(s.do("DELETE", path, "").status).To(Equal(http.StatusNoContent))
			Expect(read(url).status).To(Equal(http.StatusNotFound))
			again := s.do("POST", feedPath, `{"resourceId":"`+vet+`","`+feedID+`":"`+feed.text(feedID)+`"}`)
			Expect(again.status).To(Equal(http.StatusCreated))
			Expect(again.text("url")).NotTo(Equal(url))
			Expect(read(url).status).To(Equal(http.StatusNotFound))
			Expect(read(again.text("url")).status).To(Equal(http.StatusOK))
		})

		It("ends when the right of its maker ends", func() {
			today(9)
			feed := s.do("POST", feedPath, `{"resourceId":"`+vet+`"}`, caller("leaver"))
			path, url := feedPath+"/"+feed.created(feedID), feed.text("url")
			Expect(read(url).status).To(Equal(http.StatusOK))
			ended.Store("leaver", true)
			DeferCleanup(func() { ended.Delete("leaver") })
			Expect(read(url).status).To(Equal(http.StatusNotFound))
			Expect(read(url).body).To(MatchRegexp(`resource_not_found`))

			By("somebody else writes it and answers for it then")
			s.do("PUT", path, `{"resourceId":"`+vet+`","description":""}`, caller("stayer")).ok()
			Expect(read(url).status).To(Equal(http.StatusOK))
			for _, verb := range []string{"get", "list"} {
				s.do("PATCH", path, `{"description":"`+verb+`"}`, caller("no-"+verb)).ok()
				Expect(read(url).status).To(Equal(http.StatusNotFound), verb)
			}
		})

		It("counts as a search of its maker", func(ctx SpecContext) {
			searches := limits.New(time.Now).Site(s.id, limits.Rates{Rate: 1000, CallerRate: 1000, Burst: 1000, Searches: 1})
			for i := range replicas {
				opened, _ := openSites[i].Load(s.id)
				limited := opened.(ahds.DataStore)
				limited.Limiter = searches
				openSites[i].Store(s.id, limited)
			}
			url := s.do("POST", feedPath, `{"resourceId":"`+vet+`"}`, caller("maker")).text("url")
			end, err := searches.Search(ctx, "another")
			Expect(err).NotTo(HaveOccurred())
			Expect(read(url).status).To(Equal(http.StatusTooManyRequests))
			end()
			Expect(read(url).status).To(Equal(http.StatusOK))
		})

		It("is in the audit log, with its maker as the caller", func(ctx SpecContext) {
			storage := s.stores[0].(interface{ Audit() audit.Storage }).Audit()
			s = s.audited(storage)
			free := today(9)
			feed := s.do("POST", feedPath, `{"resourceId":"`+vet+`"}`, caller("maker"))
			id := feed.created(feedID)
			first := read(feed.text("url"))
			Expect(first.status).To(Equal(http.StatusOK))
			Expect(read(feed.text("url"), with("If-None-Match", first.header.Get("ETag"))).status).To(Equal(http.StatusNotModified))
			Expect(read(feed.text("url") + "x").status).To(Equal(http.StatusNotFound))
			logged := func() (all []string) {
				entries, err := storage.Search(ctx, audit.Query{Interactions: []string{"list"}, Count: 10})
				Expect(err).NotTo(HaveOccurred())
				for _, e := range entries {
					records := slices.Sorted(e.Records.All())
					all = append(all, fmt.Sprintf("%s %s %s %d %v", e.Caller, e.Action, e.Type, e.Status, records))
				}
				return all
			}
			read := fmt.Sprintf("[AvailabilitySlot/%s AvailabilitySlotFeed/%s]", free, id)
			Eventually(logged).WithContext(ctx).Should(Equal([]string{
				" E AvailabilitySlot 404 [AvailabilitySlotFeed/" + id + "]",
				"maker E AvailabilitySlot 304 " + read,
				"maker E AvailabilitySlot 200 " + read,
			}))
		})

		It("outlives one replacement of its key, and no second one", func() {
			feed := s.do("POST", feedPath, `{"resourceId":"`+vet+`"}`)
			path, url := feedPath+"/"+feed.created(feedID), feed.text("url")
			DeferCleanup(feedKeys.Store, feedKeys.Load())
			feedKeys.Store(&[][]byte{secondKey, firstKey})
			Expect(read(url).status).To(Equal(http.StatusOK))
			renewed := s.do("GET", path, "").ok().text("url")
			Expect(renewed).NotTo(Equal(url))
			feedKeys.Store(&[][]byte{secondKey})
			Expect(read(url).status).To(Equal(http.StatusNotFound))
			Expect(read(renewed).status).To(Equal(http.StatusOK))

			By("which is not that of holds")
			held := today(11)
			hold := s.do("POST", slotPath+"/"+held+"/hold", "").ok().text("holdToken")
			DeferCleanup(holdKeys.Store, holdKeys.Load())
			holdKeys.Store(&[][]byte{secondKey, firstKey})
			s.do("POST", slotPath+"/"+held+"/hold", `{"holdToken":"`+hold+`"}`).ok()
		})

		It("is listed by resource", func() {
			one := s.do("POST", feedPath, `{"resourceId":"`+vet+`"}`).created(feedID)
			two := s.do("POST", feedPath, `{"resourceId":"`+room+`"}`).created(feedID)
			Expect(s.do("GET", feedPath, "").ids(feedID)).To(Equal([]string{one, two}))
			Expect(s.do("GET", feedPath+"?resourceId="+room, "").ids(feedID)).To(Equal([]string{two}))
			Expect(s.do("POST", feedPath, `{}`).errs()).To(Equal([]string{"pointer /resourceId missing_field"}))
		})
	})
})
