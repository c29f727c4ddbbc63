package server

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/access/privacy"
	"github.com/paddock-health/paddock/apiserver/events"
	"github.com/paddock-health/paddock/apiserver/settings"
	"github.com/paddock-health/paddock/apiserver/sites"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/webhookstore"
)

// errWritten is returned for a write that reached the store.
var errWritten = errors.New("written")

type writeOnly struct{ store.Store }

func (writeOnly) Write(context.Context, []store.Op) ([]store.Result, error) { return nil, errWritten }

type privileged struct{}

func (privileged) Authorize(context.Context, access.Caller, access.Tenant, access.Action) error {
	return nil
}

// TestEveryStoreMakesEvents opens the store of a Site as each API does. Until the webhooks are listed,
// only writes that cause events are refused.
func TestEveryStoreMakesEvents(t *testing.T) {
	objects, err := webhookstore.New(&rest.Config{Host: "http://127.0.0.1:1"}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	a := &admission{resources: objects, rights: privileged{}}
	site := sites.ServedSite{Store: writeOnly{}, Settings: settings.Settings{
		ID: "demo", Privacy: &privacy.Rules{},
		EventTypes: map[string]events.Mapping{"Practitioner": {Created: "user.created"}, "AvailabilitySlot": {Updated: "appointment.updated"}},
	}}
	caller := access.Caller{Name: "ann"}
	for name, open := range map[string]func() (store.Restricted, error){
		"for a caller":     func() (store.Restricted, error) { return a.openGate(t.Context(), site, caller, "") },
		"without a caller": func() (store.Restricted, error) { return a.closedGate(site) },
	} {
		t.Run(name, func(t *testing.T) {
			opened, err := open()
			if err != nil {
				t.Fatal(err)
			}
			for recordType, want := range map[string]error{"AvailabilitySlot": store.ErrUnavailable, "EventGroup": errWritten} {
				_, err := opened.Write(t.Context(), []store.Op{{Kind: store.Put, Key: store.Key{Type: recordType, ID: "1"}}})
				if !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", recordType, err, want)
				}
			}
		})
	}
	opened, err := a.openGate(t.Context(), site, caller, "")
	if err != nil {
		t.Fatal(err)
	}
	for recordType, want := range map[string]error{"Practitioner": store.ErrUnavailable, "Patient": errWritten} {
		_, err := opened.Write(t.Context(), []store.Op{{Kind: store.Put, Key: store.Key{Type: recordType, ID: "1"}}})
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", recordType, err, want)
		}
	}
}
