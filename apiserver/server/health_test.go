package server

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// TestMetricsOfBothRegistries reads the metrics with and without the aggregated API. Both registries
// have metrics of the process, which must not be repeated.
func TestMetricsOfBothRegistries(t *testing.T) {
	for name, aggregated := range map[string]bool{"without the aggregated API": false, "with the aggregated API": true} {
		t.Run(name, func(t *testing.T) {
			answer := httptest.NewRecorder()
			health := healthServer(Health{}, func() []string { return nil }, gatherer(aggregated))
			health.Handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			page := answer.Body.String()
			if answer.Code != http.StatusOK {
				t.Fatalf("got status %d, want 200: %s", answer.Code, page)
			}
			families, series := map[string]bool{}, map[string]bool{}
			for _, found := range regexp.MustCompile(`(?m)^# TYPE (\S+) `).FindAllStringSubmatch(page, -1) {
				if families[found[1]] {
					t.Errorf("family %s: got it twice, want once", found[1])
				}
				families[found[1]] = true
			}
			for line := range strings.Lines(page) {
				name, _, _ := strings.Cut(line, " ")
				if name != "#" && series[name] {
					t.Errorf("series %s: got it twice, want once", name)
				}
				series[name] = true
			}
			for name, want := range map[string]bool{
				"go_goroutines": true, "process_cpu_seconds_total": true, "registered_metrics_total": aggregated,
			} {
				if families[name] != want {
					t.Errorf("family %s present: got %v, want %v", name, families[name], want)
				}
			}
		})
	}
}
