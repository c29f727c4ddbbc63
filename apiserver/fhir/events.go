package fhir

import (
	"github.com/paddock-health/paddock/apiserver/events"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// EventKind describes FHIR resources to package events. The data of an event is the resource as a
// read returns it.
var EventKind = &events.Kind{
	Moment: events.MomentOf,
	Fields: func(body store.Body) []byte { return body.JSON },
	Data: func(change store.Change) events.Text {
		after := change.After
		text, version, updated := r4.AppendGaps(nil, after.Body.JSON, after.Body.IDOffset, after.Body.MetaOffset, after.Key.ID)
		return events.Text{JSON: text, VersionOffset: version, TimeOffsets: []int{updated}}
	},
}
