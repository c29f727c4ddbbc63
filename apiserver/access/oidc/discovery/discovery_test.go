package discovery

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/paddock-health/paddock/apiserver/egress"
)

// local reaches this host.
var local = egress.NewDialer([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}).DialContext

func TestFetch(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	small, err := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // to be refused
	if err != nil {
		t.Fatal(err)
	}
	good := keySet(t, jose.JSONWebKey{Key: private.Public(), KeyID: "a"})
	var plainly atomic.Int32
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { plainly.Add(1) }))
	defer plain.Close()
	for name, test := range map[string]struct {
		// change the issuer before the fetch.
		change func(*Issuer)
		// document and keys are the answers; SELF stands for the issuer's address.
		document, keys string
		status         int
		redirect       string
		dial           Dial
		// problem, unless empty, is a part of what Problem says; invalid, whether the owner has to act.
		problem string
		invalid bool
	}{
		"good":                      {keys: good},
		"an unknown key next to it": {keys: strings.Replace(good, `[`, `[{"kty":"OKP","crv":"X999","x":"AA"},{"kty":"new"},`, 1)},
		"a discovery document elsewhere": {
			change:   func(i *Issuer) { i.DiscoveryURL, i.URL = i.URL+"/elsewhere", "https://login.example.org" },
			document: `{"issuer":"https://login.example.org","jwks_uri":"SELF/keys"}`, keys: good,
		},
		"a path":                    {change: func(i *Issuer) { i.URL += "/tenant" }, document: `{"issuer":"SELF/tenant","jwks_uri":"SELF/keys"}`, keys: good},
		"another issuer's document": {document: `{"issuer":"https://login.example.org","jwks_uri":"SELF/keys"}`, keys: good, problem: "names another issuer", invalid: true},
		"a slash too many":          {document: `{"issuer":"SELF/","jwks_uri":"SELF/keys"}`, keys: good, problem: "including a trailing slash", invalid: true},
		"no document":               {document: `<html>`, problem: "not the JSON object", invalid: true},
		"no address of keys":        {document: `{"issuer":"SELF"}`, problem: "not an https URL", invalid: true},
		"keys without TLS":          {document: `{"issuer":"SELF","jwks_uri":"` + plain.URL + `"}`, problem: "not an https URL", invalid: true},
		"keys in a file":            {document: `{"issuer":"SELF","jwks_uri":"file:///etc/passwd"}`, problem: "not an https URL", invalid: true},
		"a redirect without TLS":    {redirect: plain.URL, problem: "not an https URL", invalid: true},
		"redirects without end":     {redirect: "/.well-known/openid-configuration", problem: "redirected more than", invalid: true},
		"an error":                  {status: http.StatusTeapot, problem: "status 418"},
		"a document too large":      {document: `{"issuer":"SELF","x":"` + strings.Repeat("x", maxDocumentBytes) + `"}`, problem: "larger than", invalid: true},
		"keys too large":            {keys: strings.Repeat(" ", maxDocumentBytes+1), problem: "larger than", invalid: true},
		"no keys":                   {keys: `{"keys":[]}`, problem: "no public key", invalid: true},
		"no JSON Web Key Set":       {keys: `{"keys":7}`, problem: "not a JSON Web Key Set", invalid: true},
		"a private key":             {keys: keySet(t, jose.JSONWebKey{Key: private}), problem: "private", invalid: true},
		"a symmetric key":           {keys: keySet(t, jose.JSONWebKey{Key: []byte("secret")}), problem: "symmetric", invalid: true},
		"a key for encryption":      {keys: keySet(t, jose.JSONWebKey{Key: private.Public(), Use: "enc"}), problem: "no public key", invalid: true},
		"a small key":               {keys: keySet(t, jose.JSONWebKey{Key: small.Public()}), problem: "no public key", invalid: true},
		"101 keys":                  {keys: `{"keys":[{}` + strings.Repeat(`,{}`, 100) + `]}`, problem: "more than 100", invalid: true},
		"an authority unknown":      {change: func(i *Issuer) { i.CABundle = "" }, problem: "not trusted"},
		"a bundle of nothing":       {change: func(i *Issuer) { i.CABundle = "none" }, problem: "caBundle holds no PEM", invalid: true},
		"a network not allowed":     {dial: egress.NewDialer(nil).DialContext, problem: "--issuer-networks"},
		"nobody there":              {change: func(i *Issuer) { i.URL = "https://127.0.0.1:1" }, problem: "refuses"},
		"keys inline":               {change: func(i *Issuer) { i.JWKS, i.URL = good, "https://127.0.0.1:1" }},
		"a private key inline":      {change: func(i *Issuer) { i.JWKS = keySet(t, jose.JSONWebKey{Key: private}) }, problem: "private", invalid: true},
	} {
		t.Run(name, func(t *testing.T) {
			var self string
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer := test.keys
				if r.URL.Path != "/keys" {
					answer = test.document
					if answer == "" {
						answer = `{"issuer":"SELF","jwks_uri":"SELF/keys"}`
					}
				}
				if test.redirect != "" {
					http.Redirect(w, r, test.redirect, http.StatusFound)
					return
				}
				if test.status != 0 {
					w.WriteHeader(test.status)
				}
				_, _ = w.Write([]byte(strings.ReplaceAll(answer, "SELF", self)))
			}))
			defer server.Close()
			self = server.URL
			issuer := Issuer{URL: server.URL, CABundle: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))}
			if test.change != nil {
				test.change(&issuer)
			}
			dial := local
			if test.dial != nil {
				dial = test.dial
			}
			published, err := Fetch(t.Context(), dial, issuer)
			if test.problem == "" {
				if err != nil || len(published.Keys) != 1 || published.Document.Issuer != issuer.URL {
					t.Errorf("Fetch: %v, %v", published, err)
				}
				return
			}
			if err == nil || !strings.Contains(Problem(err), test.problem) || errors.Is(err, ErrInvalid) != test.invalid {
				t.Errorf("Fetch: error %v, problem %q, invalid %t; want %q and %t", err, Problem(err), errors.Is(err, ErrInvalid), test.problem, test.invalid)
			}
		})
	}
	if plainly.Load() != 0 {
		t.Errorf("%d requests went out without TLS", plainly.Load())
	}
}

// TestSlowIssuer asks an issuer that never answers, for a caller who does not wait for long.
func TestSlowIssuer(t *testing.T) {
	done := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-done:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(done)
	ctx, cancel := context.WithTimeout(t.Context(), fetchTimeout/50)
	defer cancel()
	bundle := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	_, err := Fetch(ctx, local, Issuer{URL: server.URL, CABundle: bundle})
	if err == nil || !strings.Contains(Problem(err), "does not answer") {
		t.Errorf("Fetch: %v", err)
	}
}

func TestFits(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	edwards, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		key  jose.JSONWebKey
		want string
	}{
		"RSA":                   {jose.JSONWebKey{Key: rsaKey.Public()}, "RS256 RS384 RS512 PS256 PS384 PS512"},
		"RSA for one algorithm": {jose.JSONWebKey{Key: rsaKey.Public(), Algorithm: "PS384"}, "PS384"},
		"RSA to sign":           {jose.JSONWebKey{Key: rsaKey.Public(), Algorithm: "RS256", Use: "sig"}, "RS256"},
		"RSA to encrypt":        {jose.JSONWebKey{Key: rsaKey.Public(), Use: "enc"}, ""},
		"RSA said to be HMAC":   {jose.JSONWebKey{Key: rsaKey.Public(), Algorithm: "HS256"}, ""},
		"P-384":                 {jose.JSONWebKey{Key: p384.Public()}, "ES384"},
		"P-384 said to be 256":  {jose.JSONWebKey{Key: p384.Public(), Algorithm: "ES256"}, ""},
		"Ed25519":               {jose.JSONWebKey{Key: edwards}, "EdDSA"},
		"a secret":              {jose.JSONWebKey{Key: []byte("secret")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, algorithm := range append([]jose.SignatureAlgorithm{"none", "HS256", "HS384", "HS512", ""}, Algorithms...) {
				if Fits(test.key, algorithm) {
					got = append(got, string(algorithm))
				}
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("fits %v, want %s", got, test.want)
			}
		})
	}
}

func keySet(t *testing.T, keys ...jose.JSONWebKey) string {
	t.Helper()
	content, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
