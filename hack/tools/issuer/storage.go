package main

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// tokenLife is how long tokens are valid.
const tokenLife = time.Hour

// storage implements the methods of op.Storage that the grants client_credentials, authorization_code
// and refresh_token need. Calls of other methods panic. people.go has the methods for people.
type storage struct {
	op.Storage
	keys *keySet

	mu      sync.Mutex
	clients map[string]client
	people  people
}

var errUnknownClient = errors.New("no client has this id and secret")

func (s *storage) client(id string) (client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.clients[id]
	if !ok {
		return client{}, errUnknownClient
	}
	return found, nil
}

func (s *storage) Health(context.Context) error { return nil }

func (s *storage) SigningKey(context.Context) (op.SigningKey, error) {
	key, err := s.keys.find("")
	return signingKey{key}, err
}

func (s *storage) SignatureAlgorithms(context.Context) ([]jose.SignatureAlgorithm, error) {
	return []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.EdDSA}, nil
}

func (s *storage) KeySet(context.Context) ([]op.Key, error) { return s.keys.published(), nil }

func (s *storage) GetClientByClientID(_ context.Context, id string) (op.Client, error) {
	return s.client(id)
}

// ClientCredentials implements op.ClientCredentialsStorage.
func (s *storage) ClientCredentials(_ context.Context, id, secret string) (op.Client, error) {
	found, err := s.client(id)
	if err == nil && found.Secret != secret {
		err = errUnknownClient
	}
	return found, err
}

// ClientCredentialsTokenRequest implements op.ClientCredentialsStorage.
func (s *storage) ClientCredentialsTokenRequest(_ context.Context, id string, scopes []string) (op.TokenRequest, error) {
	found, err := s.client(id)
	return tokenRequest{found, scopes}, err
}

func (s *storage) CreateAccessToken(context.Context, op.TokenRequest) (string, time.Time, error) {
	return "access", time.Now().Add(tokenLife), nil
}

// GetPrivateClaimsFromScopes returns the claims of the client, and the scopes in the claim "scope" as
// in RFC 9068.
func (s *storage) GetPrivateClaimsFromScopes(_ context.Context, _, id string, scopes []string) (map[string]any, error) {
	found, err := s.client(id)
	claims := map[string]any{"scope": strings.Join(scopes, " ")}
	for name, value := range found.Claims {
		claims[name] = value
	}
	return claims, err
}

// client is a client of the issuer. It implements op.Client. A client with redirect URIs is a public
// client, with which people sign in.
type client struct {
	ID        string         `json:"id"`
	Secret    string         `json:"secret"`
	Audience  []string       `json:"audience"`
	Claims    map[string]any `json:"claims"`
	Redirects []string       `json:"redirectURIs"`
}

func (c client) AuthMethod() oidc.AuthMethod {
	if len(c.Redirects) > 0 {
		return oidc.AuthMethodNone
	}
	return oidc.AuthMethodBasic
}

func (c client) GetID() string                       { return c.ID }
func (c client) RedirectURIs() []string              { return c.Redirects }
func (c client) PostLogoutRedirectURIs() []string    { return nil }
func (c client) ApplicationType() op.ApplicationType { return op.ApplicationTypeWeb }
func (c client) ResponseTypes() []oidc.ResponseType {
	return []oidc.ResponseType{oidc.ResponseTypeCode}
}

func (c client) GrantTypes() []oidc.GrantType {
	return []oidc.GrantType{oidc.GrantTypeClientCredentials, oidc.GrantTypeCode, oidc.GrantTypeRefreshToken}
}

func (c client) LoginURL(id string) string            { return "/test/sign-in?request=" + url.QueryEscape(id) }
func (c client) AccessTokenType() op.AccessTokenType  { return op.AccessTokenTypeJWT }
func (c client) IDTokenLifetime() time.Duration       { return tokenLife }
func (c client) DevMode() bool                        { return len(c.Redirects) > 0 } // allows http redirects
func (c client) IsScopeAllowed(string) bool           { return true }
func (c client) IDTokenUserinfoClaimsAssertion() bool { return false }
func (c client) ClockSkew() time.Duration             { return 0 }

func (c client) RestrictAdditionalIdTokenScopes() func([]string) []string {
	return slices.Clone[[]string]
}

func (c client) RestrictAdditionalAccessTokenScopes() func([]string) []string {
	return slices.Clone[[]string]
}

// tokenRequest implements op.TokenRequest.
type tokenRequest struct {
	client client
	scopes []string
}

func (r tokenRequest) GetSubject() string    { return r.client.ID }
func (r tokenRequest) GetAudience() []string { return r.client.Audience }
func (r tokenRequest) GetScopes() []string   { return r.scopes }
