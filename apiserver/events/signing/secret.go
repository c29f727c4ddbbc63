// Package signing knows the secrets that sign webhooks, in the forms of Standard Webhooks:
// whsec_… is shared with the receiver, whsk_… is a private key whose public part is whpk_….
// It knows neither HTTP nor Kubernetes.
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
	// Bounds of shared secrets, and the size of those made here, in bytes.
	minShared, maxShared, madeShared = 24, 64, 32
)

// NewShared makes a secret for HMAC-SHA256.
func NewShared() string {
	secret := make([]byte, madeShared)
	_, _ = rand.Read(secret) // it never fails
	return sharedPrefix + base64.StdEncoding.EncodeToString(secret)
}

// NewPrivate makes an ed25519 key.
func NewPrivate() (string, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", fmt.Errorf("make an ed25519 key: %w", err)
	}
	return privatePrefix + base64.StdEncoding.EncodeToString(private), nil
}

// CheckShared says what is wrong with a secret for HMAC. The error never has the secret.
func CheckShared(secret string) error {
	encoded, ok := strings.CutPrefix(secret, sharedPrefix)
	if !ok {
		return errors.New("it does not begin with whsec_")
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(key) < minShared || len(key) > maxShared {
		return fmt.Errorf("behind whsec_ there are not %d to %d bytes in base64", minShared, maxShared)
	}
	return nil
}

// Public is the public part of a private key. The error never has the key.
func Public(private string) (string, error) {
	encoded, ok := strings.CutPrefix(private, privatePrefix)
	if !ok {
		return "", errors.New("it does not begin with whsk_")
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err == nil && len(key) == ed25519.SeedSize {
		key = ed25519.NewKeyFromSeed(key)
	}
	if err != nil || len(key) != ed25519.PrivateKeySize {
		return "", fmt.Errorf("behind whsk_ there is no ed25519 key of %d or %d bytes in base64", ed25519.PrivateKeySize, ed25519.SeedSize)
	}
	// The public half of what was given need not belong to the private one.
	public := ed25519.NewKeyFromSeed(key[:ed25519.SeedSize])[ed25519.SeedSize:]
	if string(public) != string(key[ed25519.SeedSize:]) {
		return "", errors.New("its two halves are not of one key")
	}
	return publicPrefix + base64.StdEncoding.EncodeToString(public), nil
}
