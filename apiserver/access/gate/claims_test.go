package gate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/paddock-health/paddock/apiserver/access/gate"
	"github.com/paddock-health/paddock/apiserver/access/privacy"
	"github.com/paddock-health/paddock/apiserver/store"
)

// unreadable is a store in which no record can be read.
type unreadable struct{ *changed }

func (unreadable) Get(context.Context, store.Key) (store.Record, error) {
	return store.Record{}, store.ErrUnavailable
}

// TestClaimOfUnreadableHolder shows that an error about a claim does not name its holder if the
// labels of the holder cannot be read.
func TestClaimOfUnreadableHolder(t *testing.T) {
	held := &store.ClaimError{Claim: store.Claim{Line: "line"}, Holder: store.Key{Type: "A", ID: "9"}}
	opened, err := gate.New(unreadable{&changed{refusals: []error{held}}}, gate.Options{
		View: &privacy.View{
			Rules:  &privacy.Rules{},
			Rights: func(string) (privacy.Rights, error) { return privacy.Rights{}, nil },
			Reads:  func(string) (bool, error) { return true, nil },
		},
		Labels:       func(string, store.Body) store.Labels { return store.Labels{} },
		Protects:     func(string) bool { return true },
		Unprivileged: func(string) error { return errors.New("unprivileged") },
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = opened.Write(t.Context(), []store.Op{{Kind: store.Put, Key: store.Key{Type: "A", ID: "1"}}})
	if claimed := new(store.ClaimError); errors.As(err, &claimed) || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v, want %v alone", err, store.ErrUnavailable)
	}
}
