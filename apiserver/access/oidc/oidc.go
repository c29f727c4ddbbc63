// Package oidc verifies tokens of a Site's OpenID Connect issuers. It checks signatures with keys
// that it fetches in the background, and maps claims to an access.Caller. Package access/kubernetes
// reviews tokens of the cluster.
package oidc

import (
	"context"
	"crypto/sha256"
	"hash/maphash"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/access/oidc/discovery"
)

const (
	// cacheTTL is how long a verified token is accepted without another verification, but not after
	// its expiry.
	cacheTTL = time.Minute
	// maxCached is the maximum size of each of two caches of a Site: of its verified tokens, and of
	// tokens of other issuers. At the limit the least recently used token is evicted.
	maxCached = 1024
)

// Issuer is one issuer of a Site.
type Issuer struct {
	// Name identifies the issuer within the Site.
	Name string
	// Keys describes where the issuer's keys come from. Keys.URL is the "iss" claim of tokens.
	Keys discovery.Issuer
	// Audiences are the accepted values of the "aud" claim.
	Audiences []string
	// Username is the name of the claim with the caller's name. Groups is the name of the claim
	// with the caller's groups, Site the name of the claim with siteIDs. If Groups or Site is
	// empty, no such claim is read.
	Username, Groups, Site string
	// SMART reports whether the token's scopes authorize access to FHIR records.
	SMART bool
	// Console is the OAuth 2 client with which the web console signs people in. If nil, the console
	// does not offer the issuer.
	Console *ConsoleClient
}

// ConsoleClient is a public OAuth 2 client of an issuer.
type ConsoleClient struct {
	ID     string
	Scopes []string
}

// Console is an issuer with which people can sign in to the console: the console's client at the
// issuer, and the discovery document.
type Console struct {
	Name     string
	Client   ConsoleClient
	Document discovery.Document
}

// Owner identifies the Site to which Issuers belong. ID is its siteID.
type Owner struct {
	ID, Namespace string
}

// Options configure how keys are fetched.
type Options struct {
	// Dial connects to the issuers.
	Dial discovery.Dial
	// Now returns the current time. Default: time.Now.
	Now func() time.Time
}

func (o Options) clock() func() time.Time {
	if o.Now == nil {
		return time.Now
	}
	return o.Now
}

// Issuers verifies the tokens of one Site's issuers. It is safe for concurrent use. A nil *Issuers
// has no issuer.
type Issuers struct {
	site    Owner
	issuers []Issuer
	keys    []*keySet
	now     func() time.Time
	// verified has the verified tokens by their hash.
	verified *cache.LRUExpireCache
	// foreign has tokens of other issuers by their hash with seed, which is much cheaper than the
	// hash of verified. A collision grants nothing: a token of the Site's issuers with the hash of
	// a foreign token is passed to the next authenticator, which refuses it. The caches are
	// separate, so that forged tokens never evict verified tokens.
	foreign *cache.LRUExpireCache
	seed    maphash.Seed
}

// Open returns the issuers of a Site, and fetches their keys until ctx ends or Close is called. It
// returns nil if issuers is empty. before is nil or the result of the previous call for the Site, and
// must not be used in another call. If the settings are equal, Open returns before. Otherwise it
// closes before and takes over the keys of unchanged issuers, so that a Site can be changed while its
// issuer is down.
func Open(ctx context.Context, site Owner, issuers []Issuer, before *Issuers, options Options) *Issuers {
	if before != nil && before.site == site && reflect.DeepEqual(before.issuers, issuers) {
		return before
	}
	if len(issuers) == 0 {
		before.Close()
		return nil
	}
	opened := &Issuers{
		site: site, issuers: issuers, now: options.clock(),
		verified: cache.NewLRUExpireCache(maxCached), foreign: cache.NewLRUExpireCache(maxCached), seed: maphash.MakeSeed(),
	}
	for _, issuer := range issuers {
		keys := before.keysFrom(issuer.Keys)
		if keys == nil {
			keys = openKeySet(ctx, site, issuer.Keys, options)
		}
		opened.keys = append(opened.keys, keys)
	}
	before.closeExcept(opened.keys)
	return opened
}

// Close stops the fetches of keys. Tokens can still be verified with the known keys.
func (s *Issuers) Close() { s.closeExcept(nil) }

func (s *Issuers) closeExcept(kept []*keySet) {
	if s == nil {
		return
	}
	for _, keys := range s.keys {
		if !slices.Contains(kept, keys) {
			keys.close()
		}
	}
}

// keysFrom returns the keys from a source, nil if there are none.
func (s *Issuers) keysFrom(source discovery.Issuer) *keySet {
	if s == nil {
		return nil
	}
	for _, keys := range s.keys {
		if keys.source == source {
			return keys
		}
	}
	return nil
}

// Published returns the discovery document of the first issuer with SMART, or of the first issuer if
// none has SMART. smart reports whether that issuer has SMART. known is false until its document has
// been fetched. s must not be nil.
func (s *Issuers) Published() (document discovery.Document, smart, known bool) {
	first := max(slices.IndexFunc(s.issuers, func(i Issuer) bool { return i.SMART }), 0)
	published, known := s.keys[first].published()
	return published.Document, s.issuers[first].SMART, known
}

// Consoles returns the issuers that have a client for the console, and whose authorization and token
// endpoints are known.
func (s *Issuers) Consoles() []Console {
	if s == nil {
		return nil
	}
	var consoles []Console
	for i, issuer := range s.issuers {
		if issuer.Console == nil {
			continue
		}
		published, known := s.keys[i].published()
		if known && published.Document.AuthorizationEndpoint != "" && published.Document.TokenEndpoint != "" {
			consoles = append(consoles, Console{Name: issuer.Name, Client: *issuer.Console, Document: published.Document})
		}
	}
	return consoles
}

// Authenticate verifies a token and returns its caller. named is false if s is nil, if the token does
// not have the three parts of a JWT, or if it is a JWT that names none of the Site's issuers. Only then
// may another authenticator verify the token. named is true for a token that is too long or that parse
// refuses, although it may name no issuer.
// Errors: *access.TokenError, access.ErrUnavailable until the issuer's keys are known.
func (s *Issuers) Authenticate(ctx context.Context, token string) (caller access.Caller, named bool, err error) {
	if s == nil {
		return access.Caller{}, false, nil
	}
	if len(token) > maxTokenBytes {
		return access.Caller{}, true, refused("the token is longer than 16 KiB")
	}
	if strings.Count(token, ".") != 2 {
		return access.Caller{}, false, nil
	}
	foreign := maphash.String(s.seed, token)
	if _, ok := s.foreign.Get(foreign); ok {
		return access.Caller{}, false, nil
	}
	hash := sha256.Sum256([]byte(token))
	if found, ok := s.verified.Get(hash); ok {
		if remembered, ok := found.(verified); ok && s.now().Before(remembered.expiry) {
			return remembered.caller, true, nil
		}
	}
	parsed, err := parse(token)
	if err != nil {
		return access.Caller{}, true, err
	}
	index := slices.IndexFunc(s.issuers, func(i Issuer) bool { return i.Keys.URL == parsed.issuer })
	if index < 0 {
		s.foreign.Add(foreign, struct{}{}, cacheTTL)
		return access.Caller{}, false, nil
	}
	caller, expiry, err := s.verify(ctx, index, parsed)
	if err != nil {
		return access.Caller{}, true, err
	}
	s.verified.Add(hash, verified{caller, expiry}, cacheTTL)
	return caller, true, nil
}

// verified is the cached result of a verified token.
type verified struct {
	caller access.Caller
	expiry time.Time
}

// verify returns the caller and the expiry of a token. It checks claims before the signature,
// because that is cheaper. The error for a forged token reveals only what the token contains, and
// whether its claims match the settings of the Site.
func (s *Issuers) verify(ctx context.Context, index int, t token) (access.Caller, time.Time, error) {
	issuer := s.issuers[index]
	expiry, err := t.checkTimes(s.now())
	if err != nil {
		return access.Caller{}, time.Time{}, err
	}
	caller, err := t.caller(issuer, s.site)
	if err != nil {
		return access.Caller{}, time.Time{}, err
	}
	keys, err := s.keys[index].find(ctx, t.keyID, t.algorithm)
	if err != nil {
		return access.Caller{}, time.Time{}, err
	}
	for _, key := range keys {
		if _, err := t.signed.Verify(key.Key); err == nil {
			return caller, expiry, nil
		}
	}
	return access.Caller{}, time.Time{}, refused("the token's signature is not valid")
}

func refused(description string) error {
	return &access.TokenError{Code: "invalid_token", Description: description}
}
