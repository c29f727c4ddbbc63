package oidc

import (
	"encoding/base64"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/access/oidc/discovery"
)

const (
	// maxTokenBytes is the maximum size of a token in bytes. Longer tokens are refused before they
	// are parsed.
	maxTokenBytes = 16 << 10
	// maxAudiences is the maximum length of the "aud" claim. A token with more audiences is refused.
	maxAudiences = 100
	// leeway is how far the clocks of issuer and server may differ (RFC 7519 §4.1.4).
	leeway = 30 * time.Second
)

// tokenTypes are the values of the "typ" header of tokens that identify a caller: JWTs in
// general and access tokens (RFC 9068). Tokens of other types, such as logout+jwt, have another
// purpose (RFC 8725 §3.11).
var tokenTypes = []string{"", "jwt", "at+jwt"}

// token is a JWT that is parsed but not verified.
type token struct {
	signed    *jose.JSONWebSignature
	algorithm jose.SignatureAlgorithm
	keyID     string
	issuer    string
	claims    claims
}

// header is the part of a JWS header that is used. Keys and URLs of keys in the header are ignored:
// only keys that the issuer publishes are used.
type header struct {
	Algorithm string         `json:"alg"`
	KeyID     string         `json:"kid"`
	Type      string         `json:"typ"`
	Critical  jsontext.Value `json:"crit"`
	Encoded   jsontext.Value `json:"b64"`
}

// claims are the members of a token's payload.
type claims map[string]jsontext.Value

// parse parses a token strictly, so that all parsers agree on it: names are case-sensitive and
// unique, text is UTF-8, and the encoding of header and payload is canonical. raw must have three
// parts. Errors: *access.TokenError.
func parse(raw string) (token, error) {
	parts := strings.Split(raw, ".")
	var h header
	t := token{claims: claims{}}
	if !decode(parts[0], &h) || !decode(parts[1], &t.claims) {
		return token{}, refused("the token is not a JWT: its header and payload must be JSON objects in base64url, without repeated names")
	}
	t.issuer, _ = t.claims.text("iss")
	t.algorithm, t.keyID = jose.SignatureAlgorithm(h.Algorithm), h.KeyID
	if h.Critical != nil || h.Encoded != nil {
		return token{}, refused("the token's header has crit or b64, which are not supported; use a token without them")
	}
	if !slices.Contains(tokenTypes, strings.TrimPrefix(strings.ToLower(h.Type), "application/")) {
		return token{}, refused("the token is not an access token: its type is neither JWT nor at+jwt")
	}
	if !slices.Contains(discovery.Algorithms, t.algorithm) {
		return token{}, refused("the token's algorithm is not one of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 and EdDSA")
	}
	signed, err := jose.ParseSignedCompact(raw, discovery.Algorithms)
	if err != nil {
		return token{}, refused("the token is not a signed JWT in compact serialization (RFC 7515)")
	}
	t.signed = signed
	return t, nil
}

// decode decodes one part of a token. It reports whether the part is valid.
func decode(part string, into any) bool {
	content, err := base64.RawURLEncoding.Strict().DecodeString(part)
	// The decoder skips line breaks, which no token has.
	return err == nil && !strings.ContainsAny(part, "\r\n") && json.Unmarshal(content, into) == nil
}

// checkTimes returns when the token expires, and an error unless it is valid now.
// Errors: *access.TokenError.
func (t token) checkTimes(now time.Time) (time.Time, error) {
	expiry, ok := t.claims.time("exp")
	if !ok {
		return time.Time{}, refused("the token has no expiry: its claim exp must be a number")
	}
	if !now.Before(expiry.Add(leeway)) {
		return time.Time{}, refused("the token has expired; get a new one")
	}
	for _, name := range []string{"nbf", "iat"} {
		if t.claims[name] == nil {
			continue
		}
		from, ok := t.claims.time(name)
		if !ok {
			return time.Time{}, refused("the token's claim " + name + " is not a number of seconds")
		}
		if now.Add(leeway).Before(from) {
			return time.Time{}, refused("the token is not valid yet: its claim " + name + " is in the future")
		}
	}
	return expiry, nil
}

// text returns a claim, and reports whether it is a string.
func (c claims) text(name string) (string, bool) {
	var text string
	if c[name] == nil || c[name].Kind() != '"' || json.Unmarshal(c[name], &text) != nil {
		return "", false
	}
	return text, true
}

// texts returns a claim that is a string or an array of strings, and none without the claim. It
// reports false for other claims.
func (c claims) texts(name string) ([]string, bool) {
	if c[name] == nil {
		return nil, true
	}
	if text, ok := c.text(name); ok {
		return []string{text}, true
	}
	var texts []string
	if c[name].Kind() != '[' || json.Unmarshal(c[name], &texts) != nil {
		return nil, false
	}
	return texts, true
}

// time returns a claim that is a NumericDate (RFC 7519 §2): seconds since 1970.
func (c claims) time(name string) (time.Time, bool) {
	var seconds float64
	if c[name] == nil || c[name].Kind() != '0' || json.Unmarshal(c[name], &seconds) != nil || math.Abs(seconds) > 1<<40 {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0), true
}
