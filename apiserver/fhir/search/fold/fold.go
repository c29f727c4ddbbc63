// Package fold normalizes texts that are compared without regard to case, accents or spelling. Both
// indexed and searched texts are folded.
package fold

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Code folds the case of a code. It returns the same text for codes that are equal under Unicode's
// simple case folding. R4 search.html#token.
func Code(s string) string { return strings.Map(foldRune, s) }

// foldRune maps all cases of one letter to the same rune.
func foldRune(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	if unicode.SimpleFold(r) == r {
		return r // such as İ and ı, which have no simple case folding
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

// String folds a text: it removes case, accents and redundant white space, and replaces compatibility
// characters such as ligatures by plain letters. R4 search.html#string.
func String(s string) string {
	if isFolded(s) {
		return s
	}
	if !isASCII(s) {
		s = removeAccents(s)
	}
	return collapseSpace(s)
}

// isFolded reports whether a quick check shows that a text is already folded.
func isFolded(s string) bool {
	space := true // a folded text does not start with a space
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

// removeAccents decomposes characters, drops combining marks and folds case. It replaces ß by ss,
// because ß is the only letter that decomposition leaves and whose full case folding has two
// letters.
func removeAccents(s string) string {
	return strings.ReplaceAll(strings.Map(foldLetter, norm.NFKD.String(s)), "ß", "ss")
}

// foldLetter drops combining marks and folds letters, for strings.Map.
func foldLetter(r rune) rune {
	if unicode.Is(unicode.Mn, r) {
		return -1
	}
	return foldRune(r)
}

// collapseSpace makes ASCII letters lower case, and white space single spaces between words.
func collapseSpace(s string) string {
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
