package fold

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestCode(t *testing.T) {
	for code, want := range map[string]string{
		"": "", "M": "m", "urn:OID:1.2": "urn:oid:1.2", "É": "é", "é": "é", "e": "e",
		"\u212a": "k" /* the sign for kelvin */, "ς": "σ", "Σ": "σ", "İ": "İ", "ẞ": "ß", "ss": "ss",
	} {
		if got := Code(code); got != want {
			t.Errorf("%q is folded to %q, want %q", code, got, want)
		}
	}
}

func TestString(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "bella": "bella", "Bella": "bella", " a\t b\r\n": "a b", "  ": "", "Zoë": "zoe", "ZOË": "zoe", "Zoe\u0308": "zoe",
		"Straße": "strasse", "STRASSE": "strasse", "O'Brien-Smith, Jr.": "o'brien-smith, jr.", "ﬁn": "fin", "İstanbul": "istanbul",
		"ΟΔΥΣΣΕΎΣ": "οδυσσευσ", "猫": "猫", "a\u00a0b": "a b", "①": "1", "Łódź": "łodz", "\U00010400": "\U00010428",
	} {
		if got := String(text); got != want {
			t.Errorf("%q is folded to %q, want %q", text, got, want)
		}
	}
}

// TestEveryLetter runs the checks of the fuzz targets for every letter.
func TestEveryLetter(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		letter := string(r)
		folded := String(letter)
		if String(folded) != folded {
			t.Errorf("%U is folded to %q, and that to %q", r, folded, String(folded))
		}
		if next := string(unicode.SimpleFold(r)); Code(next) != Code(letter) {
			t.Errorf("%U is folded to %q as a code, and %q to %q", r, Code(letter), next, Code(next))
		}
		if unicode.Is(unicode.Mn, r) {
			continue // of which one has a letter for its upper case
		}
		for _, other := range []string{strings.ToUpper(letter), strings.ToLower(letter)} {
			if strings.EqualFold(letter, other) && String(other) != folded {
				t.Errorf("%U is folded to %q, and %q to %q", r, folded, other, String(other))
			}
		}
	}
}

// FuzzCode shows that codes that are equal without regard to case are folded to the same code.
func FuzzCode(f *testing.F) {
	f.Add("Code", "cODE")
	f.Add("ſ", "S")
	f.Add("ᲀ", "В")
	f.Add("İ", "i")
	f.Fuzz(func(t *testing.T, a, b string) {
		if got, want := Code(a) == Code(b), strings.EqualFold(a, b); got != want {
			t.Errorf("%q and %q: folded alike: %v, but the same without case: %v", a, b, got, want)
		}
		if once := Code(a); Code(once) != once {
			t.Errorf("%q is folded to %q, and that to %q", a, once, Code(once))
		}
	})
}

// FuzzString shows that a folded text is not changed by folding, and that a prefix of a text is
// folded to a prefix of the folded text. Prefix searches rely on it.
func FuzzString(f *testing.F) {
	f.Add("Bel", "la")
	f.Add(" a\t", " b")
	f.Add("e", "\u0301x")
	f.Add("각", "ᆨ")
	f.Add("Straß", "e")
	f.Add("\u0345", "Α")
	f.Add("´", "a")
	f.Add("\u1100", "\u1161")
	f.Fuzz(func(t *testing.T, a, b string) {
		if !utf8.ValidString(a) || !utf8.ValidString(b) {
			return // what JSON holds is valid
		}
		begin, whole := String(a), String(a+b)
		if String(whole) != whole {
			t.Errorf("%q is folded to %q, and that to %q", a+b, whole, String(whole))
		}
		if !strings.HasPrefix(whole, begin) {
			t.Errorf("%q is folded to %q, which does not begin with %q, as %q is folded", a+b, whole, begin, a)
		}
	})
}
