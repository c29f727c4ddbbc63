package main

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// TestMetricsOfBothRegistries reads the page of a process with the aggregated API and of one
// without. Both registries tell of the process.
func TestMetricsOfBothRegistries(t *testing.T) {
	for serve, want := range map[string]bool{serveFacade: false, serveAggregated: true, serveFacade + "," + serveAggregated: true} {
		t.Run(serve, func(t *testing.T) {
			o := &options{serve: serveList{}}
			if err := o.serve.set(serve); err != nil {
				t.Fatal(err)
			}
			answer := httptest.NewRecorder()
			(&server{options: o}).healthHandler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			page := answer.Body.String()
			if answer.Code != http.StatusOK {
				t.Fatalf("answered %d: %s", answer.Code, page)
			}
			families, series := map[string]bool{}, map[string]bool{}
			for _, found := range regexp.MustCompile(`(?m)^# TYPE (\S+) `).FindAllStringSubmatch(page, -1) {
				if families[found[1]] {
					t.Errorf("%s is there twice", found[1])
				}
				families[found[1]] = true
			}
			for line := range strings.Lines(page) {
				name, _, _ := strings.Cut(line, " ")
				if name != "#" && series[name] {
					t.Errorf("%s is there twice", name)
				}
				series[name] = true
			}
			for name, want := range map[string]bool{
				"go_goroutines": true, "process_cpu_seconds_total": true, "registered_metrics_total": want,
			} {
				if families[name] != want {
					t.Errorf("%s is there: %v, want %v", name, families[name], want)
				}
			}
		})
	}
}
