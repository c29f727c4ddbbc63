package signing

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// Key signs deliveries.
type Key struct {
	// Either shared or private is set.
	shared  []byte
	private ed25519.PrivateKey
}

// ParseKey parses a shared secret (whsec_…) or an ed25519 private key (whsk_…). The error never
// contains the secret.
func ParseKey(secret string) (Key, error) {
	if encoded, ok := strings.CutPrefix(secret, privatePrefix); ok {
		if _, err := Public(secret); err != nil {
			return Key{}, err
		}
		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return Key{}, fmt.Errorf("decode an ed25519 key: %w", err)
		}
		return Key{private: ed25519.NewKeyFromSeed(key[:ed25519.SeedSize])}, nil
	}
	if err := CheckShared(secret); err != nil {
		return Key{}, err
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, sharedPrefix))
	if err != nil {
		return Key{}, fmt.Errorf("decode a shared secret: %w", err)
	}
	return Key{shared: key}, nil
}

// Sign returns the value of the header webhook-signature for a message. It has one signature for
// each key: v1 (HMAC-SHA256) for shared secrets, v1a (ed25519) for private keys.
func Sign(keys []Key, id string, at time.Time, body []byte) string {
	content := append(fmt.Appendf(nil, "%s.%d.", id, at.Unix()), body...)
	signatures := make([]string, len(keys))
	for i, key := range keys {
		if key.private != nil {
			signatures[i] = "v1a," + base64.StdEncoding.EncodeToString(ed25519.Sign(key.private, content))
			continue
		}
		mac := hmac.New(sha256.New, key.shared)
		_, _ = mac.Write(content) // it never fails
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}
