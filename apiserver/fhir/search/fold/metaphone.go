package fold

import "strings"

// codeLength is the maximum number of letters of a code. Longer codes would distinguish names that
// sound alike.
const codeLength = 4

// metaphone returns the two Double Metaphone codes of a word in capitals, which are often equal.
// Lawrence Philips, "The Double Metaphone Search Algorithm", C/C++ Users Journal 18(6).
func metaphone(capitals string) (first, second string) {
	w := word{letters: capitals, last: len(capitals) - 1}
	w.slavic = strings.ContainsAny(capitals, "WK") || strings.Contains(capitals, "CZ")
	w.germanic = w.has(0, "SCH")
	at := 0
	if w.has(0, "GN", "KN", "PN", "WR", "PS") {
		at = 1
	}
	for at <= w.last && (len(first) < codeLength || len(second) < codeLength) {
		sound := w.sound(at)
		first += sound.first
		second += sound.second
		at += sound.letters
	}
	return first[:min(len(first), codeLength)], second[:min(len(second), codeLength)]
}

// word is the input of metaphone.
type word struct {
	letters string
	last    int
	// slavic and germanic are guesses at the origin of the word.
	slavic, germanic bool
}

// sound has the codes of some letters in two pronunciations.
type sound struct {
	first, second string
	// letters is how many letters of the word the sound has.
	letters int
}

// as returns a sound with one pronunciation.
func as(code string, letters int) sound { return sound{code, code, letters} }

// at returns the letter at an index, or 0.
func (w *word) at(i int) byte {
	if i < 0 || i > w.last {
		return 0
	}
	return w.letters[i]
}

// has reports whether one of the texts starts at an index.
func (w *word) has(i int, texts ...string) bool {
	if i < 0 || i > w.last {
		return false
	}
	for _, text := range texts {
		if strings.HasPrefix(w.letters[i:], text) {
			return true
		}
	}
	return false
}

// oneOf reports whether the letter at an index is one of letters.
func (w *word) oneOf(i int, letters string) bool {
	return i >= 0 && i <= w.last && strings.IndexByte(letters, w.letters[i]) >= 0
}

func (w *word) vowel(i int) bool { return w.oneOf(i, "AEIOUY") }

// run returns how many letters the sound has: two if the next letter is one of next, else one.
func (w *word) run(i int, next string) int {
	if w.oneOf(i+1, next) {
		return 2
	}
	return 1
}

// plain are the letters that always sound the same. A doubled letter is read once.
var plain = map[byte]string{'B': "P", 'F': "F", 'K': "K", 'N': "N", 'Q': "K", 'V': "F"}

// sound returns the sound that starts at an index.
func (w *word) sound(i int) sound {
	letter := w.letters[i]
	if code, ok := plain[letter]; ok {
		return as(code, w.run(i, string(letter)))
	}
	switch letter {
	case 'A', 'E', 'I', 'O', 'U', 'Y':
		if i == 0 {
			return as("A", 1)
		}
	case 'C':
		return w.c(i)
	case 'D':
		return w.d(i)
	case 'G':
		return w.g(i)
	case 'H':
		if (i == 0 || w.vowel(i-1)) && w.vowel(i+1) {
			return as("H", 2)
		}
	case 'J':
		return w.j(i)
	case 'L':
		return w.l(i)
	case 'M':
		return w.m(i)
	case 'P':
		return w.p(i)
	case 'R':
		return w.r(i)
	case 'S':
		return w.s(i)
	case 'T':
		return w.t(i)
	case 'W':
		return w.w(i)
	case 'X':
		return w.x(i)
	case 'Z':
		return w.z(i)
	}
	return sound{letters: 1}
}
