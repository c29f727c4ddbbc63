package fhir

import (
	"net/http"
	"strings"
)

// preferences are those in a Prefer header. R4 http.html#ops; RFC 7240.
type preferences struct {
	// returned is minimal, representation (the default) or OperationOutcome.
	returned string
	// handling of unknown search parameters is strict or lenient, or empty for the default of the
	// site.
	handling string
	// async is true for a request that may be answered before it is done.
	async bool
}

const (
	returnMinimal        = "minimal"
	returnRepresentation = "representation"
	returnOutcome        = "OperationOutcome"

	handlingStrict  = "strict"
	handlingLenient = "lenient"
)

// parsePreferences parses the Prefer header. It ignores other preferences.
func parsePreferences(header http.Header) preferences {
	p := preferences{returned: returnRepresentation}
	items := strings.FieldsFunc(strings.Join(header.Values("Prefer"), ","), func(r rune) bool { return r == ',' || r == ';' })
	for _, item := range items {
		name, value, _ := strings.Cut(strings.TrimSpace(item), "=")
		value = strings.Trim(value, `"`)
		switch strings.ToLower(name) {
		case "return":
			if value == returnMinimal || value == returnOutcome {
				p.returned = value
			}
		case "respond-async":
			p.async = true
		case "handling":
			if value == handlingStrict || value == handlingLenient {
				p.handling = value
			}
		}
	}
	return p
}
