package fold

import (
	"slices"
	"strings"
	"unicode"
)

// Phonetic returns how the words of a text sound: their codes by Double Metaphone,
// each once. Words without Latin letters have none.
func Phonetic(s string) []string {
	var codes []string
	for _, word := range strings.FieldsFunc(String(s), separates) {
		first, second := metaphone(strings.Map(capital, word))
		for _, code := range []string{first, second} {
			if code != "" && !slices.Contains(codes, code) {
				codes = append(codes, code)
			}
		}
	}
	return codes
}

// separates reports whether a rune stands between words.
func separates(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '’' }

// capital is the capital of a Latin letter without an accent; others make no sound.
func capital(r rune) rune {
	if 'a' <= r && r <= 'z' {
		return r - 'a' + 'A'
	}
	return -1
}
