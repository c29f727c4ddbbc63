package ahds_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/ahds"
	"github.com/paddock-health/paddock/apiserver/store"
)

const changesPath = slotPath + "/changes"

// cursors binds cursors to their scope as the server does, but does not encrypt them.
type cursors struct{}

type sealed struct {
	Of ahds.CursorScope
	At []byte
}

func (cursors) Seal(of ahds.CursorScope, at []byte) string {
	text, err := json.Marshal(sealed{of, at})
	Expect(err).NotTo(HaveOccurred())
	return base64.RawURLEncoding.EncodeToString(text)
}

func (cursors) Open(of ahds.CursorScope, token string) ([]byte, error) {
	var opened sealed
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || json.Unmarshal(text, &opened) != nil || opened.Of != of {
		return nil, errors.New("is not of this list")
	}
	return opened.At, nil
}

// anotherMillisecond waits until a write has another time than those before.
func anotherMillisecond() {
	for begun := time.Now().UnixMilli(); time.Now().UnixMilli() == begun; {
		runtime.Gosched()
	}
}

// changes is a page of changes.
type changes struct {
	Data []struct {
		AvailabilitySlotID string
		UpdatedAt          time.Time
		Deleted            bool
		ETag               string
		Slot               document
	}
	Meta struct {
		Next string
		More bool
	}
}

// mirror is a client that follows the changes of a site.
type mirror struct {
	site
	cursor string
	slots  map[string]string // ETags by id, empty for deleted slots
	times  map[string]time.Time
	polls  int
}

func newMirror(s site) *mirror {
	return &mirror{site: s, slots: map[string]string{}, times: map[string]time.Time{}}
}

// poll reads one list of changes, each page from the next server, and returns the ids in it.
func (m *mirror) poll(pageSize int) []string {
	GinkgoHelper()
	ids := []string{}
	for {
		m.polls++
		a, err := m.send(m.polls%replicas, "GET", fmt.Sprintf("%s?pageSize=%d&since=%s", changesPath, pageSize, url.QueryEscape(m.cursor)), "")
		Expect(err).NotTo(HaveOccurred())
		var page changes
		a.ok().decode(&page)
		for _, each := range page.Data {
			ids = append(ids, each.AvailabilitySlotID)
			if each.UpdatedAt.Before(m.times[each.AvailabilitySlotID]) {
				continue // a server that is behind
			}
			m.slots[each.AvailabilitySlotID], m.times[each.AvailabilitySlotID] = each.ETag, each.UpdatedAt
		}
		m.cursor = page.Meta.Next
		if !page.Meta.More {
			return ids
		}
	}
}

// lateStore is the store of a server whose histories do not have the record with the id hidden yet.
type lateStore struct {
	store.Store
	hidden string
}

func (l *lateStore) History(ctx context.Context, query store.HistoryQuery) (store.Page, error) {
	page, err := l.Store.History(ctx, query)
	page.Records = slices.DeleteFunc(page.Records, func(rec store.Record) bool { return rec.Key.ID == l.hidden })
	return page, err
}

var _ = Describe("The changes of slots", func() {
	onBoth("are listed", func(newSite func(context.Context, ...wrapper) site) {
		var s site
		BeforeEach(func(ctx SpecContext) { s = newSite(ctx) })
		read := func(since string) (page changes) {
			GinkgoHelper()
			s.do("GET", changesPath+"?since="+url.QueryEscape(since), "").ok().decode(&page)
			return page
		}
		later := func(by time.Duration) {
			clockOffset.Add(int64(by))
			DeferCleanup(func() { clockOffset.Add(-int64(by)) })
		}

		It("with deletions, each slot once in its newest version", func() {
			Expect(read("").Data).To(BeEmpty())
			kept, gone := uuid.NewString(), uuid.NewString()
			s.do("POST", slotPath, slotBody(9, fields{slotID: kept})).created(slotID)
			anotherMillisecond()
			s.do("POST", slotPath, slotBody(10, fields{slotID: gone})).created(slotID)
			first := read("")
			Expect(first.Data).To(HaveLen(2))
			Expect([]string{first.Data[0].AvailabilitySlotID, first.Data[1].AvailabilitySlotID}).To(Equal([]string{gone, kept}), "newest first")
			changed := s.do("PATCH", slotPath+"/"+kept, `{"notes":"x"}`).ok()
			anotherMillisecond()
			Expect(s.do("DELETE", slotPath+"/"+gone, "").status).To(Equal(http.StatusNoContent))
			for _, since := range []string{"", first.Meta.Next} {
				page := read(since)
				Expect(page.Data).To(HaveLen(2))
				Expect(page.Data[0].AvailabilitySlotID).To(Equal(gone))
				Expect(page.Data[0].Deleted).To(BeTrue())
				Expect(page.Data[0].Slot).To(BeNil())
				Expect(page.Data[1].AvailabilitySlotID).To(Equal(kept))
				Expect(page.Data[1].Deleted).To(BeFalse())
				Expect(page.Data[1].ETag).To(Equal(changed.header.Get("ETag")))
				Expect(page.Data[1].Slot).To(Equal(changed.json()))
				Expect(page.Meta.More).To(BeFalse())
			}

			By("a slot created again under the id of a deleted one")
			again := s.do("POST", slotPath, slotBody(11, fields{slotID: gone}))
			Expect(again.status).To(Equal(http.StatusCreated))
			s.do("PATCH", slotPath+"/"+gone, `{"notes":"y"}`).ok()
			repeated := s.do("POST", slotPath, slotBody(11, fields{slotID: gone}))
			Expect(repeated.status).To(Equal(http.StatusOK))
			Expect(repeated.body).To(Equal(again.body), "the first answer, not one from before the deletion")
			Expect(read(first.Meta.Next).Data[0].Slot).To(HaveKeyWithValue("notes", "y"))
		})

		It("from a time on, and are not repeated for ever", func() {
			old := s.do("POST", slotPath, slotBody(9)).created(slotID)
			anotherMillisecond()
			recent := s.do("POST", slotPath, slotBody(10))
			at, err := time.Parse(time.RFC3339Nano, recent.text("updatedAt"))
			Expect(err).NotTo(HaveOccurred())
			page := read(at.Format(time.RFC3339Nano))
			Expect(page.Data).To(HaveLen(1))
			Expect(page.Data[0].AvailabilitySlotID).To(Equal(recent.created(slotID)))
			Expect(read(page.Meta.Next).Data).To(HaveLen(1), "an older change may still become visible, but not one from before the given time")
			later(time.Minute)
			again := read(page.Meta.Next)
			Expect(again.Data).To(HaveLen(1), "the last list was read right after the change")
			idle := read(again.Meta.Next)
			Expect(idle.Data).To(BeEmpty())
			s.do("PATCH", slotPath+"/"+old, `{"notes":"x"}`).ok()
			Expect(read(idle.Meta.Next).Data).To(HaveLen(1))
			unescaped := at.In(time.FixedZone("", 3600)).Format(time.RFC3339Nano)
			Expect(unescaped).To(ContainSubstring("+"))
			var same changes
			s.do("GET", changesPath+"?since="+unescaped, "").ok().decode(&same)
			Expect(same.Data).To(HaveLen(2))
			future := read("2040-01-01T00:00:00Z")
			Expect(future.Data).To(BeEmpty())
			Expect(read(future.Meta.Next).Data).To(BeEmpty())
		})

		It("although they become visible after later ones, and the client polls rarely", func(ctx SpecContext) {
			behind := &lateStore{}
			s = newSite(ctx, func(_ int, s store.Store) store.Store {
				behind.Store = s
				return behind
			})
			late := s.do("POST", slotPath, slotBody(9)).created(slotID)
			anotherMillisecond()
			seen := s.do("POST", slotPath, slotBody(10)).created(slotID)
			behind.hidden = late
			m := newMirror(s)
			Expect(m.poll(10)).To(Equal([]string{seen}))
			behind.hidden = ""
			later(time.Minute)
			Expect(m.poll(10)).To(Equal([]string{seen, late}))
			Expect(m.poll(10)).To(BeEmpty(), "not for ever")
		})

		It("in pages, and a change between two pages is in the next list", func() {
			var ids []string
			for i := range 5 {
				anotherMillisecond()
				ids = append(ids, s.do("POST", slotPath, slotBody(float64(i))).created(slotID))
			}
			var first changes
			s.do("GET", changesPath+"?pageSize=2", "").ok().decode(&first)
			Expect(first.Meta.More).To(BeTrue())
			Expect(s.do("DELETE", slotPath+"/"+ids[0], "").status).To(Equal(http.StatusNoContent))
			m := newMirror(s)
			m.cursor = first.Meta.Next
			m.polls = 1 // the next poll is of the first server: another one may not have seen the deletion yet
			Expect(m.poll(2)).To(Equal([]string{ids[2], ids[1]}), "the newest version of the first slot is of later")
			Eventually(func() []string { return m.poll(2) }).Should(ContainElement(ids[0]))
			Expect(m.slots).To(HaveKeyWithValue(ids[0], ""))
		})

		It("only with a cursor of the list, the site and the caller", func(ctx SpecContext) {
			s.do("POST", slotPath, slotBody(9))
			next := url.QueryEscape(read("").Meta.Next)
			other := newSite(ctx)
			for _, a := range []answer{
				s.do("GET", changesPath+"?since=nonsense", ""), s.do("GET", changesPath+"?since="+next, "", with("X-Caller", "ann")), other.do("GET", changesPath+"?since="+next, ""),
				s.do("GET", changesPath+"?since=2031-03-01", ""),
			} {
				Expect(a.status).To(Equal(http.StatusBadRequest), a.body)
				Expect(a.errs()).To(Equal([]string{"parameter since invalid_value"}))
			}
			Expect(s.do("GET", changesPath+"?pageSize=0&sort=x&since=&since=", "").errs()).To(Equal([]string{"parameter pageSize out_of_range", "parameter since repeated_parameter", "parameter sort unknown_parameter"}))
			for _, size := range []string{"501", "%2B5", "05", "1e1"} {
				Expect(s.do("GET", changesPath+"?pageSize="+size, "").errs()).To(Equal([]string{"parameter pageSize out_of_range"}), size)
			}
			Expect(s.do("GET", changesPath, "", with("X-Caller", "no-list")).status).To(Equal(http.StatusForbidden))
			Expect(s.do("POST", changesPath, "{}").status).To(Equal(http.StatusMethodNotAllowed))
		})

		It("and a client that polls during writes at all servers misses none", func(ctx SpecContext) {
			const writers, rounds = 8, 20
			var group sync.WaitGroup
			writing, done := context.WithCancel(ctx)
			for w := range writers {
				group.Go(func() {
					defer GinkgoRecover()
					do := func(method, path, body string) answer {
						a, err := s.send(w%replicas, method, path, body)
						Expect(err).NotTo(HaveOccurred())
						return a
					}
					var own []string
					for i := range rounds {
						switch {
						case len(own) < 2 || rand.IntN(3) == 0:
							own = append(own, do("POST", slotPath, slotBody(float64(i))).created(slotID))
						case rand.IntN(2) == 0:
							do("PATCH", slotPath+"/"+own[0], fmt.Sprintf(`{"notes":"%d"}`, i)).ok()
						default:
							Expect(do("DELETE", slotPath+"/"+own[0], "").status).To(Equal(http.StatusNoContent))
							own = own[1:]
						}
					}
				})
			}
			go func() {
				group.Wait()
				done()
			}()
			m := newMirror(s)
			for writing.Err() == nil {
				m.poll(7)
			}
			// current returns the slots of the first server, which may not have seen all writes of the other one yet.
			current := func() map[string]string {
				tags := map[string]string{}
				for page := 0; ; page++ {
					ids := s.do("GET", fmt.Sprintf("%s?pageSize=100&page=%d", slotPath, page), "").ids(slotID)
					for _, id := range ids {
						tags[id] = s.do("GET", slotPath+"/"+id, "").header.Get("ETag")
					}
					if len(ids) == 0 {
						return tags
					}
				}
			}
			Eventually(func(g Gomega) {
				m.poll(7)
				live := map[string]string{}
				for id, tag := range m.slots {
					if tag != "" {
						live[id] = tag
					}
				}
				g.Expect(live).To(Equal(current()))
			}).Within(time.Minute).Should(Succeed())
		})
	})
})
