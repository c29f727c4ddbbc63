package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/pprof"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics/legacyregistry"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// version is set by the linker.
var version = "unknown"

// readiness says whether requests would succeed as far as this process goes: one
// site's trouble is that site's 503, never the process's.
type readiness struct {
	mu                      sync.Mutex
	sites, records, stopped bool
	// aggregatedStarting is set where the aggregated API is to be served and is not yet.
	aggregatedStarting bool
}

func (r *readiness) sitesKnown()   { r.set(&r.sites) }
func (r *readiness) recordsKnown() { r.set(&r.records) }
func (r *readiness) stop()         { r.set(&r.stopped) }

func (r *readiness) aggregatedStarted() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.aggregatedStarting = false
}

// knowsSites reports whether a site that is not found does not exist.
func (r *readiness) knowsSites() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sites
}

func (r *readiness) set(flag *bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*flag = true
}

// missing names what the process still waits for.
func (r *readiness) missing() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var missing []string
	if r.stopped {
		missing = append(missing, "the process is stopping")
	}
	if !r.sites {
		missing = append(missing, "the sites are being listed")
	}
	if !r.records {
		missing = append(missing, "the search index is being built")
	}
	if r.aggregatedStarting {
		missing = append(missing, "the aggregated API is starting")
	}
	return missing
}

func (s *server) healthHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if missing := s.ready.missing(); len(missing) > 0 {
			answer(w, http.StatusServiceUnavailable, strings.Join(missing, "\n"))
			return
		}
		answer(w, http.StatusOK, "ok")
	})
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		info := map[string]string{"version": version}
		if build, ok := debug.ReadBuildInfo(); ok {
			info["goVersion"] = build.GoVersion
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(info)
	})
	if s.options.profiling {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.gatherer(), promhttp.HandlerOpts{}))
	return mux
}

// gatherer has the process's metrics: ours and, with the aggregated API, those that its library
// counts in a registry of its own. What both have, such as the process's memory, is ours.
func (s *server) gatherer() prometheus.Gatherer {
	if !s.options.serve[serveAggregated] {
		return metrics.Registry
	}
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		ours, err := metrics.Registry.Gather()
		theirs, theirErr := legacyregistry.DefaultGatherer.Gather()
		known := map[string]bool{}
		for _, family := range ours {
			known[family.GetName()] = true
		}
		theirs = slices.DeleteFunc(theirs, func(family *dto.MetricFamily) bool { return known[family.GetName()] })
		return append(ours, theirs...), errors.Join(err, theirErr)
	})
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}

// measureIndex shows how far the search index is.
func (s *server) measureIndex() {
	factory := promauto.With(metrics.Registry)
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "paddock_index_records", Help: "Records of all sites in the search index, tombstones included.",
	}, func() float64 { return float64(s.engine.Indexed()) })
	factory.NewCounterFunc(prometheus.CounterOpts{
		Name: "paddock_reindex_records_total", Help: "Records in Postgres looked at to bring their index to this release.",
	}, func() float64 { return float64(s.sites.Reindexed()) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "paddock_index_complete", Help: "1 once the search index holds all records that existed at the start.",
	}, func() float64 {
		select {
		case <-s.engine.Synced():
			return 1
		default:
			return 0
		}
	})
}
