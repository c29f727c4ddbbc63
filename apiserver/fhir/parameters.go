package fhir

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/jsonwalk"
)

// sentParameter is a parameter of a Parameters resource in a request. R4 parameters.html.
type sentParameter struct {
	name string
	// members are the JSON members of the parameter, such as valueCode and resource.
	members map[string]jsontext.Value
}

// isParameters reports whether text is a Parameters resource. It returns false for invalid JSON,
// whose errors the validation of a resource reports.
func isParameters(text jsontext.Value) bool {
	if text.Kind() != jsontext.KindBeginObject || !text.IsValid() {
		return false
	}
	for m := range jsonwalk.Members(text) {
		if kind, _ := unquote(m.Value); m.Name == "resourceType" && kind == "Parameters" {
			return true
		}
	}
	return false
}

// readParameters returns the parameters of a Parameters resource, see isParameters. Errors: *invalidError.
func readParameters(text []byte) ([]sentParameter, error) {
	var all []sentParameter
	for m := range jsonwalk.Members(text) { // isParameters has excluded errors
		switch {
		case m.Name != "parameter":
			continue
		case m.Value.Kind() != jsontext.KindBeginArray:
			return nil, invalidParameters("Parameters.parameter must be an array; send an array of parameters")
		}
		for element := range jsonwalk.Elements(m.Value) {
			if element.Kind() != jsontext.KindBeginObject {
				return nil, invalidParameters("Parameters.parameter must contain JSON objects; send each parameter as an object with a name and a value or resource")
			}
			p := sentParameter{members: map[string]jsontext.Value{}}
			for m := range jsonwalk.Members(element) {
				p.members[m.Name] = m.Value
			}
			p.name, _ = unquote(p.members["name"])
			all = append(all, p)
		}
	}
	return all, nil
}

// text returns the value of a parameter as a query string would have it. It returns false unless the
// parameter has one value, of a primitive type, and neither a resource nor parts (inv-1 of Parameters).
func (p sentParameter) text() (text string, ok bool) {
	if p.members["resource"] != nil || p.members["part"] != nil {
		return "", false
	}
	for name, value := range p.members {
		if !strings.HasPrefix(name, "value") {
			continue
		}
		switch {
		case ok:
			return "", false
		case value.Kind() == jsontext.KindString:
			text, ok = unquote(value)
		case value.Kind() == jsontext.KindNumber, value.Kind() == jsontext.KindTrue, value.Kind() == jsontext.KindFalse:
			text, ok = string(value), true
		default:
			return "", false
		}
	}
	return text, ok
}

// addParameters adds the parameters of a body, which is a Parameters resource or empty, to those of the
// URL. R4 operations.html#request. Errors: *web.MediaTypeError, *invalidError, and those of setQuery.
func (r *request) addParameters(body []byte) error {
	if len(body) == 0 {
		return nil
	}
	if _, err := bodyDialect(r.Header); err != nil {
		return err
	}
	if !isParameters(body) {
		return invalidParameters("the body is not a Parameters resource; send one, or send no body and the parameters in the URL")
	}
	parameters, err := readParameters(body)
	if err != nil {
		return err
	}
	merged := maps.Clone(r.query)
	for _, p := range parameters {
		value, ok := p.text()
		if !ok {
			return invalidParameters("the parameter " + r4.Quote(p.name) + " must have one value of a primitive type, such as valueCode")
		}
		merged[p.name] = append(slices.Clip(merged[p.name]), value)
	}
	return r.setQuery(merged)
}

func invalidParameters(diagnostics string) error {
	return &invalidError{code: codeInvalidParameters, diagnostics: diagnostics}
}
