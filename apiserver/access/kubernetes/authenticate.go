package kubernetes

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"

	"github.com/paddock-health/paddock/apiserver/access"
)

// Authenticate returns the caller of a token that was sent to a Site. site is nil if the Site does
// not exist. If a hidden Site does not accept the audience of a token, the token gets the same
// error as at a Site that does not exist. The error is access.ErrSiteHidden if the token is
// authentic. Errors: access.ErrSiteHidden, *access.TokenError, access.ErrUnavailable.
func (a *Access) Authenticate(ctx context.Context, site *access.Tenant, token string) (access.Caller, error) {
	var at acceptance
	if site != nil {
		at = acceptance{sha256.Sum256([]byte(token)), *site}
		if cached, ok := a.accepted.Get(at); ok && !cached.(*accepted).claims.expired(a.now()) {
			found := cached.(*accepted)
			if a.now().Sub(found.reviewed) >= tokenRenewal {
				a.renew(ctx, &found.renewal, func(ctx context.Context) { a.renewToken(ctx, at, token, found.claims) })
			}
			return found.caller, nil
		}
	}
	claims, err := inspect(site, token) // inspect.go
	if err != nil {
		return access.Caller{}, err
	}
	if claims.expired(a.now()) {
		return access.Caller{}, invalidToken("the token has expired; get a new one")
	}
	if site != nil && claims.canBeFor(*site) {
		caller, ok, err := a.accept(ctx, at, token, claims)
		if ok || err != nil {
			return caller, err
		}
	}
	switch {
	case site == nil || site.Hidden:
		return access.Caller{}, a.refuseAbsent(ctx, token)
	case site.AcceptedAudience(claims.Audiences) != "":
		return access.Caller{}, errNotValid
	default:
		return access.Caller{}, invalidToken("the token is not for this site: its audience must be %s", site.Audience())
	}
}

var errNotValid = invalidToken("the cluster does not accept the token; get a new token from the cluster")

// accept reviews a token for a Site, and caches its caller if the Site accepts the token.
func (a *Access) accept(ctx context.Context, at acceptance, token string, claims tokenClaims) (caller access.Caller, ok bool, err error) {
	began := a.now()
	caller, ok, err = a.reviewFor(ctx, at.site, token, claims)
	if ok {
		caller.Identity = identity(caller)
		a.accepted.Add(at, &accepted{caller: caller, claims: claims, reviewed: began}, tokenTTL-reviewTTL)
	}
	return caller, ok, err
}

// renewToken reviews an accepted token again. If the token is refused, renewToken removes it from
// the cache.
func (a *Access) renewToken(ctx context.Context, at acceptance, token string, claims tokenClaims) {
	if _, ok, err := a.accept(ctx, at, token, claims); !ok && err == nil {
		a.accepted.Remove(at)
	}
}

// reviewFor reviews a token for a Site. It reports whether the Site accepts the token.
func (a *Access) reviewFor(ctx context.Context, site access.Tenant, token string, claims tokenClaims) (caller access.Caller, ok bool, err error) {
	if audience := site.AcceptedAudience(claims.Audiences); audience != "" {
		caller, ok, err = a.review(ctx, token, audience)
	}
	if err == nil && !ok && site.APIServerAudience {
		caller, ok, err = a.review(ctx, token)
	}
	return caller, ok, err
}

// refuseAbsent returns the error for a token at a Site that is, or must look, nonexistent.
func (a *Access) refuseAbsent(ctx context.Context, token string) error {
	claims, err := inspect(nil, token)
	if err != nil {
		return err
	}
	_, authentic, err := a.review(ctx, token, claims.Audiences...)
	switch {
	case err != nil:
		return err
	case !authentic:
		return errNotValid
	default:
		return access.ErrSiteHidden
	}
}

// review reports whether a token is authentic for one of the audiences, or for kube-apiserver if
// there are none. Errors: access.ErrUnavailable.
func (a *Access) review(ctx context.Context, token string, audiences ...string) (access.Caller, bool, error) {
	if len(audiences) > 0 {
		ctx = authenticator.WithAudiences(ctx, audiences)
	}
	response, ok, err := a.tokens.AuthenticateToken(ctx, token)
	if err != nil {
		return access.Caller{}, false, fmt.Errorf("%w: %w", access.ErrUnavailable, err)
	}
	a.answered.Store(a.now().UnixNano())
	if !ok {
		return access.Caller{}, false, nil
	}
	return access.Caller{
		Name: response.User.GetName(), UID: response.User.GetUID(),
		Groups: response.User.GetGroups(), Extra: response.User.GetExtra(),
	}, true, nil
}

// acceptance is the cache key of an accepted token: its hash and the Site that accepted it.
type acceptance struct {
	token [sha256.Size]byte
	site  access.Tenant
}

// accepted is the cached result of an accepted token.
type accepted struct {
	caller access.Caller
	claims tokenClaims
	// reviewed is when the review began.
	reviewed time.Time
	renewal
}

// tokenClaims are unverified claims of a token.
type tokenClaims struct {
	Expiry    unixTime  `json:"exp"`
	Audiences audiences `json:"aud"`
}

func (c tokenClaims) expired(now time.Time) bool {
	return !c.Expiry.IsZero() && !now.Before(c.Expiry.Time)
}
