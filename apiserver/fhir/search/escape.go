package search

import (
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// splitAlternatives splits a value at its commas. The items are still escaped.
func splitAlternatives(value string) ([]string, error) {
	items := splitUnescaped(value, ',')
	if slices.Contains(items, "") {
		return nil, fmt.Errorf("%s has an empty item; separate values by single commas", r4.Quote(value))
	}
	return items, nil
}

// splitUnescaped splits a value at each separator that no backslash escapes. R4
// search.html#escaping.
func splitUnescaped(value string, separator byte) []string {
	var parts []string
	start := 0
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '\\':
			i++
		case separator:
			parts = append(parts, value[start:i])
			start = i + 1
		}
	}
	return append(parts, value[start:])
}

// unescape replaces \, \$ \| and \\ by the second character. Any other backslash is an error.
func unescape(part string) (string, error) {
	if !strings.Contains(part, `\`) {
		return part, nil
	}
	var text strings.Builder
	for i := 0; i < len(part); i++ {
		if part[i] == '\\' {
			i++
			if i == len(part) || !strings.ContainsRune(`,$|\`, rune(part[i])) {
				return "", fmt.Errorf(`%s has a backslash that escapes nothing; it must be before , $ | or \`, r4.Quote(part))
			}
		}
		text.WriteByte(part[i])
	}
	return text.String(), nil
}
