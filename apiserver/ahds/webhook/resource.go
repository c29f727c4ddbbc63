// Package webhook defines the webhook events and webhooks of a site: their fields, and the filters
// and sort orders of lists. It does not depend on HTTP or Kubernetes.
package webhook

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
)

// Resource is a webhook event or a webhook.
type Resource struct {
	// ID is a UUID in lower case.
	ID string
	// UID distinguishes resources that had the same id one after the other.
	UID string
	// Generation is incremented by each change of the spec.
	Generation       int64
	Created, Updated time.Time
	Content          schema.Content
	// ServiceData is data of the facade that clients do not see.
	ServiceData string
	// PublicKey verifies the signatures of a webhook that signs with a private key.
	PublicKey string
	// PreviousUntil is the time until which deliveries are also signed with the secret before the last
	// rotation. It is zero if there is no such secret.
	PreviousUntil time.Time
	// DisabledAt and DisabledReason are when and why the server disabled the webhook. They are zero
	// if the webhook is not disabled.
	DisabledAt     time.Time
	DisabledReason string
	// Enable is an input of a change. If set, it enables a webhook that the server disabled, even if
	// the content stays the same.
	Enable bool
}

// Test reports whether a filter selects a resource.
type Test func(Resource) bool

// Order compares two resources like cmp.Compare.
type Order func(a, b Resource) int

// Orders are the sort orders of lists, by the name of the field. The empty name sorts by creation.
var Orders = map[string]Order{
	"":          byCreated,
	"createdAt": byCreated,
	"updatedAt": func(a, b Resource) int { return a.Updated.Compare(b.Updated) },
	"description": func(a, b Resource) int {
		return strings.Compare(list.Fold(a.Content.Text("description")), list.Fold(b.Content.Text("description")))
	},
}

func byCreated(a, b Resource) int { return a.Created.Compare(b.Created) }

var sortBy = []string{"createdAt", "updatedAt", "description"}

// Page returns the requested page of the resources, and the number of resources on all pages.
func Page(all []Resource, asked list.Request[Test]) (page []Resource, total int64) {
	chosen := slices.DeleteFunc(slices.Clone(all), func(r Resource) bool {
		return slices.ContainsFunc(asked.Where, func(test Test) bool { return !test(r) })
	})
	slices.SortFunc(chosen, func(a, b Resource) int {
		order := cmp.Or(Orders[asked.SortBy](a, b), strings.Compare(a.ID, b.ID))
		if asked.Descending {
			return -order
		}
		return order
	})
	first := min(asked.Page, len(chosen)) * asked.PageSize
	first = min(first, len(chosen))
	return chosen[first:min(first+asked.PageSize, len(chosen))], int64(len(chosen))
}
