package search

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// TokenKeySize is the length of a page token key in bytes.
	TokenKeySize = 32
	// tokenLifetime is how long a page token is valid.
	tokenLifetime = 24 * time.Hour

	// The first byte of a token's content is its version. versionAfter has Cursor.After,
	// versionBoth also Cursor.Previous. Versions 1 and 2 were signed, not encrypted.
	versionAfter = 3
	versionBoth  = 4
	expirySize   = 8
	// maxTokenSize is the maximum length of a page token in bytes. A longer token is refused. The
	// maximum is half of what the server accepts of a request line and headers. A token has the text by
	// which the last record of its page is sorted, so it may be long.
	maxTokenSize = 32 << 10
	// maxTokenOfBoth is the maximum length of a token with Previous, in bytes. It leaves room for other
	// parameters in the 8,000 bytes of an address that all recipients should accept (RFC 9110 §4.1).
	maxTokenOfBoth = 2048
)

// Cursor is the position in a page token.
type Cursor struct {
	// After is the position after which the page starts. It is empty for the first page.
	After []byte
	// Previous is After of the previous page. It is valid only if HasPrevious is true, and is empty if
	// the previous page is the first one.
	Previous    []byte
	HasPrevious bool
}

// Binding is the scope in which a page token is valid. The token is rejected with any other Binding.
type Binding struct {
	// Site is the siteID.
	Site string
	// Scope is the collection with the pages, such as a type or the history of a record.
	Scope string
	// Query is the query in canonical form.
	Query string
	// Caller is the name of the caller that received the token.
	Caller string
	// View is store.Restricted.Digest of the types whose records affect the result.
	View string
}

// The errors of page tokens. In messages, they follow the name of the parameter.
var (
	ErrTokenForeign = errors.New("the token was not made by this server for this site, address, query and caller; follow the next link unchanged, or start again without it")
	ErrTokenExpired = errors.New("the token has expired; start again without it")
)

// Tokens makes and opens page tokens. The tokens are encrypted, because a position can reveal when a
// hidden record was written. All replicas must share the keys.
type Tokens struct{ keys func() [][]byte }

// NewTokens returns Tokens with the given keys. The first key encrypts, and all of them decrypt.
// keys is called for each token, so that keys can be rotated. It must return one or more keys of
// TokenKeySize bytes.
func NewTokens(keys func() [][]byte) (Tokens, error) {
	if keys == nil || len(keys()) == 0 {
		return Tokens{}, errors.New("make page tokens: there is no key; one or more are required")
	}
	for _, key := range keys() {
		if len(key) != TokenKeySize {
			return Tokens{}, fmt.Errorf("make page tokens: a key has %d bytes; each must have %d", len(key), TokenKeySize)
		}
	}
	return Tokens{keys: keys}, nil
}

// encoding is strict, so that each token has one encoding. The decoder ignores line breaks, so Open
// rejects them.
var encoding = base64.RawURLEncoding.Strict()

// Seal returns a page token with a cursor, which is valid for tokenLifetime from now. It omits
// Previous if the token could become longer than maxTokenOfBoth bytes.
func (t Tokens) Seal(to Binding, at Cursor, now time.Time) string {
	payload := make([]byte, 0, 1+expirySize+binary.MaxVarintLen64+len(at.Previous)+len(at.After))
	payload = binary.BigEndian.AppendUint64(append(payload, versionAfter), uint64(now.Add(tokenLifetime).Unix()))
	sealer := newSealer(t.keys()[0])
	if at.HasPrevious && encoding.EncodedLen(sealer.NonceSize()+cap(payload)+sealer.Overhead()) <= maxTokenOfBoth {
		payload[0] = versionBoth
		payload = append(binary.AppendUvarint(payload, uint64(len(at.Previous))), at.Previous...)
	}
	payload = append(payload, at.After...)
	nonce := make([]byte, sealer.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return encoding.EncodeToString(sealer.Seal(nonce, nonce, payload, to.bytes()))
}

// Open returns the cursor in a page token. Errors: ErrTokenForeign, ErrTokenExpired.
func (t Tokens) Open(to Binding, token string, now time.Time) (Cursor, error) {
	sealed, err := encoding.DecodeString(token)
	if err != nil || strings.ContainsAny(token, "\r\n") {
		return Cursor{}, ErrTokenForeign
	}
	payload := t.unseal(to, sealed)
	if len(payload) < 1+expirySize {
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
	default: // the version of a later release
		return Cursor{}, ErrTokenForeign
	}
}

// unseal decrypts a token with the key that encrypted it. It returns nil if no key decrypts it for
// this binding.
func (t Tokens) unseal(to Binding, sealed []byte) []byte {
	for _, key := range t.keys() {
		sealer := newSealer(key)
		if len(sealed) < sealer.NonceSize() {
			return nil
		}
		payload, err := sealer.Open(nil, sealed[:sealer.NonceSize()], sealed[sealer.NonceSize():], to.bytes())
		if err == nil {
			return payload
		}
	}
	return nil
}

// newSealer returns AES-256-GCM with a key derived from a key of page tokens.
func newSealer(key []byte) cipher.AEAD {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("encryption of page tokens"))
	block, err := aes.NewCipher(mac.Sum(nil))
	if err == nil {
		var sealer cipher.AEAD
		if sealer, err = cipher.NewGCM(block); err == nil {
			return sealer
		}
	}
	panic(err) // the key has 32 bytes
}

// bytes encodes each field with its length, so that different bindings have different encodings.
func (b Binding) bytes() []byte {
	fields := []string{"page token", b.Site, b.Scope, b.Query, b.Caller, b.View}
	size := 0
	for _, field := range fields {
		size += 8 + len(field)
	}
	bound := make([]byte, 0, size)
	for _, field := range fields {
		bound = binary.BigEndian.AppendUint64(bound, uint64(len(field)))
		bound = append(bound, field...)
	}
	return bound
}
