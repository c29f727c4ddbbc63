package oidc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/paddock-health/paddock/apiserver/access/oidc/discovery"
)

// FuzzToken reads hostile tokens. None may be accepted, cause a panic, or be said to be of an
// issuer that a second reader does not find in it.
func FuzzToken(f *testing.F) {
	issuers := inlineIssuers(f, newKey(f))
	for _, seed := range []string{
		"", "..", "a.b.c", "e30.e30.e30",
		encodeHeader(`{"alg":"ES256","kid":"k"}`) + "." + encodeHeader(`{"iss":"https://issuer.example","aud":"oak","exp":4102444800,"sub":"a"}`) + ".AAAA",
		encodeHeader(`{"alg":"none"}`) + "." + encodeHeader(`{"iss":"https://issuer.example","iss":"other"}`) + ".",
		encodeHeader(`{"alg":"ES256","crit":["b64"],"b64":false}`) + "." + encodeHeader(`{"aud":[1],"groups":{}}`) + ".AA",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		caller, named, err := issuers.Authenticate(t.Context(), raw)
		if named == (err == nil) || caller.Name != "" {
			t.Fatalf("accepted: caller %v, named %t, error %v", caller, named, err)
		}
		if !named && strings.Count(raw, ".") == 2 {
			parsed, err := parse(raw)
			if err != nil || parsed.issuer == "https://issuer.example" {
				t.Fatalf("a token of the issuer is left to others: %v", err)
			}
		}
	})
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// inlineIssuers has one issuer with one key, and needs no network.
func inlineIssuers(tb testing.TB, key *ecdsa.PrivateKey) *Issuers {
	tb.Helper()
	content, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{KeyID: "k", Key: key.Public()}}})
	if err != nil {
		tb.Fatal(err)
	}
	issuers := Open(tb.Context(), oak, []Issuer{{
		Name: "clinic", Keys: discovery.Issuer{URL: "https://issuer.example", JWKS: string(content)},
		Audiences: []string{"oak"}, Username: "sub",
	}}, nil, Options{})
	tb.Cleanup(issuers.Close)
	return issuers
}

// BenchmarkTokens measures the cost of tokens, good and bad.
func BenchmarkTokens(b *testing.B) {
	key := newKey(b)
	issuers := inlineIssuers(b, key)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", "k"))
	if err != nil {
		b.Fatal(err)
	}
	signed, err := signer.Sign([]byte(`{"iss":"https://issuer.example","aud":"oak","exp":` + strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10) + `,"sub":"alice"}`))
	if err != nil {
		b.Fatal(err)
	}
	good, err := signed.CompactSerialize()
	if err != nil {
		b.Fatal(err)
	}
	parts := strings.Split(good, ".")
	for name, token := range map[string]string{
		"remembered":            good,
		"wrong signature":       parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2])),
		"unknown key":           encodeHeader(`{"alg":"ES256","kid":"x"}`) + "." + parts[1] + "." + parts[2],
		"expired":               parts[0] + "." + encodeHeader(`{"iss":"https://issuer.example","aud":"oak","exp":1,"sub":"alice"}`) + "." + parts[2],
		"16 KiB of claims":      parts[0] + "." + encodeHeader(`{"iss":"https://issuer.example","x":"`+strings.Repeat("x", 12000)+`"}`) + "." + parts[2],
		"longer than 16 KiB":    strings.Repeat("x", 60<<10),
		"one word":              "letmein",
		"algorithm none":        encodeHeader(`{"alg":"none"}`) + "." + parts[1] + ".",
		"of another issuer":     parts[0] + "." + encodeHeader(`{"iss":"https://other.example"}`) + "." + parts[2],
		"thousands of brackets": parts[0] + "." + encodeHeader(strings.Repeat("[", 9000)) + "." + parts[2],
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _, _ = issuers.Authenticate(b.Context(), token)
			}
		})
	}
}
