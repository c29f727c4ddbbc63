package postgres_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// TestStatisticsAreReadAgain shows that a client that goes away while the statistics are read does not leave the
// searches of others without them.
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
