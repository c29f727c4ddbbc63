package list

import (
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold is a text without case, in Unicode's normal form: how filters and orders compare
// free text.
func Fold(text string) string { return norm.NFC.String(cases.Fold().String(norm.NFC.String(text))) }
