package main

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// person is the subject of everyone who signs in. There is no password.
const person = "alice"

// signIn is a request of a person's browser for a code. It implements op.AuthRequest and
// op.RefreshTokenRequest.
type signIn struct {
	id       string
	asked    *oidc.AuthRequest
	audience []string
	scopes   []string
	at       time.Time
	done     bool
}

func (s *signIn) GetID() string                      { return s.id }
func (s *signIn) GetACR() string                     { return "" }
func (s *signIn) GetAMR() []string                   { return nil }
func (s *signIn) GetAudience() []string              { return s.audience }
func (s *signIn) GetAuthTime() time.Time             { return s.at }
func (s *signIn) GetClientID() string                { return s.asked.ClientID }
func (s *signIn) GetNonce() string                   { return s.asked.Nonce }
func (s *signIn) GetRedirectURI() string             { return s.asked.RedirectURI }
func (s *signIn) GetResponseType() oidc.ResponseType { return s.asked.ResponseType }
func (s *signIn) GetResponseMode() oidc.ResponseMode { return s.asked.ResponseMode }
func (s *signIn) GetScopes() []string                { return s.scopes }
func (s *signIn) SetCurrentScopes(scopes []string)   { s.scopes = scopes }
func (s *signIn) GetState() string                   { return s.asked.State }
func (s *signIn) GetSubject() string                 { return person }
func (s *signIn) Done() bool                         { return s.done }
func (s *signIn) GetCodeChallenge() *oidc.CodeChallenge {
	return &oidc.CodeChallenge{Challenge: s.asked.CodeChallenge, Method: s.asked.CodeChallengeMethod}
}

// people has the sign-ins of people by the id of the request, by "code " and the code, and by the
// refresh token. The mutex mu of storage guards it.
type people map[string]*signIn

func (s *storage) CreateAuthRequest(_ context.Context, asked *oidc.AuthRequest, _ string) (op.AuthRequest, error) {
	found, err := s.client(asked.ClientID)
	if err != nil {
		return nil, err
	}
	if asked.CodeChallenge == "" {
		return nil, oidc.ErrInvalidRequest().WithDescription("send a code_challenge (RFC 7636)")
	}
	made := &signIn{id: rand.Text(), asked: asked, audience: found.Audience, scopes: asked.Scopes}
	s.keep(made.id, made)
	return made, nil
}

func (s *storage) keep(key string, made *signIn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.people[key] = made
}

func (s *storage) signIn(key string) (*signIn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.people[key]; found != nil {
		return found, nil
	}
	return nil, oidc.ErrInvalidGrant()
}

func (s *storage) AuthRequestByID(_ context.Context, id string) (op.AuthRequest, error) {
	return s.signIn(id)
}

func (s *storage) AuthRequestByCode(_ context.Context, code string) (op.AuthRequest, error) {
	return s.signIn("code " + code)
}

func (s *storage) SaveAuthCode(_ context.Context, id, code string) error {
	found, err := s.signIn(id)
	if err == nil {
		s.keep("code "+code, found)
	}
	return err
}

// DeleteAuthRequest removes the entries of the request and of its code, so that the code is valid only
// once. Refresh tokens remain.
func (s *storage) DeleteAuthRequest(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, found := range s.people {
		if found.id == id && key[0] != 'r' {
			delete(s.people, key)
		}
	}
	return nil
}

func (s *storage) CreateAccessAndRefreshTokens(ctx context.Context, request op.TokenRequest, _ string) (id, refresh string, expiry time.Time, err error) {
	id, expiry, err = s.CreateAccessToken(ctx, request)
	refresh = "refresh " + rand.Text()
	s.keep(refresh, request.(*signIn))
	return id, refresh, expiry, err
}

func (s *storage) TokenRequestByRefreshToken(_ context.Context, token string) (op.RefreshTokenRequest, error) {
	found, err := s.signIn(token)
	return found, err
}

func (s *storage) SetUserinfoFromScopes(_ context.Context, info *oidc.UserInfo, subject, _ string, _ []string) error {
	info.Subject = subject
	return nil
}

// signInPage signs the person in without asking anything, and redirects to the provider, which
// continues the request.
func (s *storage) signInPage(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("request")
	found, err := s.signIn(id)
	if err != nil {
		http.Error(w, "no authorization request has this id; sign in again", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	found.done, found.at = true, time.Now()
	s.mu.Unlock()
	http.Redirect(w, r, "/authorize/callback?id="+url.QueryEscape(id), http.StatusFound)
}
