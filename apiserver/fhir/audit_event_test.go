package fhir_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/keyring"
)

// storageOf returns the storage of the audit log of a site of the suite.
func storageOf(s site) audit.Storage {
	return s.raw.(interface{ Audit() audit.Storage }).Audit()
}

// breakable is a storage that can be made to fail.
type breakable struct {
	audit.Storage
	broken atomic.Bool
}

func (b *breakable) Append(ctx context.Context, entries []*audit.Entry) error {
	if b.broken.Load() {
		return errors.New("broken for the test")
	}
	return b.Storage.Append(ctx, entries)
}

func (b *breakable) wrap(storage audit.Storage) audit.Storage {
	b.Storage = storage
	return b
}

// breakableAppend is a breakable storage that only fails to append: the engine stores the entries of writes.
type breakableAppend struct{ *breakable }

func (breakableAppend) StoresWithWrites() {}

func (b breakableAppend) wrap(storage audit.Storage) audit.Storage {
	b.Storage = storage
	return b
}

// audited is a site whose requests are recorded, at a server of its own.
type audited struct {
	site
	log *audit.Log
}

// newAudited serves one site. A request without X-Caller has no token. wrap returns the storage of the log for
// that of the engine.
func newAudited(ctx context.Context, open func(context.Context, ...func(*fhir.Endpoint)) site, settings audit.Settings, wrap ...func(audit.Storage) audit.Storage) audited {
	GinkgoHelper()
	var served fhir.Endpoint
	made := open(ctx, func(s *fhir.Endpoint) { served = *s })
	storage := storageOf(made)
	for _, wrap := range wrap {
		storage = wrap(storage)
	}
	a := audited{made, audit.NewLog("test", storage, settings)}
	DeferCleanup(func(ctx context.Context) { a.log.Close(ctx) })
	served.Store, served.AuditLog = audit.Observe(served.Store), storage
	handler, err := fhir.New(fhir.Config{
		Admit: func(r *http.Request, siteID string) (fhir.Endpoint, access.Caller, error) {
			if siteID != served.ID {
				return fhir.Endpoint{}, access.Caller{}, access.ErrSiteHidden
			}
			recorder, caller := audit.From(r.Context()), access.Caller{Name: r.Header.Get("X-Caller")}
			recorder.At(audit.Sink{ID: served.ID, Log: a.log})
			if caller.Name == "" {
				return fhir.Endpoint{}, access.Caller{}, &access.TokenError{Description: "the request has no bearer token"}
			}
			recorder.Caller(caller)
			return served, caller, nil
		},
		Find:       func(*http.Request, string) (fhir.Endpoint, error) { return served, nil },
		Authorizer: rights{}, TokenKeys: keyring.Fixed(make([]byte, 32)), Log: slog.New(slog.NewTextHandler(GinkgoWriter, nil)),
		Audit: &audit.Auditor{Now: time.Now},
	})
	Expect(err).NotTo(HaveOccurred())
	listening := httptest.NewServer(handler)
	DeferCleanup(listening.Close)
	a.base = listening.URL + "/site/" + served.ID + "/fhir"
	served.BaseURL = a.base
	return a
}

// events searches the log as an auditor does, and returns a line for each event, newest first.
func (a audited) events(query string) []string {
	GinkgoHelper()
	found := a.do("GET", "/AuditEvent?_count=1000&"+query, "", with("X-Caller", "auditor"))
	Expect(found.status).To(Equal(http.StatusOK), found.body)
	expectValid(found)
	var lines []string
	for _, entry := range found.json().entries() {
		text, err := json.Marshal(entry["resource"])
		Expect(err).NotTo(HaveOccurred())
		_, err = r4.Read(text, r4.Options{Type: "AuditEvent"})
		Expect(err).NotTo(HaveOccurred(), string(text))
		lines = append(lines, summary(text))
	}
	return lines
}

// summary is an AuditEvent on one line: caller, interaction, action, outcome, records, rule.
func summary(text []byte) string {
	GinkgoHelper()
	var event struct {
		Subtype []struct{ Code string }
		Action  string
		Outcome string
		Agent   []struct {
			Who struct{ Identifier struct{ Value string } }
		}
		Entity []struct {
			What   struct{ Reference string }
			Detail []struct{ Type, ValueString string }
		}
	}
	Expect(json.Unmarshal(text, &event)).To(Succeed())
	parts := []string{event.Agent[0].Who.Identifier.Value}
	if len(event.Subtype) > 0 {
		parts = append(parts, event.Subtype[0].Code)
	}
	parts = append(parts, event.Action, event.Outcome)
	for _, entity := range event.Entity {
		if entity.What.Reference != "" {
			parts = append(parts, entity.What.Reference)
		}
		for _, detail := range entity.Detail {
			if detail.Type == "rule" || detail.Type == "parameters" {
				parts = append(parts, detail.Type+":"+detail.ValueString)
			}
		}
	}
	return strings.Join(parts, " ")
}

var auditEngines = map[string]func(context.Context, ...func(*fhir.Endpoint)) site{"Cluster": newSite, "Postgres": newPostgresSite}

var _ = Describe("The audit log", func() {
	for name, open := range auditEngines {
		It("has every access, in "+name, func(ctx context.Context) {
			a := newAudited(ctx, open, audit.Settings{Parameters: true})
			as := func(caller, method, path, body string, options ...option) {
				GinkgoHelper()
				a.do(method, path, body, append(options, with("X-Caller", caller))...)
			}
			as("vet", "PUT", "/patient/rex", luna)
			as("vet", "PUT", "/patient/ace", luna)
			as("reader", "GET", "/Patient/REX", "")
			as("reader", "GET", "/patient/rex/_history", "")
			as("reader", "GET", "/patient?_id=rex,ace&_sort=_id", "")
			as("reader", "GET", "/patient/ghost", "")
			as("no-get", "GET", "/patient/rex", "")
			a.do("GET", "/patient/rex", "")
			as("vet", "GET", "/patient/rex/_history/1", "", with("Paddock-Break-Glass", "an emergency"))
			as("vet", "DELETE", "/patient/ace", "")
			as("vet", "POST", "", bundleOf("batch", asks("GET", "Patient/rex", ""), asks("GET", "Patient/none", ""), asks("DELETE", "Patient/ace", "")))
			a.do("GET", "/metadata", "")
			others := func() []string {
				return slices.DeleteFunc(a.events(""), func(line string) bool { return strings.HasPrefix(line, "auditor") })
			}
			Eventually(others).WithContext(ctx).Should(HaveLen(14))
			all := others()
			Expect(all[len(all)-10:]).To(Equal([]string{
				"vet delete D 0 Patient/ace",
				"vet vread R 0 Patient/rex",
				" read R 4 Patient/rex rule:token",
				"no-get read R 4 Patient/rex rule:rbac",
				"reader read R 4 Patient/ghost",
				"reader search-type E 0 Patient/ace Patient/rex parameters:_id _sort",
				"reader history-instance R 0 Patient/rex",
				"reader read R 0 Patient/REX",
				"vet update U 0 Patient/ace",
				"vet update U 0 Patient/rex",
			}))
			Expect(all[:len(all)-10]).To(ContainElements(
				"vet read R 0 Patient/rex", "vet read R 4 Patient/none", "vet delete D 0 Patient/ace", "vet batch E 0"))

			By("finding who looked at a record")
			Expect(a.events("entity=Patient/rex&agent=reader")).To(Equal([]string{
				"reader search-type E 0 Patient/ace Patient/rex parameters:_id _sort",
				"reader history-instance R 0 Patient/rex",
				"reader read R 0 Patient/REX",
			}))
			Expect(a.events("entity=" + url.QueryEscape(a.base+"/patient/ghost"))).To(HaveLen(1))
			Expect(a.events("action=D")).To(HaveLen(2))
			Expect(a.events("outcome=4&agent=no-get")).To(HaveLen(1))
			Expect(a.events("outcome=8,12")).To(BeEmpty())
			Expect(a.events("type=rest&subtype=vread")).To(Equal([]string{"vet vread R 0 Patient/rex"}))
			Expect(a.events("type=login")).To(BeEmpty())
			today := time.Now().UTC().Format("2006-01-02")
			Expect(a.events("date=" + today + "&entity=Patient/ghost")).To(HaveLen(1))
			Expect(a.events("date=lt" + today)).To(BeEmpty())
			Expect(a.events("date=ge" + today + "&date=lt" + today)).To(BeEmpty())

			By("recording that it was read")
			Eventually(func() []string { return a.events("agent=auditor&date=" + today) }).WithContext(ctx).
				Should(ContainElement("auditor search-type E 0 parameters:_count agent date"))
		})
	}

	It("has writes of a record with the id history as writes", func(ctx context.Context) {
		a := newAudited(ctx, newSite, audit.Settings{})
		vet := with("X-Caller", "vet")
		const record = `{"resourceType":"Patient","id":"history"}`
		a.do("PUT", "/Patient/history", record, vet)
		a.do("GET", "/Patient/history", "", vet)
		a.do("PATCH", "/patient/history/", `[{"op":"add","path":"/active","value":true}]`, vet, with("Content-Type", "application/json-patch+json"))
		a.do("GET", "/patient/history/history", "", vet)
		a.do("GET", "/Patient/history/_history/", "", vet)
		a.do("GET", "/Patient/h%69story/%68istory", "", vet)
		a.do("GET", "/Patient/_history", "", vet)
		a.do("GET", "/_history", "", vet)
		a.do("DELETE", "/Patient/h%69story", "", vet)
		Eventually(func() []string { return a.events("agent=vet") }).WithContext(ctx).Should(Equal([]string{
			"vet delete D 0 Patient/history",
			"vet history-system R 0 Patient/history",
			"vet history-type R 0 Patient/history",
			"vet history-instance R 0 Patient/history",
			"vet history-instance R 0 Patient/history",
			"vet history-instance R 0 Patient/history",
			"vet patch U 0 Patient/history",
			"vet read R 0 Patient/history",
			"vet update U 0 Patient/history",
		}))

		By("performing a Bundle")
		a.do("POST", "", bundleOf("batch", asks("PUT", "Patient/history", record), asks("GET", "Patient/history/history", "")), vet)
		Expect(a.events("agent=vet&action=U")).To(HaveLen(3))
		Expect(a.events("agent=vet&subtype=history-instance")).To(HaveLen(4))
	})

	It("has the entry of a write from the write itself, in Postgres", func(ctx context.Context) {
		vet := with("X-Caller", "vet")
		storage := breakableAppend{&breakable{}}
		a := newAudited(ctx, newPostgresSite, audit.Settings{}, storage.wrap)
		Expect(a.do("PUT", "/patient/first", luna, vet).status).To(Equal(http.StatusCreated)) // makes the partition of today
		storage.broken.Store(true)
		const chip = "identifier=urn:chip|1"
		var want []string
		for _, each := range []struct {
			method, path, body string
			option             option
			status             int
			entry              string
		}{
			{"PUT", "/patient/Rex", luna, vet, http.StatusCreated, "update U 0 Patient/Rex"},
			{"PUT", "/patient/rex", `{"resourceType":"Patient","id":"Rex"}`, vet, http.StatusOK, "update U 0 Patient/rex"},
			{"PATCH", "/patient/rex", `[{"op":"add","path":"/active","value":true}]`, with("Content-Type", "application/json-patch+json"), http.StatusOK, "patch U 0 Patient/rex"},
			{"POST", "/patient", luna, vet, http.StatusCreated, "create C 0 Patient/"},
			{"POST", "/patient", `{"resourceType":"Patient","identifier":[{"system":"urn:chip","value":"1"}]}`, with("If-None-Exist", chip), http.StatusCreated, "create C 0 Patient/"},
			{"PUT", "/patient?" + chip, `{"resourceType":"Patient","active":true,"identifier":[{"system":"urn:chip","value":"1"}]}`, vet, http.StatusOK, "update U 0 Patient/"},
			{"DELETE", "/patient?" + chip, "", vet, http.StatusOK, "delete D 0 Patient/"},
			{"DELETE", "/patient/rex", "", vet, http.StatusOK, "delete D 0 Patient/rex"},
			{"PUT", "/patient/rex", luna, vet, http.StatusCreated, "update U 0 Patient/rex"},
		} {
			answer := a.do(each.method, each.path, each.body, vet, each.option)
			Expect(answer.status).To(Equal(each.status), "%s %s: %s", each.method, each.path, answer.body)
			want = append([]string{"vet " + each.entry}, want...)
		}
		storage.broken.Store(false)
		events := a.events("agent=vet")
		Expect(events).To(HaveLen(len(want) + 1))
		for i, entry := range want {
			Expect(events[i]).To(HavePrefix(entry))
		}
	})

	It("has each entry of a transaction once, in Postgres", func(ctx context.Context) {
		a := newAudited(ctx, newPostgresSite, audit.Settings{})
		made := a.do("POST", "", bundleOf("transaction", asks("PUT", "Patient/rex", `{"resourceType":"Patient","id":"rex"}`), asks("POST", "Patient", luna)), with("X-Caller", "vet"))
		Expect(made.status).To(Equal(http.StatusOK), made.body)
		events := a.events("agent=vet")
		Expect(events).To(HaveLen(3))
		Expect(events).To(ContainElements("vet update U 0 Patient/rex", HavePrefix("vet create C 0 Patient/"), "vet transaction E 0"))
	})

	It("has pages, and lines of NDJSON", func(ctx context.Context) {
		a := newAudited(ctx, newPostgresSite, audit.Settings{})
		for i := range 7 {
			a.do("GET", fmt.Sprintf("/patient/none-%d", i), "", with("X-Caller", "vet"))
		}
		auditor := with("X-Caller", "auditor")
		whole := a.events("agent=vet")
		Expect(whole).To(HaveLen(7))
		var paged []string
		next := a.base + "/AuditEvent?agent=vet&_count=3"
		for pages := 1; next != ""; pages++ {
			Expect(pages).To(BeNumerically("<=", 3))
			page := a.do("GET", next, "", auditor)
			Expect(page.status).To(Equal(http.StatusOK), page.body)
			for _, entry := range page.json().entries() {
				text, err := json.Marshal(entry["resource"])
				Expect(err).NotTo(HaveOccurred())
				paged = append(paged, summary(text))
			}
			token := next
			next = ""
			for _, each := range page.json()["link"].([]any) {
				if l := each.(map[string]any); l["relation"] == "next" {
					next = l["url"].(string)
				}
			}
			if strings.Contains(token, "_page_token") {
				Expect(a.do("GET", token, "", with("X-Caller", "another")).status).To(Equal(http.StatusBadRequest))
				Expect(a.do("GET", token+"&action=R", "", auditor).status).To(Equal(http.StatusBadRequest))
			}
		}
		Expect(paged).To(Equal(whole))

		for query, n := range map[string]int{"agent=vet": 7, "agent=vet&_count=2": 2, "agent=nobody": 0} {
			lines := a.do("GET", "/AuditEvent?"+query, "", auditor, with("Accept", "application/fhir+ndjson"))
			Expect(lines.status).To(Equal(http.StatusOK), lines.body)
			Expect(lines.header.Get("Content-Type")).To(HavePrefix("application/fhir+ndjson"))
			Expect(strings.Count(lines.body, "\n")).To(Equal(n))
			for line := range strings.Lines(lines.body) {
				_, err := r4.Read([]byte(line), r4.Options{Type: "AuditEvent"})
				Expect(err).NotTo(HaveOccurred(), line)
			}
		}
	})

	It("is for those who may list audit events, and is only searched for", func(ctx context.Context) {
		a := newAudited(ctx, newSite, audit.Settings{})
		refused := a.do("GET", "/AuditEvent", "", with("X-Caller", "lists patients"))
		Expect(refused.status).To(Equal(http.StatusForbidden))
		Expect(refused.body).To(ContainSubstring("list auditevents.r4.fhir.paddock.health"))
		Expect(a.do("GET", "/AuditEvent", "").status).To(Equal(http.StatusUnauthorized))
		auditor := with("X-Caller", "auditor")
		for _, path := range []string{"/AuditEvent", "/AuditEvent/1", "/AuditEvent/_search", "/AuditEvent/1/_history"} {
			for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
				if path != "/AuditEvent" || method != "GET" {
					Expect(a.do(method, path, "", auditor).status).To(Equal(http.StatusMethodNotAllowed), method+" "+path)
				}
			}
		}
		for _, query := range []string{"patient=rex", "_sort=date", "entity=rex", "action=X", "outcome=1", "date=x", "date=ne2026", "_count=x", "_count=0", "agent=", "agent=a&agent=b", "_page_token=x"} {
			answer := a.do("GET", "/AuditEvent?"+query, "", auditor)
			Expect(answer.status).To(Equal(http.StatusBadRequest), query)
		}
	})

	for name, open := range auditEngines {
		It("stops a site that it cannot be written for, unless that continues, in "+name, func(ctx context.Context) {
			vet := with("X-Caller", "vet")
			storage := &breakable{}
			a := newAudited(ctx, open, audit.Settings{}, storage.wrap)
			Expect(a.do("PUT", "/patient/rex", luna, vet).status).To(Equal(http.StatusCreated))
			storage.broken.Store(true)
			first := a.do("PUT", "/patient/first", luna, vet)
			Expect(first.status).To(Equal(http.StatusServiceUnavailable))
			Expect(first.body).To(ContainSubstring("audit_unavailable"))
			Expect(first.body).To(ContainSubstring("may have succeeded"))
			Expect(first.body).NotTo(ContainSubstring("broken for the test"))
			Expect(first.header.Get("ETag")).To(BeEmpty())
			expectValid(first)

			By("refusing writes before they happen, and reads")
			second := a.do("PUT", "/patient/second", luna, vet)
			Expect(second.status).To(Equal(http.StatusServiceUnavailable))
			Expect(second.body).NotTo(ContainSubstring("may have succeeded"))
			for _, path := range []string{"/patient/rex", "/patient", "/patient/ghost"} {
				refused := a.do("GET", path, "", vet)
				Expect(refused.status).To(Equal(http.StatusServiceUnavailable), path)
				Expect(refused.header.Get("Retry-After")).NotTo(BeEmpty())
				Expect(refused.body).NotTo(ContainSubstring("Luna"))
			}
			for path, body := range map[string]string{"/patient/rex/$purge": "", "/$import": `{"resourceType":"Patient","id":"imported"}`, "": bundleOf("batch", asks("PUT", "Patient/bundled", `{"resourceType":"Patient","id":"bundled"}`))} {
				options := []option{vet}
				if path == "/$import" {
					options = append(options, sendNDJSON)
				}
				refused := a.do("POST", path, body, options...)
				Expect(refused.status).To(Equal(http.StatusServiceUnavailable), path)
				Expect(refused.body).To(ContainSubstring("audit_unavailable"), path)
			}
			Expect(a.do("GET", "/$export", "", vet, with("Prefer", "respond-async")).body).To(ContainSubstring("audit_unavailable"))
			storage.broken.Store(false)
			Eventually(func() int { return a.do("GET", "/patient/first", "", vet).status }).WithContext(ctx).Should(Equal(http.StatusOK))
			for _, path := range []string{"/patient/second", "/patient/imported", "/patient/bundled"} {
				Expect(a.do("GET", path, "", vet).status).To(Equal(http.StatusNotFound), "a refused write happened: "+path)
			}
			Expect(a.do("GET", "/patient/rex", "", vet).status).To(Equal(http.StatusOK), "a refused purge happened")
			Expect(a.events("entity=Patient/first&action=U")).To(HaveLen(1), "what was refused is recorded later")

			By("continuing where the Site says so")
			a.log.Configure(audit.Settings{Continue: true})
			storage.broken.Store(true)
			Expect(a.do("PUT", "/patient/third", luna, vet).status).To(Equal(http.StatusCreated))
			Expect(a.do("GET", "/patient/third", "", vet).status).To(Equal(http.StatusOK))
		})
	}
})
