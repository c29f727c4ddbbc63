package fhir

import (
	"net/http"
	"testing"
	"time"
)

func TestAcceptedLag(t *testing.T) {
	for field, want := range map[string]time.Duration{
		"":                                     0,
		"max-stale=5":                          5 * time.Second,
		`Max-Stale="5"`:                        5 * time.Second,
		"no-transform , max-stale=5":           5 * time.Second,
		"max-stale=5, max-stale=3":             3 * time.Second,
		"max-stale=5, max-stale=bad":           0,
		"max-stale=99999999999999999999":       (1<<31 - 1) * time.Second,
		"max-stale":                            0,
		"max-stale=-1":                         0,
		"max-stale=1.5":                        0,
		"max-stale=5, no-cache":                0,
		"no-store, max-stale=5":                0,
		"max-age=3":                            0,
		"max-age=3, max-stale=5":               3 * time.Second,
		"max-stale=5, max-age=0":               0,
		"max-stale=5, max-age=9":               5 * time.Second,
		"min-fresh=5":                          0,
		"private=\"max-stale\", x-max-stale=5": 0,
	} {
		if got := acceptedLag(http.Header{"Cache-Control": {field}}); got != want {
			t.Errorf("%q: got %v, want %v", field, got, want)
		}
	}
	if got := acceptedLag(http.Header{"Cache-Control": {"max-stale=5", "max-age=2"}}); got != 2*time.Second {
		t.Errorf("two fields: got %v, want 2s", got)
	}
}

func TestSetAge(t *testing.T) {
	for lag, want := range map[time.Duration]string{0: "", 1: "1", time.Second: "1", time.Second + 1: "2"} {
		header := http.Header{}
		setAge(header, lag)
		if got := header.Get("Age"); got != want {
			t.Errorf("lag %v: got %q, want %q", lag, got, want)
		}
	}
}
