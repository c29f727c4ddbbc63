package aggregated

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Pages seals the position at the end of a page in a continue token.
type Pages interface {
	Seal(of Listing, at store.Position) string
	// Open returns the position in a continue token. Its errors are those of the API machinery: 410 for
	// an expired token, and 400 for a token of another listing.
	Open(of Listing, token string) (store.Position, error)
}

// Listing identifies a list request. A continue token is valid only for its listing.
type Listing struct {
	SiteID, Resource, Selectors, Caller string
	// View identifies which records the caller sees.
	View string
}

// pagesOf returns the listing of a request.
func (r *resource) pagesOf(ctx context.Context, site Backend, options *internalversion.ListOptions) (Listing, error) {
	caller, err := callerOf(ctx)
	if err != nil {
		return Listing{}, err
	}
	view, err := site.Store.Digest([]string{r.kind.Name})
	listing := Listing{SiteID: site.ID, Resource: r.kind.Plural, Caller: caller.Name, View: view}
	if options.FieldSelector != nil {
		listing.Selectors = options.FieldSelector.String()
	}
	if options.LabelSelector != nil {
		listing.Selectors += "&" + options.LabelSelector.String()
	}
	return listing, err
}
