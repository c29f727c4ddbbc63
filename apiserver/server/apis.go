package server

import (
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Values of the label "api" of metrics. apiNone is for paths of no API.
const (
	apiFHIR = "fhir"
	apiAHDS = "ahds"
	// apiNative is the native format of exports and imports.
	apiNative = "native"
	apiNone   = "none"
)

// siteAndAPI returns the segments siteId and api of a path /site/{siteId}/{api} or below it. api is
// empty for /site/{siteId}. Both are empty for other paths.
func siteAndAPI(path string) (siteID, api string) {
	below, ofSite := strings.CutPrefix(path, "/site/")
	if !ofSite {
		return "", ""
	}
	siteID, below, _ = strings.Cut(below, "/")
	api, _, _ = strings.Cut(below, "/")
	return siteID, api
}

// apiOf returns the label "api" of a path.
func apiOf(path string) string {
	if _, api := siteAndAPI(path); slices.Contains([]string{apiFHIR, apiAHDS, apiNative}, api) {
		return api
	}
	return apiNone
}

// measured routes requests to the APIs and the portal by path, and counts and times them. The FHIR
// API answers all other paths.
func measured(fhir, ahds, native, portal http.Handler) http.Handler {
	factory := promauto.With(metrics.Registry)
	duration := factory.NewHistogramVec(prometheus.HistogramOpts{
		Name: "paddock_http_request_duration_seconds", Help: "Duration of requests in seconds, by API: fhir, ahds, native, or none for other paths.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
	}, []string{"api", "code", "method"})
	inFlight := factory.NewGauge(prometheus.GaugeOpts{
		Name: "paddock_http_requests_in_flight", Help: "Requests that have no complete response yet.",
	})
	timed := func(api string, next http.Handler) http.Handler {
		return promhttp.InstrumentHandlerDuration(duration.MustCurryWith(prometheus.Labels{"api": api}), next)
	}
	fhir, ahds, native, portal, none := timed(apiFHIR, fhir), timed(apiAHDS, ahds), timed(apiNative, native), timed(apiNone, portal), timed(apiNone, fhir)
	return promhttp.InstrumentHandlerInFlight(inFlight, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch apiOf(r.URL.Path) {
		case apiFHIR:
			fhir.ServeHTTP(w, r)
		case apiAHDS:
			ahds.ServeHTTP(w, r)
		case apiNative:
			native.ServeHTTP(w, r)
		default:
			if isPortal(r.URL.Path) { // portal.go
				portal.ServeHTTP(w, r)
				return
			}
			none.ServeHTTP(w, r)
		}
	}))
}
