package ahds

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/ahds/list"
)

// rightsChecks is how many rights of one request are checked concurrently.
const rightsChecks = 8

// requiredRights returns the rights that the operations of this facade require, without duplicates,
// sorted by group, resource and verb.
func requiredRights() []access.Action {
	var all []access.Action
	for _, route := range Routes() {
		if right := route.Right; !route.Public && right.Verb != "" && right.Verb != verbBatch && !slices.Contains(all, right) {
			all = append(all, right)
		}
	}
	slices.SortFunc(all, func(a, b access.Action) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb))
	})
	return all
}

// resourceRights are the verbs that a caller may use on all objects of a resource or, for sites, on this
// Site.
type resourceRights struct {
	Group    string   `json:"group"`
	Resource string   `json:"resource"`
	Verbs    []string `json:"verbs"`
}

// rights serves GET …/rights: the rights of the caller to the operations of this facade. A client
// can use them to offer only operations that the server allows. Any authenticated caller may read
// them.
func (h *handler) rights(w http.ResponseWriter, r *request) error {
	if err := list.ParseNone(r.query); err != nil {
		return err
	}
	granted, err := h.grantedOf(r)
	if err != nil {
		return err
	}
	all := []resourceRights{}
	for i, right := range h.required {
		if !granted[i] {
			continue
		}
		if last := len(all) - 1; last >= 0 && all[last].Group == right.Group && all[last].Resource == right.Resource {
			all[last].Verbs = append(all[last].Verbs, right.Verb)
			continue
		}
		all = append(all, resourceRights{Group: right.Group, Resource: right.Resource, Verbs: []string{right.Verb}})
	}
	body, err := json.Marshal(struct {
		SiteID string           `json:"siteId"`
		Rights []resourceRights `json:"rights"`
	}{r.site.ID, all})
	if err != nil {
		return err
	}
	return r.respond(w, http.StatusOK, typeJSON, jsontext.Value(body))
}

// grantedOf reports for each of h.required whether the caller has it.
func (h *handler) grantedOf(r *request) ([]bool, error) {
	granted := make([]bool, len(h.required))
	checks, ctx := errgroup.WithContext(r.Context())
	checks.SetLimit(rightsChecks)
	for i, right := range h.required {
		checks.Go(func() (err error) {
			granted[i], err = h.isGranted(ctx, r, right)
			return err
		})
	}
	return granted, checks.Wait()
}

func (h *handler) isGranted(ctx context.Context, r *request, right access.Action) (bool, error) {
	right.Name = r.objectName(right.Resource)
	err := h.Authorizer.Authorize(ctx, r.caller, r.site.Access, right)
	var forbidden *access.ForbiddenError
	if errors.As(err, &forbidden) {
		return false, nil
	}
	return err == nil, err
}
