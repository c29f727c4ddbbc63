package oidc

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/paddock-health/paddock/apiserver/access"
)

// caller returns the caller that the claims identify. Names get the prefix site:<namespace>:, so that an
// issuer can only name callers of its own namespace. A namespace has no colon, so names of two
// namespaces differ.
//
// The caller is not in the group system:authenticated. Rights of that group are meant for users whom
// the cluster has authenticated, while a tenant chooses the issuers of its Site.
func (t token) caller(issuer Issuer, site Owner) (access.Caller, error) {
	err := t.checkRecipient(issuer, site)
	if err != nil {
		return access.Caller{}, err
	}
	username, ok := t.claims.text(issuer.Username)
	if !ok || username == "" {
		return access.Caller{}, refused("the token's username claim must be a string that is not empty")
	}
	if err := checkName("username", username); err != nil {
		return access.Caller{}, err
	}
	prefix := "site:" + site.Namespace + ":"
	caller := access.Caller{Name: prefix + username, Issuer: issuer.Name, SMART: issuer.SMART}
	if issuer.Groups != "" {
		if caller.IssuerGroups, ok = t.claims.texts(issuer.Groups); !ok {
			return access.Caller{}, refused("the token's groups claim is neither a string nor an array of strings")
		}
	}
	for _, group := range caller.IssuerGroups {
		if err := checkName("groups", group); err != nil {
			return access.Caller{}, err
		}
		caller.Groups = append(caller.Groups, prefix+group)
	}
	for _, name := range []string{"scope", "scp"} {
		scopes, ok := t.claims.texts(name)
		if !ok {
			return access.Caller{}, refused("the token's claim " + name + " is neither a string nor an array of strings")
		}
		for _, scope := range scopes {
			caller.Scopes = append(caller.Scopes, strings.Fields(scope)...)
		}
	}
	if t.claims["patient"] != nil {
		if caller.Patient, ok = t.claims.text("patient"); !ok {
			return access.Caller{}, refused("the token's patient claim is not a string")
		}
	}
	caller.Identity, err = identityOf(caller)
	return caller, err
}

// identityOf returns a digest of all fields on which rights can depend. As a cache key, it must be
// short even if the claims are long.
func identityOf(caller access.Caller) (string, error) {
	all, err := json.Marshal(caller)
	if err != nil {
		return "", refused("the token's claims cannot be encoded as JSON")
	}
	digest := sha256.Sum256(all)
	return "issuer:" + base64.RawStdEncoding.EncodeToString(digest[:]), nil
}

// checkRecipient returns an error unless the token is for this Site. Errors: *access.TokenError.
func (t token) checkRecipient(issuer Issuer, site Owner) error {
	audiences, ok := t.claims.texts("aud")
	if !ok {
		return refused("the token's audience is neither a string nor an array of strings")
	}
	if len(audiences) > maxAudiences {
		return refused("the token has more than 100 audiences")
	}
	if !slices.ContainsFunc(audiences, func(audience string) bool { return slices.Contains(issuer.Audiences, audience) }) {
		return refused("the token is not made for this site: its audience must be one of the audiences in the entry of spec.access.issuers for its issuer")
	}
	if issuer.Site == "" {
		return nil
	}
	sites, ok := t.claims.texts(issuer.Site)
	if !ok || !slices.Contains(sites, site.ID) {
		return refused("the token is not made for this site: its site claim must equal the siteID, or be an array that includes it")
	}
	return nil
}

// checkName refuses empty names, names that Kubernetes reserves, and names with control characters,
// which could look like other text in a log.
func checkName(claim, name string) error {
	switch {
	case name == "":
		return refused("the token's " + claim + " claim contains an empty name")
	case strings.HasPrefix(name, "system:"):
		return refused("the token's " + claim + " claim contains a name that begins with system:, which is reserved")
	case strings.ContainsFunc(name, unicode.IsControl):
		return refused("the token's " + claim + " claim contains a control character")
	}
	return nil
}
