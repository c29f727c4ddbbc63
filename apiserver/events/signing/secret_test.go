package signing_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/paddock-health/paddock/apiserver/events/signing"
)

func encode(size int) string { return base64.StdEncoding.EncodeToString(make([]byte, size)) }

func TestSharedSecrets(t *testing.T) {
	first, second := signing.NewShared(), signing.NewShared()
	if first == second {
		t.Error("two secrets are the same")
	}
	for name, test := range map[string]struct {
		secret string
		ok     bool
	}{
		"made here":       {first, true},
		"24 bytes":        {"whsec_" + encode(24), true},
		"64 bytes":        {"whsec_" + encode(64), true},
		"23 bytes":        {"whsec_" + encode(23), false},
		"65 bytes":        {"whsec_" + encode(65), false},
		"no prefix":       {encode(32), false},
		"another prefix":  {"whsk_" + encode(32), false},
		"not base64":      {"whsec_" + strings.Repeat("!", 44), false},
		"nothing":         {"", false},
		"behind a prefix": {"whsec_", false},
	} {
		t.Run(name, func(t *testing.T) {
			err := signing.CheckShared(test.secret)
			if (err == nil) != test.ok {
				t.Errorf("CheckShared = %v, want ok %t", err, test.ok)
			}
			if err != nil && len(test.secret) > 6 && strings.Contains(err.Error(), test.secret) {
				t.Errorf("the error has the secret: %v", err)
			}
		})
	}
}

func TestPrivateKeys(t *testing.T) {
	private, err := signing.NewPrivate()
	if err != nil {
		t.Fatal(err)
	}
	public, err := signing.Public(private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(private, "whsk_"))
	if err != nil {
		t.Fatal(err)
	}
	check, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(public, "whpk_"))
	if err != nil {
		t.Fatal(err)
	}
	message := []byte("id.timestamp.body")
	if !ed25519.Verify(check, message, ed25519.Sign(key, message)) {
		t.Error("the public key does not check what the private one signs")
	}
	seed := "whsk_" + base64.StdEncoding.EncodeToString(key[:ed25519.SeedSize])
	if of, err := signing.Public(seed); err != nil || of != public {
		t.Errorf("Public of the seed = %q, %v; want %q", of, err, public)
	}
	for name, bad := range map[string]string{
		"a shared secret": signing.NewShared(), "nothing": "", "too short": "whsk_" + encode(31), "halves of two keys": "whsk_" + encode(64), "not base64": "whsk_?",
	} {
		if _, err := signing.Public(bad); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
