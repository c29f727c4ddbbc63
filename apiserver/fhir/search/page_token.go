package search

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// TokenKeySize is how long the key of page tokens is, in bytes.
	TokenKeySize = 32
	// tokenLife is how long a page token is taken.
	tokenLife = 24 * time.Hour

	tokenVersion = 1
	expirySize   = 8
	maxToken     = 2048
)

// Binding is what a page token belongs to; nowhere else is it taken.
type Binding struct {
	// Site is the siteID.
	Site string
	// Scope is what is paged through: a type, or the history of a record.
	Scope string
	// Query in its canonical form.
	Query string
	// Caller is the name of who was given the token.
	Caller string
}

// The reasons not to take a page token.
var (
	ErrTokenForeign = errors.New("was not made by this server for this site, address, query and caller; take the next link as it is")
	ErrTokenExpired = errors.New("is expired; start again without it")
)

// Tokens seals positions into page tokens. All replicas of a server share its key.
type Tokens struct{ key []byte }

// NewTokens takes the key that seals page tokens.
func NewTokens(key []byte) (Tokens, error) {
	if len(key) != TokenKeySize {
		return Tokens{}, fmt.Errorf("make page tokens: the key has %d bytes, it must have %d", len(key), TokenKeySize)
	}
	return Tokens{key: key}, nil
}

// encoding is strict, so that no two texts say the same token; line breaks, which
// it passes over all the same, are refused.
var encoding = base64.RawURLEncoding.Strict()

// Seal makes a page token of a position.
func (t Tokens) Seal(to Binding, position []byte, now time.Time) string {
	payload := append(make([]byte, 0, 1+expirySize+len(position)+sha256.Size), tokenVersion)
	payload = binary.BigEndian.AppendUint64(payload, uint64(now.Add(tokenLife).Unix()))
	payload = append(payload, position...)
	return encoding.EncodeToString(append(payload, t.sign(to, payload)...))
}

// Open returns the position that a page token carries. Errors: ErrTokenForeign,
// ErrTokenExpired.
func (t Tokens) Open(to Binding, token string, now time.Time) ([]byte, error) {
	sealed, err := encoding.DecodeString(token)
	if err != nil || strings.ContainsAny(token, "\r\n") || len(sealed) < 1+expirySize+sha256.Size {
		return nil, ErrTokenForeign
	}
	payload, signature := sealed[:len(sealed)-sha256.Size], sealed[len(sealed)-sha256.Size:]
	if !hmac.Equal(signature, t.sign(to, payload)) || payload[0] != tokenVersion {
		return nil, ErrTokenForeign
	}
	expiry := int64(binary.BigEndian.Uint64(payload[1:]))
	if now.Unix() >= expiry {
		return nil, ErrTokenExpired
	}
	return payload[1+expirySize:], nil
}

// sign covers every field with its length, so that none can run into the next.
func (t Tokens) sign(to Binding, payload []byte) []byte {
	fields := []string{"page token", to.Site, to.Scope, to.Query, to.Caller, string(payload)}
	size := 0
	for _, field := range fields {
		size += 8 + len(field)
	}
	signed := make([]byte, 0, size)
	for _, field := range fields {
		signed = binary.BigEndian.AppendUint64(signed, uint64(len(field)))
		signed = append(signed, field...)
	}
	mac := hmac.New(sha256.New, t.key)
	mac.Write(signed)
	return mac.Sum(nil)
}
