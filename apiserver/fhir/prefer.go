package fhir

import (
	"net/http"
	"strings"
)

// preferences of a Prefer header. R4 http.html#ops; RFC 7240.
type preferences struct {
	// answer is minimal, representation or OperationOutcome.
	answer string
	// handling of unknown search parameters is strict or lenient, empty for what the
	// site does.
	handling string
}

const (
	answerMinimal        = "minimal"
	answerRepresentation = "representation"
	answerOutcome        = "OperationOutcome"

	handlingStrict  = "strict"
	handlingLenient = "lenient"
)

// parsePreferences reads what it knows; other preferences are to be ignored.
func parsePreferences(header http.Header) preferences {
	p := preferences{answer: answerRepresentation}
	items := strings.FieldsFunc(strings.Join(header.Values("Prefer"), ","), func(r rune) bool { return r == ',' || r == ';' })
	for _, item := range items {
		name, value, _ := strings.Cut(strings.TrimSpace(item), "=")
		value = strings.Trim(value, `"`)
		switch strings.ToLower(name) {
		case "return":
			if value == answerMinimal || value == answerOutcome {
				p.answer = value
			}
		case "handling":
			if value == handlingStrict || value == handlingLenient {
				p.handling = value
			}
		}
	}
	return p
}
