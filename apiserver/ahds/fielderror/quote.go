package fielderror

import "strings"

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
