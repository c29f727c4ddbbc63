package cluster_test

import (
	"errors"
	"testing"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
)

// slowSite opens a site whose next write stops after its first claim until goOn is closed.
func slowSite(t *testing.T, namespace, key string) (s store.Store, stopped, goOn chan struct{}) {
	stopped, goOn = make(chan struct{}), make(chan struct{})
	engine := newEngine(t, cluster.Options{AfterStep: func(step string) {
		if step != cluster.StepClaims {
			return
		}
		select {
		case stopped <- struct{}{}:
			<-goOn
		case <-goOn: // it has been let go
		}
	}})
	return engine.Open(namespace, key, cluster.DefaultLimits), stopped, goOn
}

// TestClaimsOfRivals shows that two writers of one record can claim the same interval with
// different expiries. The claim of the loser must not end that of the winner.
func TestClaimsOfRivals(t *testing.T) {
	namespace, key := newSite(t)
	s := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	hour := func(id string, expires time.Time) store.Op {
		op := rex(1)
		op.Key.ID = id
		from := time.Date(2031, 3, 1, 9, 0, 0, 0, time.UTC)
		op.Claims = []store.Claim{{Line: "room", From: from, Until: from.Add(time.Hour), Expires: expires}}
		return op
	}
	ends := time.Now().Add(time.Second).UTC().Truncate(time.Millisecond)
	mustWrite(t, s, hour("rex", ends))

	write := func(s store.Store, expires time.Time) chan error {
		done := make(chan error, 1)
		op := hour("rex", expires)
		op.Body, op.If.Version = rex(2).Body, 1
		go func() {
			_, err := s.Write(t.Context(), []store.Op{op})
			done <- err
		}()
		return done
	}
	booking, booked, book := slowSite(t, namespace, key)
	holding, held, hold := slowSite(t, namespace, key)
	winner := write(booking, time.Time{})
	<-booked
	again := time.Now().Add(2 * time.Second).UTC().Truncate(time.Millisecond)
	loser := write(holding, again)
	<-held
	close(book)
	if err := <-winner; err != nil {
		t.Fatal(err)
	}
	close(hold)
	if lost := new(store.PreconditionError); !errors.As(<-loser, &lost) {
		t.Fatal("the error of the loser is no PreconditionError")
	}
	for deadline := again; time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	refused := new(store.ClaimError)
	if _, err := s.Write(t.Context(), []store.Op{hour("mia", time.Time{})}); !errors.As(err, &refused) {
		t.Fatalf("the interval of a record was taken by another: %v", err)
	}
}
