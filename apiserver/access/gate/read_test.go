package gate_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// distant is a store whose reads take a millisecond. The body of a record is its id.
type distant struct{ store.Store }

func (distant) Get(_ context.Context, key store.Key) (store.Record, error) {
	time.Sleep(time.Millisecond)
	return store.Record{Key: key, Version: 1, Body: store.Body{JSON: []byte(key.ID)}}, nil
}

// TestHiddenReadsConcurrently finds the hidden ones of many records, in their order.
func TestHiddenReadsConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var keys, want []store.Key
		for i := range 1000 {
			key := store.Key{Type: "A", ID: fmt.Sprintf("mine-%d", i)}
			if i%10 == 0 {
				key.ID = fmt.Sprintf("theirs-%d", i)
				want = append(want, key)
			}
			keys = append(keys, key)
		}
		began := time.Now()
		hidden, err := restricted(t, distant{}).Hidden(t.Context(), keys)
		if err != nil || !slices.Equal(hidden, want) {
			t.Errorf("got %v, error %v, want %v", hidden, err, want)
		}
		if took := time.Since(began); took > 20*time.Millisecond {
			t.Errorf("1000 reads of a millisecond took %v", took)
		}
	})
}
