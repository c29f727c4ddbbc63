package gate_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-health/paddock/apiserver/access/gate/gatetest"
	"github.com/paddock-health/paddock/apiserver/access/privacy"
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

// searched is a store that keeps the query of the last search.
type searched struct {
	store.Store
	query store.Query
}

func (s *searched) Search(_ context.Context, query store.Query) (store.Page, error) {
	s.query = query
	return store.Page{}, nil
}

// TestSearchKnowsTheSite follows absolute links to records of the site, also if the query has no bases.
func TestSearchKnowsTheSite(t *testing.T) {
	const base = "https://h/site/demo/fhir"
	view := &privacy.View{
		Rules:  &privacy.Rules{},
		Rights: func(string) (privacy.Rights, error) { return privacy.Rights{}, nil },
		Reads:  gatetest.Reads,
	}
	behind := &searched{}
	query := store.Query{Types: []string{"Device"}, Access: store.Access{"Device": store.All{}}}
	if _, err := gatetest.Open(behind, view, base).Search(t.Context(), query); err != nil || !slices.Equal(behind.query.Bases, []string{base}) {
		t.Errorf("the store searches with the bases %q, error %v, want %q", behind.query.Bases, err, base)
	}
}
