package smart

import (
	"context"
	"net/url"
	"slices"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// letters maps RBAC verbs to the permissions of scopes. Searches and all histories use the verb
// list and therefore need s, although SMART allows the history of one record with r. Other verbs,
// such as privileged, have no scopes.
var letters = map[string]string{
	"get": "r", "list": "s", "create": "c", "update": "u", "patch": "u", "delete": "d",
}

// Authorizer implements access.Authorizer. It authorizes callers of issuers with SMART by their
// scopes, for FHIR records. Next authorizes everything else: other callers, other API groups, and
// verbs that scopes cannot express.
type Authorizer struct {
	Next access.Authorizer
	// Restricted states that every store that a caller can reach enforces Restrictions. If Restricted
	// is false, scopes that grant access to only some records grant nothing.
	Restricted bool
}

var _ access.Authorizer = Authorizer{}

// Authorize implements access.Authorizer. If Restricted is set, it also returns nil for actions that
// scopes allow on some records only: those that Restrictions returns. Errors: *access.ForbiddenError,
// and those of Next.
func (a Authorizer) Authorize(ctx context.Context, caller access.Caller, site access.Tenant, action access.Action) error {
	resource, decides := decides(caller, action)
	if !decides {
		return a.Next.Authorize(ctx, caller, site, action)
	}
	restrictions, unrestricted := Restrictions(caller, action.Verb, resource)
	if unrestricted || a.Restricted && len(restrictions) > 0 {
		return nil
	}
	return &access.ForbiddenError{Caller: caller.Name, Action: action}
}

// decides reports whether scopes authorize an action, and returns its FHIR type if they do.
func decides(caller access.Caller, action access.Action) (resource string, ok bool) {
	if !caller.SMART || action.Group != r4.Group || letters[action.Verb] == "" {
		return "", false
	}
	at := slices.IndexFunc(r4.Types, func(t r4.Type) bool { return t.Resource == action.Resource })
	if at < 0 {
		return "", false
	}
	return r4.Types[at].Name, true
}

// Restriction selects the records to which one scope grants access: those that meet the conditions of
// all fields that are set.
type Restriction struct {
	// Patient, if not empty, is the id of a Patient. The records are that Patient and those in its
	// compartment.
	Patient string
	// Search, if not nil, has search parameters of the resource type. A record must match all of
	// them.
	Search url.Values
}

// Restrictions returns which records of a type the caller's scopes grant a verb on. These are the
// records that meet at least one restriction, or all if unrestricted is true. A record that is
// written must meet a restriction before and after the write. Callers without SMART are
// unrestricted. Scopes of the level patient grant nothing if the token has no patient. Scopes grant
// no verbs that they cannot express.
func Restrictions(caller access.Caller, verb, resource string) (restrictions []Restriction, unrestricted bool) {
	if !caller.SMART {
		return nil, true
	}
	letter := letters[verb]
	if letter == "" {
		return nil, false
	}
	for _, text := range caller.Scopes {
		granted, ok := parse(text)
		if !ok || !granted.grants(letter, resource) {
			continue
		}
		restriction := Restriction{Search: granted.search}
		if granted.level == levelPatient {
			if !r4.ValidID(caller.Patient) {
				continue
			}
			restriction.Patient = caller.Patient
		}
		if restriction.Patient == "" && restriction.Search == nil {
			return nil, true
		}
		restrictions = append(restrictions, restriction)
	}
	return restrictions, false
}
