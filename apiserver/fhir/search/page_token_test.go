package search

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

var (
	testKey     = bytes.Repeat([]byte{7}, TokenKeySize)
	testBinding = Binding{Site: "demo", Scope: "Patient", Query: "_count=2", Caller: "ann"}
)

func TestTokens(t *testing.T) {
	tokens := newTokens(t, testKey)
	position := []byte("behind this")
	sealed := tokens.Seal(testBinding, position, now)
	other := func(change func(*Binding)) Binding {
		b := testBinding
		change(&b)
		return b
	}
	tests := map[string]struct {
		tokens  Tokens
		binding Binding
		token   string
		at      time.Time
		want    error
	}{
		"taken":                    {tokens, testBinding, sealed, now, nil},
		"taken a day long":         {tokens, testBinding, sealed, now.Add(24*time.Hour - time.Second), nil},
		"expired":                  {tokens, testBinding, sealed, now.Add(24 * time.Hour), ErrTokenExpired},
		"another site":             {tokens, other(func(b *Binding) { b.Site = "other" }), sealed, now, ErrTokenForeign},
		"another scope":            {tokens, other(func(b *Binding) { b.Scope = "Person" }), sealed, now, ErrTokenForeign},
		"another query":            {tokens, other(func(b *Binding) { b.Query = "_count=3" }), sealed, now, ErrTokenForeign},
		"another caller":           {tokens, other(func(b *Binding) { b.Caller = "bob" }), sealed, now, ErrTokenForeign},
		"fields shifted":           {tokens, Binding{Site: "demoP", Scope: "atient", Query: "_count=2", Caller: "ann"}, sealed, now, ErrTokenForeign},
		"another key":              {newTokens(t, bytes.Repeat([]byte{8}, TokenKeySize)), testBinding, sealed, now, ErrTokenForeign},
		"cut off":                  {tokens, testBinding, sealed[:len(sealed)-1], now, ErrTokenForeign},
		"longer":                   {tokens, testBinding, sealed + "A", now, ErrTokenForeign},
		"a line break":             {tokens, testBinding, sealed + "\n", now, ErrTokenForeign},
		"empty":                    {tokens, testBinding, "", now, ErrTokenForeign},
		"not base64":               {tokens, testBinding, "!!", now, ErrTokenForeign},
		"expired and another site": {tokens, other(func(b *Binding) { b.Site = "x" }), sealed, now.Add(48 * time.Hour), ErrTokenForeign},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := test.tokens.Open(test.binding, test.token, test.at)
			if !errors.Is(err, test.want) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			if err == nil && !bytes.Equal(got, position) {
				t.Errorf("got the position %q", got)
			}
		})
	}
}

// TestTamperedTokens changes every character of a token to every other one.
func TestTamperedTokens(t *testing.T) {
	tokens := newTokens(t, testKey)
	sealed := tokens.Seal(testBinding, []byte("p"), now)
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for i := range sealed {
		for _, c := range []byte(alphabet) {
			if c == sealed[i] {
				continue
			}
			tampered := sealed[:i] + string(c) + sealed[i+1:]
			if _, err := tokens.Open(testBinding, tampered, now); !errors.Is(err, ErrTokenForeign) {
				t.Fatalf("with %q at %d: %v", c, i, err)
			}
		}
	}
}

func TestNewTokensChecksTheKey(t *testing.T) {
	for _, size := range []int{0, 16, 31, 33} {
		if _, err := NewTokens(make([]byte, size)); err == nil {
			t.Errorf("a key of %d bytes was taken", size)
		}
	}
}

func FuzzTokens(f *testing.F) {
	tokens, err := NewTokens(testKey)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("", []byte{})
	f.Add(tokens.Seal(testBinding, []byte("position"), now), []byte("position"))
	f.Add("AQAAAABppJ4AcG9zaXRpb24", []byte{0, 1, 2})
	f.Fuzz(func(t *testing.T, token string, position []byte) {
		if got, err := tokens.Open(testBinding, token, now); err == nil && tokens.Seal(testBinding, got, now) != token {
			t.Fatalf("%q was taken", token)
		}
		sealed := tokens.Seal(testBinding, position, now)
		got, err := tokens.Open(testBinding, sealed, now)
		if err != nil || !bytes.Equal(got, position) {
			t.Fatalf("%q came back as %q, %v", position, got, err)
		}
		if _, err := tokens.Open(Binding{Site: token}, sealed, now); err == nil {
			t.Fatal("a token was taken elsewhere")
		}
	})
}

func newTokens(t *testing.T, key []byte) Tokens {
	t.Helper()
	tokens, err := NewTokens(key)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}
