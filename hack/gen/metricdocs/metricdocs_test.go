package metricdocs

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/hack/gen/flagdocs"
)

func TestOfFile(t *testing.T) {
	const head = "package p\nvar known = []string{\"a\", \"b\"}\n"
	tests := map[string]struct {
		source  string
		want    []Metric
		failure string
	}{
		"a description":      {source: `var x = prometheus.NewDesc("m_total", "Help.", known, nil)`, want: []Metric{{"m_total", "Help.", "counter", []string{"a", "b"}}}},
		"without labels":     {source: `var x = prometheus.NewDesc("m", "Help.", nil, nil)`, want: []Metric{{"m", "Help.", "gauge", nil}}},
		"options":            {source: `var x = factory.NewGauge(prometheus.GaugeOpts{Name: "m", Help: "Help."})`, want: []Metric{{"m", "Help.", "gauge", nil}}},
		"options and labels": {source: `var x = f.NewHistogramVec(prometheus.HistogramOpts{Name: "m", Help: "Help."}, []string{"c"})`, want: []Metric{{"m", "Help.", "histogram", []string{"c"}}}},
		"another function":   {source: `var x = other.NewGauge(1)`},
		"a computed name":    {source: `var x = prometheus.NewDesc("m"+suffix, "Help.", nil, nil)`, failure: "must be literals"},
		"computed labels":    {source: `var x = prometheus.NewDesc("m", "Help.", append(known, "c"), nil)`, failure: "m: a metric's labels"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file, err := parser.ParseFile(token.NewFileSet(), "p.go", head+test.source, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			got, err := ofFile(file)
			if test.failure != "" {
				if err == nil || !strings.Contains(err.Error(), test.failure) {
					t.Errorf("got error %v, want one with %q", err, test.failure)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("metrics (-want +got), %v:\n%s", err, diff)
			}
		})
	}
}

// TestReference compares docs/reference/metrics.md with the code, and the guide with it.
func TestReference(t *testing.T) {
	metrics, err := Find("../../../apiserver", "../../../controllers", "../../../cmd")
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	page.WriteString("# Metrics\n\nAll metrics with the prefix `paddock_`. `make generate` writes this page from the code. " +
		"The [guide](../guides/metrics.md) says which program has which metric, and how to read them.\n\n| metric | type | labels | |\n|---|---|---|---|\n")
	known := map[string]bool{}
	for _, m := range metrics {
		if !strings.HasPrefix(m.Name, "paddock_") {
			t.Errorf("the metric %q lacks the prefix paddock_", m.Name)
		}
		known[m.Name] = true
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, strings.Join(m.Labels, ", "), m.Help)
	}
	if len(metrics) < 20 {
		t.Errorf("found only %d metrics", len(metrics))
	}
	flagdocs.Compare(t, "../../../docs/reference/metrics.md", page.String())
	guide, err := os.ReadFile("../../../docs/guides/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile("`(paddock_[a-z_]+)").FindAllStringSubmatch(string(guide), -1) {
		if !known[name[1]] {
			t.Errorf("docs/guides/metrics.md has %s, which no code declares", name[1])
		}
	}
}
