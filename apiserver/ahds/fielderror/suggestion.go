package fielderror

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// Suggest returns the end of a message about an unknown name: the known name that is most similar,
// or all known names if none is similar.
func Suggest(unknown string, known []string) string {
	const maxDistance = 3 // and at most half of the letters
	best, distance := "", min(maxDistance, len(unknown)/2)+1
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
	return "; known names are " + strings.Join(known, ", ")
}

// longestQuote is how many characters of a client's text a message repeats. Longer text is
// truncated.
const longestQuote = 64

// Quote quotes text of a client for a message. Long text is truncated.
func Quote(text string) string {
	if runes := []rune(text); len(runes) > longestQuote {
		text = string(runes[:longestQuote]) + "…"
	}
	return `"` + strings.ToValidUTF8(text, "\uFFFD") + `"`
}
