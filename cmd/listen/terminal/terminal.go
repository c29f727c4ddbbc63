// Package terminal makes texts of servers safe to print on a terminal, for bin/listen and kubectl-paddock.
package terminal

import "strings"

// Safe returns a text, such as one that a server sent, with its control characters replaced by spaces, so
// that it is safe to print on a terminal.
func Safe(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
}
