package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// TestShareOfSessions shows that hanging searches of one site leave sessions of the pool to other
// sites.
func TestShareOfSessions(t *testing.T) {
	config, err := postgres.Config(unhurried(server.URL(database)))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 4
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	busy, other := open(t, pool, uuid.NewString(), planOptions), open(t, pool, uuid.NewString(), planOptions)
	if _, err := other.Write(t.Context(), []store.Op{{Kind: store.Put, Key: numbered(1), Body: store.Body{JSON: []byte(`{}`)}}}); err != nil {
		t.Fatal(err)
	}
	locked, err := shared.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locked.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := locked.Exec(t.Context(), `LOCK TABLE ix_date IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	hanging, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	const searches = 12
	for range searches {
		go func() {
			_, err := busy.Search(hanging, store.Query{Types: []string{patient}, Count: 1, Sort: []store.Sort{{Field: store.SortPeriod, Param: "birthdate"}}})
			ended <- err
		}()
	}
	for since := time.Now(); pool.Stat().AcquiredConns() < 3; time.Sleep(time.Millisecond) {
		if time.Since(since) > 30*time.Second { // a statement ends after a minute
			t.Fatalf("the searches hold %d sessions", pool.Stat().AcquiredConns())
		}
	}
	for range 5 {
		soon, stop := context.WithTimeout(t.Context(), 15*time.Second)
		if _, err := other.Get(soon, numbered(1)); err != nil {
			t.Errorf("another site is not served: %v", err)
		}
		stop()
	}
	cancel()
	for range searches {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("a search that hung ended with %v", err)
		}
	}
}

// TestRestrictedSearchesAreNotBatched shows that a search is not batched if its caller may not see all
// records of the type. It may pass any number of hidden records before it finds a visible one.
func TestRestrictedSearchesAreNotBatched(t *testing.T) {
	t.Parallel()
	site := open(t, shared, uuid.NewString(), planOptions)
	shown := store.Not{Condition: store.HasLabel("hidden")}
	for name, query := range map[string]store.Query{
		"all records":              {Types: []string{patient}, Count: 20},
		"records of an identifier": {Types: []string{patient}, Count: 20, Where: store.TokenIs{Param: "identifier", Code: new("1")}},
	} {
		for _, visible := range []store.Condition{shown, store.All{shown}, store.All{}} {
			query.Access = store.Access{patient: visible}
			got, err := site.IsBatched(t.Context(), query)
			if want := store.IsEverything(visible); err != nil || got != want {
				t.Errorf("%s, of which the caller sees %v: is batched: %t, %v, want %t", name, visible, got, err, want)
			}
		}
	}
}
