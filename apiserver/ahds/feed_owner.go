package ahds

import (
	"errors"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/store"
)

// feedOwner is the client that last wrote a feed. The URL of the calendar has the rights of this
// client, as long as the client has them.
type feedOwner struct {
	Name         string              `json:"name"`
	UID          string              `json:"uid,omitempty"`
	Groups       []string            `json:"groups,omitempty"`
	Extra        map[string][]string `json:"extra,omitempty"`
	Issuer       string              `json:"issuer,omitempty"`
	IssuerGroups []string            `json:"issuerGroups,omitempty"`
	Scopes       []string            `json:"scopes,omitempty"`
	Patient      string              `json:"patient,omitempty"`
}

func feedOwnerOf(c access.Caller) *feedOwner {
	return &feedOwner{c.Name, c.UID, c.Groups, c.Extra, c.Issuer, c.IssuerGroups, c.Scopes, c.Patient}
}

func (m *feedOwner) caller() access.Caller {
	return access.Caller{
		Name: m.Name, UID: m.UID, Groups: m.Groups, Extra: m.Extra,
		Issuer: m.Issuer, IssuerGroups: m.IssuerGroups, Scopes: m.Scopes, Patient: m.Patient,
	}
}

// changeFeed applies a client's write to a feed, and makes the client the owner of the feed.
func changeFeed(_ string, before stored, w write, _ time.Time) (stored, error) {
	before.content, before.service.Owner = w.content, feedOwnerOf(w.by)
	return before, nil
}

// actAsOwner makes the owner of a feed the caller of a request for its calendar, also in the audit
// log. If the owner may not read the feed or list slots, it returns store.ErrNotFound, as for an
// unknown URL. It also returns store.ErrNotFound for a feed without an owner, which an earlier
// release created.
func (h *handler) actAsOwner(r *request, id string, m *feedOwner) error {
	if m == nil {
		return store.ErrNotFound
	}
	r.caller = m.caller()
	audit.From(r.Context()).Caller(r.caller)
	for _, action := range []access.Action{
		{Verb: "get", Group: Group, Resource: feedResource, Name: strings.ToLower(id)},
		{Verb: "list", Group: Group, Resource: slots.resource},
	} {
		err := h.Authorizer.Authorize(r.Context(), r.caller, r.site.Access, action)
		if forbidden := new(access.ForbiddenError); errors.As(err, &forbidden) {
			return store.ErrNotFound
		}
		if err != nil {
			return err
		}
	}
	return nil
}
