package ahds_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/access/gate/gatetest"
	"github.com/paddock-health/paddock/apiserver/ahds"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/settings"
)

// fullLog is the storage of an audit log that can be made to fail.
type fullLog struct {
	audit.Storage
	full atomic.Bool
}

func (f *fullLog) Append(ctx context.Context, entries []*audit.Entry) error {
	if f.full.Load() {
		return errors.New("full for the test")
	}
	return f.Storage.Append(ctx, entries)
}

// appended counts the entries of writes that the log appends. The engine stores the others with the writes.
type appended struct {
	audit.Storage
	writes atomic.Int64
}

func (*appended) StoresWithWrites() {}

func (a *appended) Append(ctx context.Context, entries []*audit.Entry) error {
	for _, e := range entries {
		if e.Action != audit.Read && e.Action != audit.Execute {
			a.writes.Add(1)
		}
	}
	return a.Storage.Append(ctx, entries)
}

// audited returns the site at a server that records its requests in an audit log.
func (s site) audited(storage audit.Storage) site {
	GinkgoHelper()
	log := audit.NewLog("test", storage, audit.Settings{})
	DeferCleanup(func(ctx context.Context) { log.Close(ctx) })
	config := newConfig(0, ahds.Streams{})
	config.Audit = &audit.Auditor{Now: time.Now}
	admit := config.Admit
	config.Admit = func(r *http.Request, siteID string) (ahds.DataStore, access.Caller, error) {
		site, caller, err := admit(r, siteID)
		recorder := audit.From(r.Context())
		recorder.At(site.Audit)
		recorder.Caller(caller)
		return site, caller, err
	}
	handler, err := ahds.New(config)
	Expect(err).NotTo(HaveOccurred())
	server := httptest.NewServer(handler)
	DeferCleanup(server.Close)
	s.bases[0] = server.URL + "/site/" + s.id + "/ahds/v1"
	openSites[0].Store(s.id, ahds.DataStore{
		Settings: settings.Settings{ID: s.id}, BaseURL: s.bases[0], Store: audit.Observe(gatetest.Everything(noRecords{s.stores[0]})),
		Events: newSource(s.id), Audit: audit.Sink{ID: s.id, Log: log},
	})
	return s
}

var _ = Describe("A site whose audit log cannot be written", func() {
	onBoth("refuses requests before anything is written", func(newSite func(context.Context, ...wrapper) site) {
		It("to slots and events, until it can", func(ctx SpecContext) {
			s := newSite(ctx)
			storage := &fullLog{Storage: s.stores[0].(interface{ Audit() audit.Storage }).Audit()}
			s = s.audited(storage)
			id := s.do("POST", slotPath, slotBody(9)).created(slotID)
			refused := func(a answer) answer {
				GinkgoHelper()
				Expect(a.status).To(Equal(http.StatusServiceUnavailable), a.body)
				Expect(a.json()).To(HaveKeyWithValue("code", "audit_unavailable"))
				Expect(a.header.Get("Retry-After")).To(Equal("5"))
				return a
			}
			storage.full.Store(true)
			Expect(refused(s.do("POST", slotPath, slotBody(12))).body).To(ContainSubstring("may have succeeded"))
			for _, a := range []answer{
				s.do("POST", slotPath+"/"+id+"/book", ""), s.do("PATCH", slotPath+"/"+id, `{"notes":"x"}`), s.do("DELETE", slotPath+"/"+id, ""),
				s.do("POST", acceptPath, `{"type":"user.created","subject":"user/1","data":{"a":1}}`), s.do("GET", slotPath, ""), s.do("GET", slotPath+"/"+id, ""),
			} {
				Expect(refused(a).body).NotTo(ContainSubstring("may have succeeded"))
			}
			storage.full.Store(false)
			Eventually(func() int { return s.do("GET", slotPath+"/"+id, "").status }).WithContext(ctx).Should(Equal(http.StatusOK))
			slot := s.do("GET", slotPath+"/"+id, "").json()
			Expect(slot).To(HaveKeyWithValue("isBooked", false))
			Expect(slot).NotTo(HaveKeyWithValue("notes", "x"))
		})
	})
})

var _ = Describe("The entry of a write in the audit log", func() {
	It("comes from the write itself, in Postgres", func(ctx SpecContext) {
		s := newSite(ctx, "Postgres")
		log := s.stores[0].(interface{ Audit() audit.Storage }).Audit()
		storage := &appended{Storage: log}
		s = s.audited(storage)
		id := s.do("POST", slotPath, slotBody(9)).created(slotID)
		before := storage.writes.Load() // 1 if there was no partition of today
		made := s.do("POST", slotPath, slotBody(12))
		second := made.created(slotID)
		for _, each := range []struct {
			method, path, body string
			status             int
		}{
			{"PATCH", id, `{"notes":"x"}`, http.StatusOK},
			{"POST", id + "/book", "{}", http.StatusOK},
			{"POST", id + "/release", "", http.StatusOK},
			{"POST", id + "/hold", `{"ttlSeconds":60}`, http.StatusOK},
			{"PUT", second, strings.Replace(made.body, `"isActive":true`, `"isActive":false`, 1), http.StatusOK},
			{"DELETE", second, "", http.StatusNoContent},
		} {
			a := s.do(each.method, slotPath+"/"+each.path, each.body)
			Expect(a.status).To(Equal(each.status), "%s %s: %s", each.method, each.path, a.body)
		}
		Expect(storage.writes.Load()).To(Equal(before))
		entries, err := log.Search(ctx, audit.Query{Count: 100})
		Expect(err).NotTo(HaveOccurred())
		var got []string
		for _, e := range entries {
			got = append([]string{fmt.Sprintf("%s %s %d", e.Interaction, e.Records, e.Status)}, got...)
		}
		first, last := "AvailabilitySlot/"+id, "AvailabilitySlot/"+second
		Expect(got).To(Equal([]string{
			"create " + first + " 201", "create " + last + " 201", "patch " + first + " 200", "update " + first + " 200", "update " + first + " 200",
			"update " + first + " 200", "update " + last + " 200", "delete " + last + " 204",
		}))
	})

	It("is one for all slots that are generated", func(ctx SpecContext) {
		s := newSite(ctx, "Postgres")
		log := s.stores[0].(interface{ Audit() audit.Storage }).Audit()
		s = s.audited(log)
		Expect(s.do("POST", generatePath, weekOf()).status).To(Equal(http.StatusOK))
		entries, err := log.Search(ctx, audit.Query{Count: 100})
		Expect(err).NotTo(HaveOccurred())
		Expect(entries).To(HaveLen(1))
	})
})
