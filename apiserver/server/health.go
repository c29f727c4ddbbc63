package server

import (
	"encoding/json"
	"errors"
	"log/slog"
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
	_ "sigs.k8s.io/controller-runtime" // registers the metrics of Go and of the process
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Health configures the probes and metrics of the process.
type Health struct {
	// Address is the address at which probes and metrics are served over plain HTTP, such as :8081.
	Address string
	// Version is the release of the process.
	Version string
	// Profiling selects whether Go profiles are served at /debug/pprof.
	Profiling bool
}

// readiness determines whether the process is ready. It does not depend on the stores of Sites:
// requests to a Site whose store is unavailable get 503. The zero value waits for everything but
// the aggregated API. It is safe for concurrent use.
type readiness struct {
	mu                                sync.Mutex
	sites, records, webhooks, stopped bool
	// aggregatedStarting is set until the aggregated API listens, if the process serves it.
	aggregatedStarting bool
}

func (r *readiness) sitesKnown()    { r.set(&r.sites) }
func (r *readiness) recordsKnown()  { r.set(&r.records) }
func (r *readiness) webhooksKnown() { r.set(&r.webhooks) }
func (r *readiness) stop()          { r.set(&r.stopped) }

func (r *readiness) aggregatedStarted() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.aggregatedStarting = false
}

// knowsSites reports whether all Sites have been listed, so that a Site that is not found does not
// exist.
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

// missing returns a line for each reason why the process is not ready, and none once it is.
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
	if !r.webhooks {
		missing = append(missing, "the webhooks are being listed")
	}
	if r.aggregatedStarting {
		missing = append(missing, "the aggregated API is starting")
	}
	return missing
}

// healthServer returns the server of probes, the version, metrics and, if configured, Go profiles.
// /readyz is 503 while missing returns lines.
func healthServer(config Health, missing func() []string, metrics prometheus.Gatherer) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if still := missing(); len(still) > 0 {
			answer(w, http.StatusServiceUnavailable, strings.Join(still, "\n"))
			return
		}
		answer(w, http.StatusOK, "ok")
	})
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		info := map[string]string{"version": config.Version}
		if build, ok := debug.ReadBuildInfo(); ok {
			info["goVersion"] = build.GoVersion
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(info)
	})
	if config.Profiling {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	return &http.Server{
		Addr: config.Address, Handler: mux,
		ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readHeaderTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug),
	}
}

// gatherer returns the metrics of the process. The library of the aggregated API has a registry of
// its own. If both registries have a metric, such as the process's memory, metrics.Registry wins.
func gatherer(aggregated bool) prometheus.Gatherer {
	if !aggregated {
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

// measureIndex registers metrics of the progress of indexing.
func (s *Server) measureIndex() {
	factory := promauto.With(metrics.Registry)
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "paddock_index_records", Help: "Records of all sites with etcd-backed storage in the search index, without deleted ones.",
	}, func() float64 { return float64(s.config.Engine.Indexed()) })
	factory.NewCounterFunc(prometheus.CounterOpts{
		Name: "paddock_reindex_records_total", Help: "Records in Postgres that were checked for outdated index rows, including those that needed no reindexing.",
	}, func() float64 { return float64(s.config.Sites.Reindexed()) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "paddock_index_complete", Help: "1 once the search index has all records that existed when the process started, 0 before.",
	}, func() float64 {
		select {
		case <-s.config.Engine.Synced():
			return 1
		default:
			return 0
		}
	})
}
