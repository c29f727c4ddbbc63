// Package webhook knows the webhook events and webhooks of a site: their fields, and how
// lists choose and sort them. It knows neither HTTP nor Kubernetes.
package webhook

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/ahds/document"
	"github.com/paddock-health/paddock/apiserver/ahds/list"
)

// Resource is a webhook event or a webhook.
type Resource struct {
	// ID is a UUID in lower case.
	ID string
	// UID tells the resources apart that had the id one after the other.
	UID string
	// Generation rises with every change of what people ask for.
	Generation       int64
	Created, Updated time.Time
	Content          document.Content
	// Kept is what the facade keeps of the resource and does not show.
	Kept string
	// PublicKey checks the signatures of a webhook that signs with a private key.
	PublicKey string
	// PreviousUntil is how long the secret before the last rotation counts; zero: there
	// is none.
	PreviousUntil time.Time
}

// Test chooses resources.
type Test func(Resource) bool

// Order compares resources.
type Order func(a, b Resource) int

// Orders that lists can have, by the name of the field. Without a name: by creation.
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

// Page is the part of the resources that a list is asked for, and how many there are in all.
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
