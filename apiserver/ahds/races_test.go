package ahds_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/ahds/slot"
	"github.com/paddock-health/paddock/apiserver/store"
)

// racers is how many clients race, over all servers.
const racers = 64

// rounds is how often each race is run: $PADDOCK_RACES, else a few.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("PADDOCK_RACES")); err == nil {
		return n
	}
	return 6
}

var _ = Describe("Of 64 clients at two servers", func() {
	onBoth("never two win", func(newSite func(context.Context, ...wrapper) site) {
		for name, race := range races {
			It(name, func(ctx SpecContext) {
				s := newSite(ctx)
				for range rounds() {
					Expect(race(s)).To(BeEmpty())
				}
			})
		}

		It("and a lock within each server in place of claims is found out", func(ctx SpecContext) {
			s := newSite(ctx, func(_ int, s store.Store) store.Store { return &lockedStore{Store: s} })
			Eventually(func() []string { return races["who book overlapping slots"](s) }).WithPolling(0).Within(time.Minute).ShouldNot(BeEmpty())
		})
	})
})

// races are what clients race for. Each returns what went wrong.
var races = map[string]func(site) []string{
	"who book one slot, each in one of the ways": func(s site) []string {
		id := s.do("POST", slotPath, slotBody(9)).created(slotID)
		path := slotPath + "/" + id
		free := s.do("GET", path, "")
		answers := s.race(func(i int) (string, string, string) {
			switch i % 3 {
			case 0:
				return "PATCH", path, `{"isBooked":true}`
			case 1:
				return "PUT", path, strings.Replace(free.body, `"isBooked":false`, `"isBooked":true`, 1)
			default:
				return "POST", path + "/book", ""
			}
		})
		wrong := oneWinner(answers, func(answer) string { return id })
		return append(wrong, s.cleared()...)
	},
	"who book overlapping slots": func(s site) []string {
		var ids []string
		for i := range 8 {
			ids = append(ids, s.do("POST", slotPath, slotBody(9+float64(i)/10)).created(slotID))
		}
		answers := s.race(func(i int) (string, string, string) {
			if i < 8 {
				return "POST", slotPath, slotBody(9.35, fields{"isBooked": true, "notes": fmt.Sprint(i)})
			}
			return "PATCH", slotPath + "/" + ids[i%8], `{"isBooked":true}`
		})
		wrong := oneWinner(answers, winnerOf(answers))
		return append(wrong, s.cleared()...)
	},
	"who move bookings to one time": func(s site) []string {
		var ids []string
		for i := range racers / 4 {
			ids = append(ids, s.do("POST", slotPath, slotBody(float64(48+2*i), fields{"isBooked": true, "resourceId": []string{vet, room}[i%2]})).created(slotID))
		}
		answers := s.race(func(i int) (string, string, string) {
			return "PATCH", slotPath + "/" + ids[i%len(ids)], fmt.Sprintf(`{"resourceId":%q,"startAt":"2031-03-01T09:%02d:00Z","endAt":"2031-03-01T10:30:00Z"}`, vet, i%len(ids))
		})
		// Clients of the slot that won may have moved it again.
		winners := map[string]bool{}
		for _, a := range answers {
			if a.status == http.StatusOK {
				winners[a.text(slotID)] = true
			}
		}
		var wrong []string
		if len(winners) != 1 {
			wrong = append(wrong, fmt.Sprintf("%d slots were moved to one time", len(winners)))
		}
		for _, a := range answers {
			if a.status != http.StatusOK && !winners[conflicting(a)] {
				wrong = append(wrong, "a loser was told "+a.body)
			}
		}
		return append(wrong, s.cleared()...)
	},
	"who hold, book and release overlapping slots while holds end": func(s site) []string {
		ids := []string{s.do("POST", slotPath, slotBody(9)).created(slotID), s.do("POST", slotPath, slotBody(9.5)).created(slotID)}
		answers := s.raceEach(func(i int, do func(method, path, body string) answer) answer {
			path := slotPath + "/" + ids[i%2]
			held := do("POST", path+"/hold", `{"ttlSeconds":1}`)
			if held.status != http.StatusOK {
				return held
			}
			token := `{"holdToken":"` + held.text("holdToken") + `"}`
			switch i % 4 {
			case 0:
				return do("POST", path+"/release", token)
			default:
				return do("POST", path+"/book", token)
			}
		})
		var wrong []string
		booked := 0
		for _, a := range answers {
			switch {
			case a.status == http.StatusOK && a.json()["isBooked"] == true:
				booked++
			case a.status != http.StatusOK && !slices.Contains(ids, conflicting(a)):
				wrong = append(wrong, "a loser was told "+a.body)
			}
		}
		if booked > 1 {
			wrong = append(wrong, fmt.Sprintf("%d clients booked", booked))
		}
		return append(wrong, s.cleared()...)
	},
}

// conflicting is the slot that a 409 names.
func conflicting(a answer) string {
	if a.status != http.StatusConflict {
		return ""
	}
	id, _ := a.json()["conflictingSlotId"].(string)
	return id
}

// winnerOf finds the slot that the winner has.
func winnerOf(answers []answer) func(answer) string {
	return func(answer) string {
		for _, a := range answers {
			if a.status == http.StatusOK || a.status == http.StatusCreated {
				return a.text(slotID)
			}
		}
		return ""
	}
}

// oneWinner returns an error unless exactly one request won and each other response names its slot.
func oneWinner(answers []answer, winner func(answer) string) []string {
	var wrong []string
	won := 0
	for _, a := range answers {
		switch {
		case a.status == http.StatusOK || a.status == http.StatusCreated:
			won++
		case conflicting(a) == "" || conflicting(a) != winner(a):
			wrong = append(wrong, "a loser was told "+a.body)
		}
	}
	if won != 1 {
		wrong = append(wrong, fmt.Sprintf("%d winners", won))
	}
	return wrong
}

// race sends the requests of all racers at once, to the servers in turn.
func (s site) race(request func(i int) (method, path, body string)) []answer {
	return s.raceEach(func(i int, do func(method, path, body string) answer) answer {
		return do(request(i))
	})
}

// raceEach lets all racers act at once.
func (s site) raceEach(act func(i int, do func(method, path, body string) answer) answer) []answer {
	GinkgoHelper()
	answers := make([]answer, racers)
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range racers {
		group.Go(func() {
			defer GinkgoRecover()
			<-start
			answers[i] = act(i, func(method, path, body string) answer {
				a, err := s.send(i%replicas, method, path, body)
				Expect(err).NotTo(HaveOccurred())
				return a
			})
		})
	}
	close(start)
	group.Wait()
	return answers
}

// cleared returns slots that are booked or held at the same time, and removes all slots.
func (s site) cleared() []string {
	GinkgoHelper()
	var wrong []string
	var busy []known
	for {
		page := s.do("GET", slotPath+"?pageSize=100&sortBy=startAt", "").ok()
		ids := page.ids(slotID)
		for _, id := range ids {
			a := s.do("GET", slotPath+"/"+id, "")
			var k known
			if a.decode(&k); k.IsActive && (k.IsBooked || k.HeldUntil.After(now())) {
				for _, other := range busy {
					if k.StartAt.Before(other.EndAt) && other.StartAt.Before(k.EndAt) && strings.EqualFold(k.ResourceID, other.ResourceID) {
						wrong = append(wrong, "slots "+k.ID+" and "+other.ID+" overlap")
					}
				}
				busy = append(busy, k)
			}
		}
		for _, id := range ids {
			Expect(s.do("DELETE", slotPath+"/"+id, "").status).To(Equal(http.StatusNoContent))
		}
		if len(ids) < 100 {
			return wrong
		}
	}
}

// lockedStore keeps claims of slots in this process alone: what the store must not do.
type lockedStore struct {
	store.Store
	mu   sync.Mutex
	held map[store.Key]store.Claim
}

func (l *lockedStore) Write(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[store.Key]store.Claim{}
	}
	for i, op := range ops {
		delete(l.held, op.Key)
		for _, claim := range op.Claims {
			for holder, other := range l.held {
				if slot.IsClaim(claim) && claim.Line == other.Line && claim.Overlaps(other) {
					return nil, &store.ClaimError{Claim: other, Holder: holder}
				}
			}
			l.held[op.Key] = claim
		}
		ops[i].Claims = nil
	}
	results, err := l.Store.Write(ctx, ops)
	if conflict := new(store.PreconditionError); errors.As(err, &conflict) {
		delete(l.held, ops[0].Key)
	}
	return results, err
}
