// Package access says who a caller is and what the caller may do, for every
// door: the FHIR and AHDS facades and the aggregated API. It holds the words and
// the rules; access/kubernetes asks the API server.
package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Caller is an authenticated identity.
type Caller struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
	// Identity is all of the above in one, for those who look callers up; empty where
	// nobody has put it together.
	Identity string
}

// Site is what access decisions know of a site. Its namespace is the tenant.
type Site struct {
	Namespace string
	Name      string
	// APIServerAudience also takes tokens made for the API server itself.
	APIServerAudience bool
}

// Audience is the audience of tokens made for the site.
func (s Site) Audience() string {
	return "paddock.health/" + s.Namespace + "/" + s.Name
}

// Action is one thing a caller wants to do, in the terms of Kubernetes RBAC.
type Action struct {
	Verb     string
	Group    string
	Resource string
	// Name of the one object, empty for a collection.
	Name string
}

func (a Action) String() string {
	return a.Verb + " " + a.Resource + "." + a.Group
}

// ErrUnavailable says that identity or rights cannot be checked right now.
var ErrUnavailable = errors.New("access cannot be checked: the API server is away")

// ErrSiteHidden says that the site does not exist, or that the caller has no
// right on it at all: the two must look alike.
var ErrSiteHidden = errors.New("no such site")

// TokenError says that a request has no token, or one that is not taken (RFC 6750 §3.1).
type TokenError struct {
	// Code is "" when there was no token, else invalid_request or invalid_token.
	Code        string
	Description string
}

func (e *TokenError) Error() string { return e.Description }

// Challenge is the value of WWW-Authenticate for the error (RFC 6750 §3).
func (e *TokenError) Challenge() string {
	if e.Code == "" {
		return `Bearer realm="paddock"`
	}
	return fmt.Sprintf(`Bearer realm="paddock", error=%q, error_description=%q`, e.Code, e.Description)
}

// ForbiddenError says which right is missing.
type ForbiddenError struct {
	Caller string
	Action Action
}

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("%s may not %s", e.Caller, e.Action)
}

// Authorizer decides whether a caller may act on a site.
// Errors: *ForbiddenError, ErrSiteHidden, ErrUnavailable.
type Authorizer interface {
	Authorize(ctx context.Context, caller Caller, site Site, action Action) error
}

// BearerToken takes the token out of an Authorization header (RFC 6750 §2.1).
func BearerToken(header string) (string, error) {
	if header == "" {
		return "", &TokenError{Description: "the request has no bearer token"}
	}
	scheme, token, _ := strings.Cut(header, " ")
	token = strings.TrimLeft(token, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" || strings.Contains(token, " ") || strings.Contains(token, "\t") {
		return "", &TokenError{Code: "invalid_request", Description: "the Authorization header is not of the form: Bearer <token>"}
	}
	return token, nil
}
