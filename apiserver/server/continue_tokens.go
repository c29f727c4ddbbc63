package server

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/paddock-health/paddock/apiserver/aggregated"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
)

// continueTokens seals the continue tokens of the aggregated API in the same way as the page tokens
// of searches. It implements aggregated.Pages.
type continueTokens struct {
	tokens search.Tokens
	now    func() time.Time
}

// Seal implements aggregated.Pages.
func (c *continueTokens) Seal(of aggregated.Listing, at store.Position) string {
	return c.tokens.Seal(bindingOf(of), search.Cursor{After: at}, c.now())
}

// Open implements aggregated.Pages.
func (c *continueTokens) Open(of aggregated.Listing, token string) (store.Position, error) {
	cursor, err := c.tokens.Open(bindingOf(of), token, c.now())
	switch {
	case errors.Is(err, search.ErrTokenExpired):
		return nil, apierrors.NewResourceExpired("continue: the token has expired; omit it to list from the start")
	case err != nil:
		return nil, apierrors.NewBadRequest("continue: the token does not belong to this list and caller; omit it to list from the start")
	}
	return cursor.After, nil
}

func bindingOf(of aggregated.Listing) search.Binding {
	return search.Binding{Site: of.SiteID, Scope: "kubectl " + of.Resource, Query: of.Selectors, Caller: of.Caller, View: of.View}
}
