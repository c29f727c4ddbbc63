package fault

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// Nearest says which known name an unknown one was probably meant to be, as an end of a
// sentence; without a likely one it lists them all.
func Nearest(unknown string, known []string) string {
	const likely = 3 // as many letters may differ, and at most half of them
	best, distance := "", min(likely, len(unknown)/2)+1
	for _, name := range known {
		if len(unknown) > longestQuote {
			break
		}
		if d := levenshtein.ComputeDistance(strings.ToLower(unknown), strings.ToLower(name)); d < distance {
			best, distance = name, d
		}
	}
	if best != "" {
		return "; did you mean " + best + "?"
	}
	return "; known are " + strings.Join(known, ", ")
}

// longestQuote is how much of what a client sent is repeated in an error.
const longestQuote = 64

// Quote repeats what a client sent, shortened.
func Quote(text string) string {
	if runes := []rune(text); len(runes) > longestQuote {
		text = string(runes[:longestQuote]) + "…"
	}
	return `"` + strings.ToValidUTF8(text, "\uFFFD") + `"`
}
