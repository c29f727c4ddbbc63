package v1alpha1

// SiteEvents selects which changes of records produce events for webhooks.
type SiteEvents struct {
	// sources lists the types of records whose changes, through any API, produce events, at most 16.
	// Default: creating a Practitioner produces user.created, and updating one produces user.updated.
	// With an empty list, changes produce no events. Events that clients send to the API are not
	// affected.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Sources []EventSource `json:"sources,omitzero"`
}

// EventSource selects the events that changes of one type of records produce. Deletions produce no
// events.
// +kubebuilder:validation:XValidation:rule="has(self.created) || has(self.updated)",message="set created, updated or both to the types of the events that changes of these records produce"
type EventSource struct {
	// type is the type of the records: a FHIR resource type, or AvailabilitySlot.
	// +required
	Type EventSourceType `json:"type,omitempty"`

	// created is the type of the event that creating a record produces. For an AvailabilitySlot, it is
	// the event of a booking. Default: none.
	// +optional
	Created EventType `json:"created,omitempty"`

	// updated is the type of the event that updating a record produces. For an AvailabilitySlot, it is
	// the event of changing or releasing a booked slot. Default: none.
	// +optional
	Updated EventType `json:"updated,omitempty"`
}

// EventSourceType is a type of records whose changes can produce events.
// +kubebuilder:validation:Enum=AvailabilitySlot;Device;DeviceDefinition;DeviceMetric;Endpoint;Group;HealthcareService;Location;Organization;OrganizationAffiliation;Patient;Person;Practitioner;PractitionerRole;RelatedPerson
type EventSourceType string

// DefaultEventSources returns the sources of a Site without spec.events.sources.
func DefaultEventSources() []EventSource {
	return []EventSource{{Type: "Practitioner", Created: "user.created", Updated: "user.updated"}}
}

// EventSources returns the sources of the Site, or DefaultEventSources if
// spec.events.sources is unset.
func (s *Site) EventSources() []EventSource {
	if s.Spec.Events.Sources == nil {
		return DefaultEventSources()
	}
	return s.Spec.Events.Sources
}
