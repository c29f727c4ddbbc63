// Package signing creates, checks and uses the secrets that sign webhooks, in the forms of Standard
// Webhooks. A secret whsec_… is shared with the receiver, and whsk_… is a private key with public
// key whpk_….
package signing

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

const (
	sharedPrefix, privatePrefix, publicPrefix = "whsec_", "whsk_", "whpk_"
	// The minimum and maximum size of a shared secret, and the size of one from NewShared, in bytes.
	minShared, maxShared, madeShared = 24, 64, 32
)

// NewShared returns a new random secret for HMAC-SHA256, in the form whsec_….
func NewShared() string {
	secret := make([]byte, madeShared)
	_, _ = rand.Read(secret) // it never fails
	return sharedPrefix + base64.StdEncoding.EncodeToString(secret)
}

// NewPrivate returns a new ed25519 private key in the form whsk_….
func NewPrivate() (string, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", fmt.Errorf("create an ed25519 key: %w", err)
	}
	return privatePrefix + base64.StdEncoding.EncodeToString(private), nil
}

// CheckShared returns an error unless secret is a valid shared secret: whsec_ and 24 to 64 bytes in
// base64. The error never contains the secret.
func CheckShared(secret string) error {
	encoded, ok := strings.CutPrefix(secret, sharedPrefix)
	if !ok {
		return errors.New("a shared signing secret must begin with whsec_")
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(key) < minShared || len(key) > maxShared {
		return fmt.Errorf("a shared signing secret must have %d to %d bytes in base64 after whsec_", minShared, maxShared)
	}
	return nil
}

// Public returns the public key (whpk_…) of a private key (whsk_…). The error never contains the
// private key.
func Public(private string) (string, error) {
	encoded, ok := strings.CutPrefix(private, privatePrefix)
	if !ok {
		return "", errors.New("a private signing key must begin with whsk_")
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err == nil && len(key) == ed25519.SeedSize {
		key = ed25519.NewKeyFromSeed(key)
	}
	if err != nil || len(key) != ed25519.PrivateKeySize {
		return "", fmt.Errorf("a private signing key must have an ed25519 key of %d or %d bytes in base64 after whsk_", ed25519.PrivateKeySize, ed25519.SeedSize)
	}
	// The given public half may belong to another key.
	public := ed25519.NewKeyFromSeed(key[:ed25519.SeedSize])[ed25519.SeedSize:]
	if string(public) != string(key[ed25519.SeedSize:]) {
		return "", errors.New("the public half of the signing key does not belong to its private half; create a new key")
	}
	return publicPrefix + base64.StdEncoding.EncodeToString(public), nil
}
