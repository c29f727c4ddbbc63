// Package settings has what a Site object configures, as the API servers use it. Package sites makes
// Settings from objects; each API gets them with the Site of a request.
package settings

import (
	"time"

	"github.com/rs/cors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/access/privacy"
	"github.com/paddock-health/paddock/apiserver/events"
)

// Settings are the configuration of one Site, as all APIs use it.
type Settings struct {
	// ID is the siteID, as in paths.
	ID string
	// URL is the base URL of the Site at the host name of its spec.exposure. It is empty if the Site
	// has no host name of its own, or while the controller has not allowed it.
	URL    string
	Access access.Tenant
	// Limits are spec.limits. Fields that the Site does not set are nil: the code that enforces a
	// limit has its default. See Int and Bytes.
	Limits v1alpha1.Limits
	// UpdateCreate lets a PUT create a record with an id chosen by the client.
	UpdateCreate bool
	// EnforceReferences refuses references to missing records of the Site, and the deletion of
	// referenced records.
	EnforceReferences bool
	// Lenient makes searches ignore unknown parameters. The handling preference in the header Prefer
	// of a request has precedence.
	Lenient bool
	// Zone is the time zone of dates and times without an offset. Nil is UTC.
	Zone *time.Location
	// Privacy has the rules of spec.privacy, which hide records from some callers.
	Privacy *privacy.Rules
	// EventTypes maps each record type to the types of the events that its changes cause.
	EventTypes map[string]events.Mapping
	// CORS handles cross-origin requests of browsers. It is nil if spec.cors of the Site is unset.
	CORS *cors.Cors
	// Conditions are status.conditions of the Site object.
	Conditions []metav1.Condition
}

// defaultMaxBodySize is the maximum size in bytes of a request body at a Site that does not set it.
const defaultMaxBodySize = 4 << 20

// MaxBodySize returns the maximum size in bytes of a request body, before and after decompression.
// Default: 4 MiB. The FHIR, AHDS and aggregated APIs refuse larger bodies with 413. The native format
// has a limit of its own.
func (s *Settings) MaxBodySize() int64 { return Bytes(s.Limits.MaxBodySize, defaultMaxBodySize) }

// Int returns the value of an optional field, such as one of Limits, or the parameter unset if the
// field is nil.
func Int(field *int32, unset int) int {
	if field == nil {
		return unset
	}
	return int(*field)
}

// Bytes returns the value of an optional field in bytes, or the parameter unset if the field is nil.
func Bytes(field *resource.Quantity, unset int64) int64 {
	if field == nil {
		return unset
	}
	return field.Value()
}
