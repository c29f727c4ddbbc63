package fhir_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/access/gate/gatetest"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/extraction"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/keyring"
	"github.com/paddock-health/paddock/apiserver/settings"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// discarded takes entries and stores none.
type discarded struct{ audit.Storage }

func (discarded) Append(context.Context, []*audit.Entry) error { return nil }
func (discarded) Trim(context.Context, time.Duration) error    { return nil }

// allowed lets everybody do everything.
type allowed struct{}

func (allowed) Authorize(context.Context, access.Caller, access.Tenant, access.Action) error {
	return nil
}

// BenchmarkAudit measures how much processor time the audit log adds to this process, which does
// not include Postgres. Each round sends the same number of requests with stored entries, with
// discarded entries, and without an audit log.
func BenchmarkAudit(b *testing.B) {
	ctx := b.Context()
	server, err := localpostgres.Start(ctx, localpostgres.Options{Dir: b.TempDir(), UnsafeNoFsync: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = server.Stop() })
	conn, err := pgx.Connect(ctx, server.URL("postgres"))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := schema.Migrate(ctx, conn); err != nil {
		b.Fatal(err)
	}
	_ = conn.Close(ctx)
	pool, err := postgres.Connect(context.Background(), server.URL("postgres"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	site, err := postgres.Open(ctx, pool, uuid.NewString(), postgres.Options{Extractor: extraction.Extractor{}})
	if err != nil {
		b.Fatal(err)
	}
	lines := audit.NewLines(io.Discard)
	b.Cleanup(lines.Close)
	variants := map[string]http.Handler{}
	for name, storage := range map[string]audit.Storage{"stored": site.Audit(), "discarded": discarded{}, "none": nil} {
		variants[name] = benchmarked(b, fhir.Endpoint{
			Settings: settings.Settings{ID: "demo", UpdateCreate: true},
			BaseURL:  "https://h.example/site/demo/fhir", Store: gatetest.Everything(site),
		}, storage, lines)
	}
	for n := range 50 {
		send(b, variants["none"], "PUT", fmt.Sprintf("/patient/p%d", n), `{"resourceType":"Patient","id":"p`+fmt.Sprint(n)+`","gender":"male"}`)
	}
	number := 0
	for name, request := range map[string]func(http.Handler){
		"read":   func(h http.Handler) { send(b, h, "GET", "/patient/p1", "") },
		"search": func(h http.Handler) { send(b, h, "GET", "/patient?gender=male&_count=20", "") },
		"write": func(h http.Handler) {
			number++
			send(b, h, "PUT", "/patient/p2", fmt.Sprintf(`{"resourceType":"Patient","id":"p2","name":[{"text":"%d"}]}`, number))
		},
	} {
		b.Run(name, func(b *testing.B) {
			const batch = 100
			spent, took := map[string]time.Duration{}, map[string]time.Duration{}
			for b.Loop() {
				for variant, handler := range variants {
					began, before := time.Now(), processorTime(b)
					for range batch {
						request(handler)
					}
					spent[variant] += processorTime(b) - before
					took[variant] += time.Since(began)
				}
			}
			for _, against := range []string{"discarded", "none"} {
				b.ReportMetric(float64(spent["stored"])/float64(spent[against]), "processor-time/"+against)
				b.ReportMetric(float64(took["stored"])/float64(took[against]), "time/"+against)
			}
		})
	}
}

// benchmarked is a facade of one site whose entries go to a storage; nil: there are none.
func benchmarked(b *testing.B, site fhir.Endpoint, storage audit.Storage, lines *audit.Lines) http.Handler {
	b.Helper()
	config := fhir.Config{
		Find: func(*http.Request, string) (fhir.Endpoint, error) { return site, nil }, Authorizer: allowed{}, TokenKeys: keyring.Fixed(make([]byte, 32)),
		Log: slog.New(slog.DiscardHandler),
	}
	var log *audit.Log
	if storage != nil {
		log = audit.NewLog("demo", storage, audit.Settings{})
		b.Cleanup(func() { log.Close(context.Background()) })
		site.Store = audit.Observe(site.Store)
		config.Audit = &audit.Auditor{Lines: lines, Now: time.Now}
	}
	config.Admit = func(r *http.Request, _ string) (fhir.Endpoint, access.Caller, error) {
		caller := access.Caller{Name: "system:serviceaccount:demo:editor"}
		recorder := audit.From(r.Context())
		recorder.At(audit.Sink{ID: "demo", Log: log})
		recorder.Caller(caller)
		return site, caller, nil
	}
	handler, err := fhir.New(config)
	if err != nil {
		b.Fatal(err)
	}
	return handler
}

func send(b *testing.B, handler http.Handler, method, path, body string) {
	b.Helper()
	r := httptest.NewRequest(method, "/site/demo/fhir"+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if w.Code >= http.StatusBadRequest {
		b.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
}

// processorTime is what this process has used.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
