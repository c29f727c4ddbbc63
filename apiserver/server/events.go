package server

import (
	"github.com/paddock-health/paddock/apiserver/ahds"
	"github.com/paddock-health/paddock/apiserver/ahds/slot"
	"github.com/paddock-health/paddock/apiserver/events"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/sites"
	"github.com/paddock-health/paddock/apiserver/store"
)

// eventsOf returns the source of a Site's events. All APIs use it.
func (a *admission) eventsOf(site sites.ServedSite) *events.Source {
	return &events.Source{
		SiteID:   site.ID,
		Mappings: site.EventTypes,
		KindOf:   eventKindOf,
		Targets: func(eventType string) ([]string, error) {
			return a.resources.Targets(site.Access.Namespace, eventType)
		},
		Restricts: func(recordType string, body store.Body) bool {
			return isFHIR(recordType) && site.Privacy.Restricts(recordType, fhir.LabelsOf(recordType, body))
		},
	}
}

// eventKindOf returns how events describe records of a type. It is nil for types without events.
func eventKindOf(recordType string) *events.Kind {
	switch {
	case isFHIR(recordType):
		return fhir.EventKind
	case recordType == slot.Type:
		return ahds.AppointmentKind
	default:
		return nil
	}
}
