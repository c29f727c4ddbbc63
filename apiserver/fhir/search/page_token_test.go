package search

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var (
	testKey     = bytes.Repeat([]byte{7}, TokenKeySize)
	testBinding = Binding{Site: "demo", Scope: "Patient", Query: "_count=2", Caller: "ann"}
)

func TestTokens(t *testing.T) {
	tokens := newTokens(t, testKey)
	position := Cursor{After: []byte("behind this"), Previous: []byte{}, HasPrevious: true}
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
			if diff := cmp.Diff(got, position); err == nil && diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTokensOfPages(t *testing.T) {
	tokens := newTokens(t, testKey)
	long, longest := []byte(strings.Repeat("x", 800)), []byte(strings.Repeat("x", maxTokenSize*2/3))
	for name, test := range map[string]struct{ sealed, want Cursor }{
		"no previous page":               {Cursor{After: []byte("a")}, Cursor{After: []byte("a")}},
		"the previous page is the first": {Cursor{After: []byte("a"), HasPrevious: true}, Cursor{After: []byte("a"), HasPrevious: true}},
		"a previous page":                {Cursor{After: []byte("b"), Previous: []byte("a"), HasPrevious: true}, Cursor{After: []byte("b"), Previous: []byte("a"), HasPrevious: true}},
		"too long for both":              {Cursor{After: long, Previous: long, HasPrevious: true}, Cursor{After: long}},
		"a long text":                    {Cursor{After: longest, HasPrevious: true}, Cursor{After: longest}},
	} {
		token := tokens.Seal(testBinding, test.sealed, now)
		got, err := tokens.Open(testBinding, token, now)
		if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); err != nil || diff != "" || len(token) > maxTokenSize {
			t.Errorf("%s: %d bytes, %v %s", name, len(token), err, diff)
		}
	}
}

// TestTamperedTokens replaces every character of a token by every other one.
func TestTamperedTokens(t *testing.T) {
	tokens := newTokens(t, testKey)
	sealed := tokens.Seal(testBinding, Cursor{After: []byte("p"), HasPrevious: true}, now)
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

// TestTokensAreEncrypted shows that a token reveals neither its position nor whether two tokens
// have the same one.
func TestTokensAreEncrypted(t *testing.T) {
	tokens := newTokens(t, testKey)
	one := tokens.Seal(testBinding, Cursor{After: []byte("behind this")}, now)
	content, err := encoding.DecodeString(one)
	if err != nil || bytes.Contains(content, []byte("behind")) {
		t.Errorf("a token shows its position: %q, %v", content, err)
	}
	if one == tokens.Seal(testBinding, Cursor{After: []byte("behind this")}, now) {
		t.Error("two tokens of one position are the same")
	}
}

func TestNewTokensChecksTheKey(t *testing.T) {
	for _, size := range []int{0, 16, 31, 33} {
		if _, err := NewTokens(func() [][]byte { return [][]byte{make([]byte, size)} }); err == nil {
			t.Errorf("a key of %d bytes was taken", size)
		}
	}
}

func FuzzTokens(f *testing.F) {
	tokens, err := NewTokens(func() [][]byte { return [][]byte{testKey} })
	if err != nil {
		f.Fatal(err)
	}
	f.Add("", []byte{}, []byte{}, false)
	f.Add(tokens.Seal(testBinding, Cursor{After: []byte("position")}, now), []byte("position"), []byte("before"), true)
	f.Add("AQAAAABppJ4AcG9zaXRpb24", []byte{0, 1, 2}, []byte{}, true)
	f.Fuzz(func(t *testing.T, token string, after, previous []byte, hasPrevious bool) {
		// One token of this binding is known.
		if got, err := tokens.Open(testBinding, token, now); err == nil && string(got.After) != "position" {
			t.Fatalf("%q was taken", token)
		}
		sealed := tokens.Seal(testBinding, Cursor{After: after, Previous: previous, HasPrevious: hasPrevious}, now)
		got, err := tokens.Open(testBinding, sealed, now)
		fits := len(after)+len(previous) < maxTokenOfBoth/2
		switch {
		case err != nil || !bytes.Equal(got.After, after):
			t.Fatalf("%q came back as %q, %v", after, got.After, err)
		case got.HasPrevious && (!hasPrevious || !bytes.Equal(got.Previous, previous)):
			t.Fatalf("%q came back as %q", previous, got.Previous)
		case hasPrevious && fits && !got.HasPrevious:
			t.Fatal("the previous page is gone")
		}
		if _, err := tokens.Open(Binding{Site: token}, sealed, now); err == nil {
			t.Fatal("a token was taken elsewhere")
		}
	})
}

func newTokens(t *testing.T, key []byte) Tokens {
	t.Helper()
	tokens, err := NewTokens(func() [][]byte { return [][]byte{key} })
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}
