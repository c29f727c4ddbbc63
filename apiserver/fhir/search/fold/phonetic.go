package fold

import (
	"strings"
	"unicode"
)

// Phonetic returns the Double Metaphone codes of the words of a text, each once. Words without
// Latin letters have none.
func Phonetic(s string) []string {
	var codes []string
	known := map[string]bool{"": true}
	for _, word := range strings.FieldsFunc(String(s), isSeparator) {
		first, second := metaphone(strings.Map(toCapital, word))
		for _, code := range []string{first, second} {
			if !known[code] {
				known[code] = true
				codes = append(codes, code)
			}
		}
	}
	return codes
}

// isSeparator reports whether a rune separates words.
func isSeparator(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '’' }

// toCapital returns the capital of an unaccented Latin letter, and -1 for any other rune, which
// strings.Map drops.
func toCapital(r rune) rune {
	if 'a' <= r && r <= 'z' {
		return r - 'a' + 'A'
	}
	return -1
}
