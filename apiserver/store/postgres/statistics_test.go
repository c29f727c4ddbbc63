package postgres_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// TestStatisticsAreReadAgain shows that the next search reads the statistics if a client goes away while they are
// read.
func TestStatisticsAreReadAgain(t *testing.T) {
	site := open(t, shared, uuid.NewString(), postgres.Options{})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if due := site.RefreshStatistics(gone); !due {
		t.Error("the statistics of a cancelled search are in use")
	}
	if due := site.RefreshStatistics(t.Context()); due {
		t.Error("the next search has not read the statistics")
	}
}
