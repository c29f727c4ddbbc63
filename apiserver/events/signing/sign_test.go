package signing_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/paddock-health/paddock/apiserver/events/signing"
)

// TestSign verifies signatures as receivers do: v1 with the library of Standard Webhooks, v1a by
// the words of its specification.
func TestSign(t *testing.T) {
	shared, other := signing.NewShared(), signing.NewShared()
	private, err := signing.NewPrivate()
	if err != nil {
		t.Fatal(err)
	}
	public, err := signing.Public(private)
	if err != nil {
		t.Fatal(err)
	}
	body, at := []byte(`{"id":"e1"}`), time.Now()
	sign := func(secrets ...string) string {
		var keys []signing.Key
		for _, secret := range secrets {
			key, err := signing.ParseKey(secret)
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, key)
		}
		return signing.Sign(keys, "e1", at, body)
	}
	accepts := func(secret, id, signature string, body []byte) bool {
		verifier, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		header := http.Header{}
		header.Set("webhook-id", id)
		header.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
		header.Set("webhook-signature", signature)
		return verifier.Verify(body, header) == nil
	}
	for name, test := range map[string]struct {
		secret, id, signature string
		body                  []byte
		want                  bool
	}{
		"its secret":              {shared, "e1", sign(shared), body, true},
		"during a rotation, new":  {shared, "e1", sign(shared, other), body, true},
		"during a rotation, old":  {other, "e1", sign(shared, other), body, true},
		"among keys":              {other, "e1", sign(private, other), body, true},
		"another secret":          {shared, "e1", sign(other), body, false},
		"another id":              {shared, "e2", sign(shared), body, false},
		"another body":            {shared, "e1", sign(shared), []byte(`{"id":"e2"}`), false},
		"a signature of the keys": {shared, "e1", sign(private), body, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := accepts(test.secret, test.id, test.signature, test.body); got != test.want {
				t.Errorf("the verifier accepts: %t, want %t (%s)", got, test.want, test.signature)
			}
		})
	}
	signature, ok := strings.CutPrefix(sign(private), "v1a,")
	if !ok {
		t.Fatalf("the signature is %s", sign(private))
	}
	raw, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		t.Fatal(err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(public, "whpk_"))
	if err != nil {
		t.Fatal(err)
	}
	if !ed25519.Verify(key, []byte("e1."+strconv.FormatInt(at.Unix(), 10)+`.{"id":"e1"}`), raw) {
		t.Error("the ed25519 signature is not valid")
	}
}

func TestParseKey(t *testing.T) {
	for _, secret := range []string{"", "x", "whsec_", "whsec_c2hvcnQ=", "whsk_", "whsk_c2hvcnQ=", "whpk_c2hvcnQ="} {
		if _, err := signing.ParseKey(secret); err == nil {
			t.Errorf("%q is taken", secret)
		}
	}
}
