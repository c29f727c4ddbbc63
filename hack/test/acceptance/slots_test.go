package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	clerks = 64
	vet    = "0198c4f2-7d1e-7c3a-9b5f-000000000002"
	// stuckAtMost is how long what a killed server left may stand in the way: the time
	// that an unfinished write of etcd-backed storage has, and some.
	stuckAtMost = 45 * time.Second
)

// slotRounds is how often each race is run: $PADDOCK_SLOT_ROUNDS, else a few. In one of
// ten rounds, the fourth, an API server is killed.
func slotRounds() int {
	if n, err := strconv.Atoi(os.Getenv("PADDOCK_SLOT_ROUNDS")); err == nil {
		return n
	}
	return 4
}

// calendar is one resource's slots at one site.
type calendar struct{ base, resource string }

// booking is a slot as it is answered.
type booking struct {
	ID                string `json:"availabilitySlotId"`
	ConflictingSlotID string
	HoldToken         string
	IsActive          bool
	IsBooked          bool
	StartAt, EndAt    time.Time
	HeldUntil         time.Time
}

// act is what one clerk does at one server; the last answer counts.
type act func(clerk int, do func(method, path, body string) (response, error)) (response, error)

func (c calendar) at(server int, path string) string {
	return paddock.URLs[server] + c.base + "/availability-slot" + path
}

// create makes a slot of an hour and returns its id.
func (c calendar) create(hour float64, more string) string {
	GinkgoHelper()
	answer := send(request{method: "POST", url: c.at(0, ""), body: c.body(hour, more)})
	Expect(answer.status).To(Equal(http.StatusCreated), string(answer.body))
	return answer.booking().ID
}

func (c calendar) body(hour float64, more string) string {
	start := time.Date(2031, 3, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(hour * float64(time.Hour)))
	return fmt.Sprintf(`{"startAt":%q,"endAt":%q,"locationId":%q,"resourceId":%q%s}`,
		start.Format(time.RFC3339), start.Add(time.Hour).Format(time.RFC3339), vet, c.resource, more)
}

func (r response) booking() booking {
	GinkgoHelper()
	var b booking
	Expect(json.Unmarshal(r.body, &b)).To(Succeed(), string(r.body))
	return b
}

// race lets all clerks act at once, at the servers in turn. Kill names the server that is
// killed meanwhile, none when it is negative.
func (c calendar) race(kill int, each act) []response {
	GinkgoHelper()
	answers := make([]response, clerks)
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range clerks {
		group.Go(func() {
			<-start
			// A clerk whose server is gone does not know: that is the zero response.
			answers[i], _ = each(i, func(method, path, body string) (response, error) {
				return trySend(request{method: method, url: c.at(i%len(paddock.URLs), path), body: body})
			})
		})
	}
	close(start)
	if kill >= 0 {
		Expect(paddock.APIServers[kill].Kill()).To(Succeed())
	}
	group.Wait()
	if kill >= 0 {
		Expect(paddock.APIServers[kill].Restart(GinkgoT().Context())).To(Succeed())
		Eventually(func() int { return send(request{method: "GET", url: c.at(kill, "?pageSize=1")}).status }).Within(30 * time.Second).Should(Equal(http.StatusOK))
	}
	return answers
}

// slots are all of the resource, as a server finds them.
func (c calendar) slots() []booking {
	GinkgoHelper()
	answer := send(request{method: "GET", url: c.at(0, "?pageSize=100&resourceId="+c.resource)})
	Expect(answer.status).To(Equal(http.StatusOK), string(answer.body))
	var page struct{ Data []booking }
	Expect(json.Unmarshal(answer.body, &page)).To(Succeed())
	for i, b := range page.Data {
		page.Data[i] = send(request{method: "GET", url: c.at(0, "/"+b.ID)}).booking() // as it is, not as it was found
	}
	return page.Data
}

// judge checks a round: nobody is booked twice, losers are told of a slot that stands
// against them, and nothing is stuck. It removes the slots.
func (c calendar) judge(answers []response, killed bool) {
	GinkgoHelper()
	all, busy, ids := c.slots(), []booking{}, map[string]bool{}
	for _, b := range all {
		ids[b.ID] = true
		if b.IsActive && (b.IsBooked || b.HeldUntil.After(time.Now())) {
			for _, other := range busy {
				Expect(b.StartAt.Before(other.EndAt) && other.StartAt.Before(b.EndAt)).To(BeFalse(), "%+v and %+v overlap", b, other)
			}
			busy = append(busy, b)
		}
	}
	for _, a := range answers {
		switch a.status {
		case http.StatusOK, http.StatusCreated:
		case http.StatusConflict:
			Expect(killed || ids[a.booking().ConflictingSlotID]).To(BeTrue(), "a loser was told %s", a.body)
		default:
			Expect(killed).To(BeTrue(), "a clerk was answered %d %s", a.status, a.body)
		}
	}
	for _, b := range all {
		Expect(send(request{method: "DELETE", url: c.at(1, "/"+b.ID)}).status).To(Equal(http.StatusNoContent))
	}
	if !killed {
		return
	}
	By("what a killed server was doing does not stand in the way for long")
	whole := send(request{method: "POST", url: c.at(0, ""), body: strings.Replace(c.body(0, ""), "2031-03-01T01:00:00Z", "2031-03-30T00:00:00Z", 1)}).booking().ID
	Eventually(func() string {
		answer := send(request{method: "POST", url: c.at(1, "/"+whole+"/book")})
		if conflict := answer.booking().ConflictingSlotID; answer.status == http.StatusConflict && conflict != whole {
			// It was made by a request whose answer never came.
			send(request{method: "DELETE", url: c.at(1, "/"+conflict)})
		}
		return fmt.Sprint(answer.status, " ", string(answer.body))
	}).Within(stuckAtMost).ProbeEvery(100 * time.Millisecond).Should(HavePrefix("200 "))
	Expect(send(request{method: "DELETE", url: c.at(0, "/"+whole)}).status).To(Equal(http.StatusNoContent))
}

// winners counts who was told to have won.
func winners(answers []response) int {
	won := 0
	for _, a := range answers {
		if a.status == http.StatusOK || a.status == http.StatusCreated {
			won++
		}
	}
	return won
}

// slotRaces are what clerks race for. Each returns their answers and how many may win.
var slotRaces = map[string]func(c calendar, kill int) (answers []response, most int){
	"book one slot": func(c calendar, kill int) ([]response, int) {
		id := c.create(9, "")
		return c.race(kill, func(i int, do func(method, path, body string) (response, error)) (response, error) {
			if i%2 == 0 {
				return do("PATCH", "/"+id, `{"isBooked":true}`)
			}
			return do("POST", "/"+id+"/book", "")
		}), 1
	},
	"book overlapping slots": func(c calendar, kill int) ([]response, int) {
		ids := []string{c.create(9, ""), c.create(9.25, ""), c.create(9.5, ""), c.create(9.75, "")}
		return c.race(kill, func(i int, do func(method, path, body string) (response, error)) (response, error) {
			if i%8 == 0 {
				return do("POST", "", c.body(9.4, `,"isBooked":true`))
			}
			return do("PATCH", "/"+ids[i%len(ids)], `{"isBooked":true}`)
		}), 1
	},
	"move bookings to one time": func(c calendar, kill int) ([]response, int) {
		var ids []string
		for i := range 8 {
			ids = append(ids, c.create(float64(24+2*i), `,"isBooked":true`))
		}
		return c.race(kill, func(i int, do func(method, path, body string) (response, error)) (response, error) {
			return do("PATCH", "/"+ids[i%len(ids)], fmt.Sprintf(`{"startAt":"2031-03-01T09:%02d:00Z","endAt":"2031-03-01T10:30:00Z"}`, i%len(ids)))
		}), clerks / 8 // those who moved the same slot
	},
	"hold, book and release while holds end": func(c calendar, kill int) ([]response, int) {
		ids := []string{c.create(9, ""), c.create(9.5, "")}
		return c.race(kill, func(i int, do func(method, path, body string) (response, error)) (response, error) {
			path := "/" + ids[i%2]
			for {
				held, err := do("POST", path+"/hold", `{"ttlSeconds":1}`)
				if err != nil || held.status != http.StatusOK {
					return held, err
				}
				token := fmt.Sprintf(`{"holdToken":%q}`, held.booking().HoldToken)
				end := "/book"
				if i%4 == 0 {
					end = "/release"
				}
				answer, err := do("POST", path+end, token)
				if err != nil || answer.status == http.StatusOK || time.Now().Before(held.booking().HeldUntil) {
					return answer, err
				}
				// The hold ended before the request arrived.
			}
		}), clerks // those who released
	},
}

var _ = Describe("Of 64 clients at two API servers who", Ordered, Serial, func() {
	for _, site := range demos {
		for name, race := range slotRaces {
			It(name+", no two win: site "+site, func() {
				c := calendar{base: "/site/" + site + "/ahds/v1", resource: "0198c4f2-7d1e-7c3a-9b5f-00000000000a"}
				for round := range slotRounds() {
					kill := -1
					if round%10 == 3 {
						kill = round / 10 % len(paddock.APIServers)
					}
					answers, most := race(c, kill)
					won := winners(answers)
					Expect(won).To(BeNumerically("<=", most))
					Expect(won > 0 || kill >= 0).To(BeTrue(), "nobody won")
					c.judge(answers, kill >= 0)
				}
			})
		}
	}
})

var _ = Describe("Records of the other API", func() {
	It("are in no search and no history of FHIR's", func() {
		for _, site := range demos {
			base := balanced + "/site/" + site
			slot := send(request{method: "POST", url: base + "/ahds/v1/availability-slot", body: calendar{resource: vet}.body(200, "")})
			Expect(slot.status).To(Equal(http.StatusCreated), string(slot.body))
			group := send(request{method: "POST", url: base + "/ahds/v1/eventgroup", body: `{"name":"not for FHIR","status":"active"}`})
			Expect(group.status).To(Equal(http.StatusCreated), string(group.body))
			feed := send(request{method: "POST", url: base + "/ahds/v1/availability-slot-feed", body: `{"resourceId":"` + vet + `"}`})
			Expect(feed.status).To(Equal(http.StatusCreated), string(feed.body))
			Expect(send(request{method: "PUT", url: base + "/fhir/patient/for-fhir", body: patient(1)}).status).To(BeNumerically("<", 300))
			for _, server := range paddock.URLs {
				fhir := server + "/site/" + site + "/fhir"
				for _, path := range []string{"/_history?_count=1000", "?_count=1000", "?_lastUpdated=gt2020-01-01&_count=1000", "?_count=1000&_revinclude=*"} {
					found := send(request{method: "GET", url: fhir + path})
					Expect(found.status).To(Equal(http.StatusOK), string(found.body))
					entries, _ := found.field("entry").([]any)
					for _, entry := range entries {
						resource, ok := entry.(map[string]any)["resource"].(map[string]any)
						Expect(ok && resource["resourceType"] != nil).To(BeTrue(), "%s has %v", path, entry)
					}
					Expect(entries).NotTo(BeEmpty())
					Expect(string(found.body)).NotTo(ContainSubstring("not for FHIR"))
					Expect(string(found.body)).NotTo(ContainSubstring(slot.booking().ID))
				}
				for _, kind := range []string{"AvailabilitySlot", "EventGroup", "availability-slot"} {
					Expect(send(request{method: "GET", url: fhir + "/" + kind}).status).To(Equal(http.StatusNotFound))
				}
				Expect(send(request{method: "GET", url: fhir + "?_type=AvailabilitySlot"}).status).To(Equal(http.StatusBadRequest))
				Expect(send(request{method: "GET", url: fhir + "/patient/" + slot.booking().ID}).status).To(Equal(http.StatusNotFound))
			}
			for _, made := range []string{"availability-slot/" + slot.booking().ID, "eventgroup/" + fmt.Sprint(group.field("eventgroupId")), "availability-slot-feed/" + fmt.Sprint(feed.field("availabilitySlotFeedId"))} {
				Expect(send(request{method: "DELETE", url: base + "/ahds/v1/" + made}).status).To(Equal(http.StatusNoContent))
			}
		}
	})
})
