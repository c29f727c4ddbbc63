// Package access defines callers, the actions that they may perform, and the errors of
// authentication and authorization. The FHIR, AHDS and aggregated APIs use this package. Its
// subpackages authenticate and authorize callers.
package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Caller is the authenticated sender of a request, as its token identifies it.
type Caller struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
	// Issuer is the name (in spec.access.issuers) of the issuer that signed the token. It is empty
	// for tokens of the cluster.
	Issuer string
	// IssuerGroups are the groups as the issuer of the token names them, without the prefix that they
	// have in Groups.
	IssuerGroups []string
	// Scopes are the values of the "scope" claim of the token (RFC 8693 §4.2).
	Scopes []string
	// Patient is the id in the "patient" claim of the token (SMART launch context). It is empty
	// without that claim.
	Patient string
	// SMART reports whether Scopes authorize access to FHIR records instead of Kubernetes RBAC.
	SMART bool
	// Identity is a cache key of the fields on which rights can depend. It is empty if the
	// authenticator did not compute it.
	Identity string
}

// Tenant is a Site as access decisions need it. A caller's rights to the records of the Site are the
// caller's rights in Namespace.
type Tenant struct {
	Namespace string
	Name      string
	// FormerAudiences are accepted in addition to Audience, because the site was moved from Sites with
	// these audiences. They are separated by spaces, so that Tenants can be compared.
	FormerAudiences string
	// APIServerAudience allows tokens with the audience of kube-apiserver, in addition to those with
	// Audience.
	APIServerAudience bool
	// Hidden makes the Site look nonexistent to callers without any right to it.
	Hidden bool
}

// Audience returns the audience of ServiceAccount tokens for the Site:
// paddock.health/{namespace}/{name}.
func (s Tenant) Audience() string {
	return "paddock.health/" + s.Namespace + "/" + s.Name
}

// AcceptedAudience returns an audience that the Site accepts, out of those of a token, or "".
func (s Tenant) AcceptedAudience(audiences []string) string {
	if own := s.Audience(); slices.Contains(audiences, own) {
		return own
	}
	for _, former := range strings.Fields(s.FormerAudiences) {
		if slices.Contains(audiences, former) {
			return former
		}
	}
	return ""
}

// Action is what a caller requests, in terms of Kubernetes RBAC.
type Action struct {
	Verb  string
	Group string
	// Resource is the plural name of a resource, or of a resource and a subresource, such as webhooks
	// or webhooks/deliveries.
	Resource string
	// Name is the name of a single object. It is empty if the action is on all objects of the
	// resource.
	Name string
}

func (a Action) String() string {
	return a.Verb + " " + a.Resource + "." + a.Group
}

// ErrUnavailable is returned while the identity or the rights of a caller cannot be checked. The
// request can be retried.
var ErrUnavailable = errors.New("access cannot be checked now; retry later")

// ErrSiteHidden is returned if the Site does not exist, or if it is hidden and the caller has no
// right to it. Responses to both must be indistinguishable; see AwaitAbsent.
var ErrSiteHidden = errors.New("no site has the siteId in the path, or the caller has no right to it; check the siteId")

// TokenError is returned if a request has no token or an invalid token (RFC 6750 §3.1).
type TokenError struct {
	// Code is the error code of RFC 6750: invalid_request or invalid_token. It is empty if the
	// request has no token.
	Code        string
	Description string
}

func (e *TokenError) Error() string { return e.Description }

// Challenge returns the value of WWW-Authenticate for the error (RFC 6750 §3).
func (e *TokenError) Challenge() string {
	if e.Code == "" {
		return `Bearer realm="paddock"`
	}
	return fmt.Sprintf(`Bearer realm="paddock", error=%q, error_description=%q`, e.Code, e.Description)
}

// BreakGlassHeader is the header field that requests access to records that privacy rules hide from
// the caller. Its value is the reason for the access.
const BreakGlassHeader = "Paddock-Break-Glass"

// HeaderError is returned if a header field on which access depends, such as BreakGlassHeader, is
// invalid.
type HeaderError struct{ Name, Problem string }

func (e *HeaderError) Error() string { return "header " + e.Name + ": " + e.Problem }

// ForbiddenError is returned if a caller does not have the right to an action.
type ForbiddenError struct {
	Caller string
	Action Action
}

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("%s may not %s; ask the administrator of the site for this right", e.Caller, e.Action)
}

// Authorizer authorizes actions at a Site. Authorize returns nil if the caller may perform the
// action. Errors: *ForbiddenError, ErrUnavailable.
type Authorizer interface {
	Authorize(ctx context.Context, caller Caller, site Tenant, action Action) error
}

// BearerToken returns the token in the values of the Authorization header (RFC 6750 §2.1). Several values are
// refused, because a proxy may have checked another one than the first. Errors: *TokenError.
func BearerToken(values []string) (string, error) {
	switch {
	case len(values) == 0 || len(values) == 1 && values[0] == "":
		return "", &TokenError{Description: "the request has no bearer token; send it as Authorization: Bearer <token>"}
	case len(values) > 1:
		return "", &TokenError{Code: "invalid_request", Description: "the request has several Authorization headers; send one"}
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	token = strings.TrimLeft(token, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" || strings.Contains(token, " ") || strings.Contains(token, "\t") {
		return "", &TokenError{Code: "invalid_request", Description: "the Authorization header must have the form: Bearer <token>"}
	}
	return token, nil
}
