package cluster

import (
	"errors"
	"testing"

	"github.com/paddock-health/paddock/apiserver/store"
)

// TestHistoryBeforeTheIndex shows that a restricted caller gets no history before the index is filled, which
// would be that of a record without the links that give access to it.
func TestHistoryBeforeTheIndex(t *testing.T) {
	s := &Store{engine: &Cluster{synced: make(chan struct{})}}
	_, err := s.History(t.Context(), store.HistoryQuery{Key: store.Key{Type: "Patient", ID: "rex"}, Access: store.Access{}})
	if !errors.Is(err, store.ErrNotReady) {
		t.Errorf("got %v, want ErrNotReady", err)
	}
}
