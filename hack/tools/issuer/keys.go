package main

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// keySet has the keys of the issuer. The last key signs. Retired keys are not published.
type keySet struct {
	file string

	mu      sync.Mutex
	Keys    []jose.JSONWebKey `json:"keys"`
	Retired map[string]bool   `json:"retired"`
}

func loadKeys(dir string) (*keySet, error) {
	set := &keySet{file: filepath.Join(dir, "keys.json"), Retired: map[string]bool{}}
	content, err := os.ReadFile(set.file)
	if os.IsNotExist(err) {
		_, err := set.rotate(jose.RS256)
		return set, err
	}
	if err != nil {
		return nil, err
	}
	return set, json.Unmarshal(content, set)
}

// rotate makes a new key, which signs from now on, and returns its id.
func (s *keySet) rotate(algorithm jose.SignatureAlgorithm) (string, error) {
	key, err := generate(algorithm)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := "key-" + strconv.Itoa(len(s.Keys)+1)
	s.Keys = append(s.Keys, jose.JSONWebKey{KeyID: id, Algorithm: string(algorithm), Use: "sig", Key: key})
	return id, s.save()
}

// retire removes a key from the published keys.
func (s *keySet) retire(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Retired[id] = true
	return s.save()
}

// save writes the keys. The caller holds mu.
func (s *keySet) save() error {
	content, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(s.file, content, 0o600)
}

// find returns a key by its id, or the key that signs if id is empty.
func (s *keySet) find(id string) (jose.JSONWebKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.Keys) - 1; i >= 0; i-- {
		if id == "" || s.Keys[i].KeyID == id {
			return s.Keys[i], nil
		}
	}
	return jose.JSONWebKey{}, fmt.Errorf("there is no key %q", id)
}

// published returns the public keys of all keys that are not retired.
func (s *keySet) published() []op.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []op.Key
	for _, key := range s.Keys {
		if !s.Retired[key.KeyID] {
			keys = append(keys, publicKey{key.Public()})
		}
	}
	return keys
}

func generate(algorithm jose.SignatureAlgorithm) (any, error) {
	switch algorithm {
	case jose.ES256:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case jose.ES384:
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case jose.ES512:
		return ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case jose.EdDSA:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	default:
		return rsa.GenerateKey(rand.Reader, 2048)
	}
}

// publicKey implements op.Key.
type publicKey struct{ key jose.JSONWebKey }

func (k publicKey) ID() string { return k.key.KeyID }
func (k publicKey) Algorithm() jose.SignatureAlgorithm {
	return jose.SignatureAlgorithm(k.key.Algorithm)
}
func (k publicKey) Use() string { return k.key.Use }
func (k publicKey) Key() any    { return k.key.Key }

// signingKey implements op.SigningKey.
type signingKey struct{ key jose.JSONWebKey }

func (k signingKey) ID() string { return k.key.KeyID }
func (k signingKey) SignatureAlgorithm() jose.SignatureAlgorithm {
	return jose.SignatureAlgorithm(k.key.Algorithm)
}
func (k signingKey) Key() any { return k.key.Key }
