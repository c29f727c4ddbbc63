package list

import (
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold returns text case-folded and in Unicode normal form NFC, as filters and sort orders compare
// free text.
func Fold(text string) string { return norm.NFC.String(cases.Fold().String(norm.NFC.String(text))) }
