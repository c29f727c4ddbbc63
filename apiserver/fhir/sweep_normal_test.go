package fhir_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What differs between two sites for good reason, as shapes: 0 is a digit, x a lower-case hexadecimal
// digit, A an upper-case letter, a a lower-case one, and everything else itself.
const (
	timeShape         = "0000-00-00T00:00:00."
	escapedTimeShape  = "0000-00-00T00%3A00%3A00."
	httpTimeShape     = "Aaa, 00 Aaa 0000 00:00:00 GMT"
	assignedIDShape   = "xxxxxxxx-xxxx-7xxx-xxxx-xxxxxxxxxxxx"
	capabilitiesShape = `W/"xxxxxxxxxxxxxxxx"` // the tag of metadata, which name the site
	tokenStart        = "_page_token="
)

// hasShape reports whether a text starts with a shape.
func hasShape(text, shape string) bool {
	if len(text) < len(shape) {
		return false
	}
	for i := range len(shape) {
		c := text[i]
		switch shape[i] {
		case '0':
			if c < '0' || c > '9' {
				return false
			}
		case 'x':
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		case 'A':
			if c < 'A' || c > 'Z' {
				return false
			}
		case 'a':
			if c < 'a' || c > 'z' {
				return false
			}
		default:
			if c != shape[i] {
				return false
			}
		}
	}
	return true
}

// span is how many of the first bytes of a text a function admits.
func span(text string, admits func(c byte) bool) int {
	n := 0
	for n < len(text) && admits(text[n]) {
		n++
	}
	return n
}

// timeLength is the length of a time with fractions of a second that a text starts with, 0 for none.
func timeLength(text string) int {
	for _, shape := range []string{timeShape, escapedTimeShape} {
		if !hasShape(text, shape) {
			continue
		}
		digits := span(text[len(shape):], func(c byte) bool { return c >= '0' && c <= '9' })
		if n := len(shape) + digits; digits > 0 && n < len(text) && text[n] == 'Z' {
			return n + 1
		}
	}
	return 0
}

// tokenLength is the length of a parameter with a page token that a text starts with, 0 for none.
func tokenLength(text string) int {
	rest, found := strings.CutPrefix(text, tokenStart)
	n := span(rest, func(c byte) bool {
		return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '%' || c == '-'
	})
	if !found || n == 0 {
		return 0
	}
	return len(tokenStart) + n
}

// normalize writes a text of a site without what differs between two sites for good reason. It reads
// the text once: the sweep normalizes gigabytes.
func normalize(text, siteID string) string {
	var out strings.Builder
	out.Grow(len(text))
	var chosen []string // ids that the server chose
	kept := 0           // text is written up to here
	for at := 0; at < len(text); {
		rest := text[at:]
		length, instead := 0, ""
		switch c := rest[0]; {
		case strings.HasPrefix(rest, siteID):
			length, instead = len(siteID), "SITE"
		case c == '_':
			length, instead = tokenLength(rest), "TOKEN"
		case c == 'W' && hasShape(rest, capabilitiesShape):
			length, instead = len(capabilitiesShape), "METADATA"
		case c >= 'A' && c <= 'Z' && hasShape(rest, httpTimeShape):
			length, instead = len(httpTimeShape), "TIME"
		case hasShape(rest, assignedIDShape):
			id := rest[:len(assignedIDShape)]
			if !slices.Contains(chosen, id) {
				chosen = append(chosen, id)
			}
			length, instead = len(id), fmt.Sprintf("ID%d", slices.Index(chosen, id))
		case c >= '0' && c <= '9':
			length, instead = timeLength(rest), "TIME"
		}
		if length == 0 {
			at++
			continue
		}
		out.WriteString(text[kept:at])
		out.WriteString(instead)
		at += length
		kept = at
	}
	out.WriteString(text[kept:])
	return out.String()
}

func TestNormalize(t *testing.T) {
	const id, other = "019ab1c2-7d3e-7abc-8000-0123456789ab", "019ab1c2-7d3e-7abc-8000-0123456789ac"
	for text, want := range map[string]string{
		"":                                   "",
		"/site/clinic-1/fhir clinic-2":       "/site/SITE/fhir clinic-2",
		"2026-11-23T05:46:10.123Z!":          "TIME!",
		"gt2026-11-23T05%3A46%3A10.1Z":       "gtTIME",
		"2026-11-23T05:46:10Z":               "2026-11-23T05:46:10Z",
		"2026-11-23T05:46:10.123+01:00":      "2026-11-23T05:46:10.123+01:00",
		"2026-11-23T05:46:10.12":             "2026-11-23T05:46:10.12",
		"[Mon, 23 Nov 2026 05:46:10 GMT]":    "[TIME]",
		`W/"0123456789abcdef" W/"1"`:         `METADATA W/"1"`,
		"?a=b&_page_token=Ab-_%3D0&c":        "?a=b&TOKEN&c",
		"_page_token=":                       "_page_token=",
		id + " " + other + " " + id:          "ID0 ID1 ID0",
		strings.Replace(id, "-7a", "-4a", 1): strings.Replace(id, "-7a", "-4a", 1),
		"a" + id:                             "aID0",
		"019ab1c2-7d3e-7abc-8000-01234567":   "019ab1c2-7d3e-7abc-8000-01234567",
	} {
		if got := normalize(text, "clinic-1"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
