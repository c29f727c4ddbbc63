// Package gatetest opens gates for tests of the facades that use them.
package gatetest

import (
	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/access/gate"
	"github.com/paddock-health/paddock/apiserver/access/privacy"
	"github.com/paddock-health/paddock/apiserver/events"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Everything returns a gate that hides nothing, as for a caller with the verb "privileged" on every
// type of a site without privacy rules.
func Everything(s store.Store) store.Restricted { return open(s, everything, nil, nil) }

// WithEvents is like Everything, but the gate also adds to each write the events that source creates
// for it.
func WithEvents(s store.Store, source *events.Source) store.Restricted {
	return open(s, everything, nil, source.Of)
}

var everything = &privacy.View{
	Rules:  &privacy.Rules{},
	Rights: func(string) (privacy.Rights, error) { return privacy.Rights{Privileged: true}, nil },
	Reads:  Reads,
}

// Open returns a gate that shows what a view allows. bases are the base URLs of the site.
func Open(s store.Store, view *privacy.View, bases ...string) store.Restricted {
	return open(s, view, bases, nil)
}

func open(s store.Store, view *privacy.View, bases []string, of func(store.Op) (func(store.Change) []store.Event, error)) store.Restricted {
	opened, err := gate.New(s, gate.Options{
		View: view, Labels: fhir.LabelsOf, Bases: bases, Events: of,
		Protects: func(recordType string) bool {
			_, known := r4.TypeOf(recordType)
			return known
		},
		Unprivileged: func(recordType string) error {
			kind, _ := r4.TypeOf(recordType)
			return &access.ForbiddenError{Caller: view.Caller.Name, Action: access.Action{Verb: "privileged", Group: r4.Group, Resource: kind.Resource}}
		},
	})
	if err != nil {
		panic(err) // a mistake in the test
	}
	return opened
}

// Reads is the privacy.View.Reads of a caller who may read records of all types.
func Reads(string) (bool, error) { return true, nil }
