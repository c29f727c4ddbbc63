package v1alpha1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Category is the Kubernetes category of all kinds of the API group, for kubectl get fhir.
const Category = "fhir"

// Kind describes one Kubernetes kind of the API group, which serves one FHIR resource type.
type Kind struct {
	// Name is the name of the FHIR resource type.
	Name string
	// Plural, Singular and ShortNames are the names of the resource in the API.
	Plural, Singular string
	ShortNames       []string
	// New and NewList return an empty object and an empty list.
	New     func() Object
	NewList func() ListObject
}

// ListObject is a List of any resource type.
type ListObject interface {
	runtime.Object
	metav1.ListInterface
}

// Kinds are all kinds of the API group, sorted by Name.
var Kinds = []Kind{
	kind[device]("devices", "fhirdev"),
	kind[deviceDefinition]("devicedefinitions", "devdef"),
	kind[deviceMetric]("devicemetrics", "devmet"),
	kind[endpoint]("endpoints", "fhirep"), // ep is the short name of the core API's endpoints
	kind[group]("groups", "fhirgrp"),
	kind[healthcareService]("healthcareservices", "hcsvc"),
	kind[location]("locations", "loc"),
	kind[organization]("organizations", "org"),
	kind[organizationAffiliation]("organizationaffiliations", "orgaff"),
	kind[patient]("patients", "pat"),
	kind[person]("persons", "pers"),
	kind[practitioner]("practitioners", "prac"),
	kind[practitionerRole]("practitionerroles", "pracrole"),
	kind[relatedPerson]("relatedpersons", "relpers"),
}

func kind[T resourceType](plural string, shortNames ...string) Kind {
	name := typeName[T]()
	return Kind{
		Name:       name,
		Plural:     plural,
		Singular:   strings.ToLower(name),
		ShortNames: shortNames,
		New:        func() Object { return new(Resource[T]) },
		NewList:    func() ListObject { return new(List[T]) },
	}
}

// resourceType is a type parameter that stands for a FHIR resource type. Its values have no content.
type resourceType interface{ name() string }

func typeName[T resourceType]() string {
	var t T
	return t.name()
}

type (
	device                  struct{}
	deviceDefinition        struct{}
	deviceMetric            struct{}
	endpoint                struct{}
	group                   struct{}
	healthcareService       struct{}
	location                struct{}
	organization            struct{}
	organizationAffiliation struct{}
	patient                 struct{}
	person                  struct{}
	practitioner            struct{}
	practitionerRole        struct{}
	relatedPerson           struct{}
)

func (device) name() string                  { return "Device" }
func (deviceDefinition) name() string        { return "DeviceDefinition" }
func (deviceMetric) name() string            { return "DeviceMetric" }
func (endpoint) name() string                { return "Endpoint" }
func (group) name() string                   { return "Group" }
func (healthcareService) name() string       { return "HealthcareService" }
func (location) name() string                { return "Location" }
func (organization) name() string            { return "Organization" }
func (organizationAffiliation) name() string { return "OrganizationAffiliation" }
func (patient) name() string                 { return "Patient" }
func (person) name() string                  { return "Person" }
func (practitioner) name() string            { return "Practitioner" }
func (practitionerRole) name() string        { return "PractitionerRole" }
func (relatedPerson) name() string           { return "RelatedPerson" }
