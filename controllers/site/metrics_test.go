package site

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestFollowersTellNothing asks a controller that does not lead: it has no cache of Sites yet.
func TestFollowersTellNothing(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(&Collector{Elected: make(chan struct{})})
	families, err := registry.Gather()
	if err != nil || len(families) > 0 {
		t.Errorf("told %v, %v", families, err)
	}
}
