// Package fold writes what is compared without regard to case, accents or spelling in
// one form. What is indexed and what is searched for both go through it.
package fold

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Code is a code without case: two codes are the same if they differ in Unicode's
// simple case folding only. R4 search.html#token.
func Code(s string) string { return strings.Map(foldRune, s) }

// foldRune is the same for all runes that are one letter in different cases.
func foldRune(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	if unicode.SimpleFold(r) == r {
		return r // such as İ and ı, whose other case is another letter
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

// String is a text without case, accents, compatibility characters such as ligatures,
// and white space that says nothing. R4 search.html#string.
func String(s string) string {
	if isFolded(s) {
		return s
	}
	if !isASCII(s) {
		s = unaccented(s)
	}
	return collapsed(s)
}

// isFolded reports whether a text is seen at once to be in the folded form.
func isFolded(s string) bool {
	space := true // a text does not begin with one
	for i := range len(s) {
		c := s[i]
		if c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' || c == ' ' && space || '\t' <= c && c <= '\r' {
			return false
		}
		space = c == ' '
	}
	return !space || s == ""
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// unaccented takes characters apart, drops their marks, and folds their case. Of the
// letters that case folding makes two of, only ß is not taken apart before.
func unaccented(s string) string {
	return strings.ReplaceAll(strings.Map(withoutMarks, norm.NFKD.String(s)), "ß", "ss")
}

func withoutMarks(r rune) rune {
	if unicode.Is(unicode.Mn, r) {
		return -1
	}
	return foldRune(r)
}

// collapsed writes the letters of ASCII small, and white space as single spaces
// between words.
func collapsed(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	space := false
	for _, r := range s {
		if unicode.IsSpace(r) {
			space = b.Len() > 0
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}
