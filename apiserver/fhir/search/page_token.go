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

	// A token of versionAfter carries the position of a page; one of versionBoth carries that of
	// the page before it as well.
	versionAfter = 1
	versionBoth  = 2
	expirySize   = 8
	maxToken     = 2048
)

// Cursor is what a page token carries.
type Cursor struct {
	// After is the position behind which the page starts.
	After []byte
	// Previous, if HasPrevious is set, is After of the page before; empty for the first page.
	Previous    []byte
	HasPrevious bool
}

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

// Seal returns a page token of a cursor. It leaves the previous page out where the token would
// become longer than a request may have.
func (t Tokens) Seal(to Binding, at Cursor, now time.Time) string {
	payload := make([]byte, 0, 1+expirySize+binary.MaxVarintLen64+len(at.Previous)+len(at.After)+sha256.Size)
	payload = binary.BigEndian.AppendUint64(append(payload, versionAfter), uint64(now.Add(tokenLife).Unix()))
	if at.HasPrevious && encoding.EncodedLen(cap(payload)) <= maxToken {
		payload[0] = versionBoth
		payload = append(binary.AppendUvarint(payload, uint64(len(at.Previous))), at.Previous...)
	}
	payload = append(payload, at.After...)
	return encoding.EncodeToString(append(payload, t.sign(to, payload)...))
}

// Open returns the cursor that a page token carries. Errors: ErrTokenForeign,
// ErrTokenExpired.
func (t Tokens) Open(to Binding, token string, now time.Time) (Cursor, error) {
	sealed, err := encoding.DecodeString(token)
	if err != nil || strings.ContainsAny(token, "\r\n") || len(sealed) < 1+expirySize+sha256.Size {
		return Cursor{}, ErrTokenForeign
	}
	payload, signature := sealed[:len(sealed)-sha256.Size], sealed[len(sealed)-sha256.Size:]
	if !hmac.Equal(signature, t.sign(to, payload)) {
		return Cursor{}, ErrTokenForeign
	}
	expiry := int64(binary.BigEndian.Uint64(payload[1:]))
	if now.Unix() >= expiry {
		return Cursor{}, ErrTokenExpired
	}
	rest := payload[1+expirySize:]
	switch payload[0] {
	case versionAfter:
		return Cursor{After: rest}, nil
	case versionBoth:
		size, read := binary.Uvarint(rest)
		if read <= 0 || size > uint64(len(rest)-read) {
			return Cursor{}, ErrTokenForeign
		}
		rest = rest[read:]
		return Cursor{Previous: rest[:size], After: rest[size:], HasPrevious: true}, nil
	default: // a later release's
		return Cursor{}, ErrTokenForeign
	}
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
