package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	clientauthentication "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/paddock-health/paddock/apiserver/access"
)

// reviewer checks a token by TokenReview. It returns an error only when the API
// server gave no answer.
type reviewer struct {
	reviews clientauthentication.TokenReviewInterface
}

// AuthenticateToken implements authenticator.Token.
func (r *reviewer) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	audiences, _ := authenticator.AudiencesFrom(ctx)
	ctx, cancel := withReviewTimeout(ctx)
	defer cancel()
	review, err := r.reviews.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, false, fmt.Errorf("review a token: %w", err)
	}
	if !review.Status.Authenticated {
		return nil, false, nil
	}
	found := review.Status.User
	info := &user.DefaultInfo{Name: found.Username, UID: found.UID, Groups: found.Groups}
	if len(found.Extra) > 0 {
		info.Extra = make(map[string][]string, len(found.Extra))
		for k, v := range found.Extra {
			info.Extra[k] = v
		}
	}
	return &authenticator.Response{User: info, Audiences: review.Status.Audiences}, true, nil
}

// Authenticate finds out who sent a token to a site; site is nil when there is no
// such site. To those who have no right on a site, it looks like one that does
// not exist: both answer an authentic token with access.ErrSiteHidden, any other
// with an *access.TokenError. Errors: those, and access.ErrUnavailable.
func (a *Access) Authenticate(ctx context.Context, site *access.Site, token string) (access.Caller, error) {
	var at acceptance
	if site != nil {
		at = acceptance{sha256.Sum256([]byte(token)), *site}
		if found, ok := a.accepted.Get(at); ok && !found.(accepted).claims.expired(a.now()) {
			return found.(accepted).caller, nil
		}
	}
	claims := readClaims(token)
	if claims.expired(a.now()) {
		return access.Caller{}, &access.TokenError{Code: "invalid_token", Description: "the token has expired"}
	}
	if site != nil {
		caller, ok, err := a.review(ctx, token, site.Audience())
		if err == nil && !ok && site.APIServerAudience {
			caller, ok, err = a.review(ctx, token)
		}
		if ok {
			caller.Identity = identity(caller)
			a.accepted.Add(at, accepted{caller, claims}, tokenTTL/2)
		}
		if ok || err != nil {
			return caller, err
		}
	}
	caller, authentic, err := a.review(ctx, token, claims.Audiences...)
	if err != nil {
		return access.Caller{}, err
	}
	if !authentic {
		return access.Caller{}, &access.TokenError{Code: "invalid_token", Description: "the token is not valid"}
	}
	if site == nil {
		return access.Caller{}, access.ErrSiteHidden
	}
	visible, err := a.visible(ctx, caller, *site)
	if err != nil {
		return access.Caller{}, err
	}
	if !visible {
		return access.Caller{}, access.ErrSiteHidden
	}
	return access.Caller{}, &access.TokenError{
		Code:        "invalid_token",
		Description: "the token is not made for this site: its audience must be " + site.Audience(),
	}
}

// review asks whether a token is authentic for one of the audiences; without any,
// for the API server itself.
func (a *Access) review(ctx context.Context, token string, audiences ...string) (access.Caller, bool, error) {
	if len(audiences) > 0 {
		ctx = authenticator.WithAudiences(ctx, audiences)
	}
	response, ok, err := a.tokens.AuthenticateToken(ctx, token)
	if err != nil {
		return access.Caller{}, false, fmt.Errorf("%w: %w", access.ErrUnavailable, err)
	}
	if !ok {
		return access.Caller{}, false, nil
	}
	return access.Caller{
		Name: response.User.GetName(), UID: response.User.GetUID(),
		Groups: response.User.GetGroups(), Extra: response.User.GetExtra(),
	}, true, nil
}

// acceptance is what an accepted token is remembered by: its hash, and the site that
// took it.
type acceptance struct {
	token [sha256.Size]byte
	site  access.Site
}

// accepted is what is remembered of it.
type accepted struct {
	caller access.Caller
	claims tokenClaims
}

// tokenClaims are what a token says of itself, unverified.
type tokenClaims struct {
	Expiry    unixTime  `json:"exp"`
	Audiences audiences `json:"aud"`
}

func (c tokenClaims) expired(now time.Time) bool {
	return !c.Expiry.IsZero() && !now.Before(c.Expiry.Time)
}

// readClaims reads a JWT without checking it (RFC 7519); what is no JWT has no claims.
func readClaims(token string) tokenClaims {
	var claims tokenClaims
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		return tokenClaims{}
	}
	return claims
}
