package kubernetes

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/paddock-health/paddock/apiserver/access"
)

const (
	// maxTokenBytes is the maximum size of a token in bytes. Larger tokens are refused. A token of
	// a ServiceAccount has about 1 KiB.
	maxTokenBytes = 16 << 10
	// maxAudiences is the maximum length of the aud claim. A token with more audiences is refused,
	// because kube-apiserver compares each audience with each of the review.
	maxAudiences = 100
)

// tokenHeader is the JOSE header of a token (RFC 7515 §4), unverified.
type tokenHeader struct {
	Algorithm string `json:"alg"`
}

// inspect returns the unverified claims of a token. It refuses tokens that cannot be valid, so that
// they cost no review. A token that is not a JWT may be valid at a Site with APIServerAudience,
// because authenticators of the cluster may accept it; it has no claims. Errors:
// *access.TokenError.
func inspect(site *access.Tenant, token string) (tokenClaims, error) {
	if len(token) > maxTokenBytes {
		return tokenClaims{}, invalidToken("the token has %d bytes; at most %d are allowed", len(token), maxTokenBytes)
	}
	var header tokenHeader
	var claims tokenClaims
	parts := strings.Split(token, ".")
	isJWT := len(parts) == 3 && decodePart(parts[0], &header) && decodePart(parts[1], &claims) && isBase64(parts[2])
	switch {
	case !isJWT && site != nil && site.APIServerAudience:
		return tokenClaims{}, nil
	case !isJWT:
		return tokenClaims{}, invalidToken("the token is not a JSON Web Token")
	case header.Algorithm == "" || strings.EqualFold(header.Algorithm, "none") || parts[2] == "":
		return tokenClaims{}, invalidToken("the token is not signed")
	case len(claims.Audiences) > maxAudiences:
		return tokenClaims{}, invalidToken("the token has %d audiences; at most %d are allowed", len(claims.Audiences), maxAudiences)
	}
	return claims, nil
}

// canBeFor reports whether a token with these claims can be accepted at a site.
func (c tokenClaims) canBeFor(site access.Tenant) bool {
	return site.APIServerAudience || site.AcceptedAudience(c.Audiences) != ""
}

func decodePart(part string, into any) bool {
	text, err := base64.RawURLEncoding.DecodeString(part)
	return err == nil && len(text) > 0 && text[0] == '{' && json.Unmarshal(text, into) == nil
}

func isBase64(part string) bool {
	_, err := base64.RawURLEncoding.DecodeString(part)
	return err == nil
}

func invalidToken(format string, args ...any) error {
	return &access.TokenError{Code: "invalid_token", Description: fmt.Sprintf(format, args...)}
}
