package r4

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/jsonwalk"
)

// alwaysKept are the members that each projection of a resource has, because they identify the
// resource or change its meaning.
var alwaysKept = []string{"resourceType", "id", "meta", "implicitRules", "modifierExtension"}

// subsettedTag is the tag of a projection, a code of observationValue. R4 search.html#elements.
const (
	observationValue = "http://terminology.hl7.org/CodeSystem/v3-ObservationValue"
	subsettedTag     = `{"system":"` + observationValue + `","code":"SUBSETTED","display":"subsetted"}`
)

// IsSubset reports whether a resource has the tag of a projection, which may lack elements of its record.
func IsSubset(resource []byte) bool {
	if !bytes.Contains(resource, []byte("SUBSETTED")) {
		return false
	}
	var tagged struct {
		Meta struct {
			Tag []struct{ System, Code string }
		}
	}
	return json.Unmarshal(resource, &tagged) == nil && slices.ContainsFunc(tagged.Meta.Tag, func(tag struct{ System, Code string }) bool {
		return tag.System == observationValue && tag.Code == "SUBSETTED"
	})
}

// AppendSubset appends a projection of a resource to dst: the given elements, those that R4
// requires, resourceType, id, meta, implicitRules and modifierExtension. meta gets the tag
// SUBSETTED; a resource without meta gets none. R4 search.html#elements.
func AppendSubset(dst, resource []byte, typeName string, elements []string) ([]byte, error) {
	typ, _ := resourceNamed([]byte(typeName))
	dst = append(dst, '{')
	first := true
	for m, err := range jsonwalk.Members(resource) {
		if err != nil {
			return nil, fmt.Errorf("select the elements of a resource of type %s: %w", typeName, err)
		}
		if !isKept(strings.TrimPrefix(m.Name, "_"), typ, elements) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		if m.Name != "meta" {
			dst = appendMember(dst, m)
		} else if dst, err = appendTagged(append(append(dst, m.RawName...), ':'), m.Value); err != nil {
			return nil, fmt.Errorf("select the elements of a resource of type %s: %w", typeName, err)
		}
	}
	return append(dst, '}'), nil
}

// appendTagged appends a meta object with the tag SUBSETTED as its first tag.
func appendTagged(dst, meta []byte) ([]byte, error) {
	dst = append(dst, '{')
	tagged := false
	for m, err := range jsonwalk.Members(meta) {
		if err != nil {
			return dst, err
		}
		if m.Name != "tag" || m.Value[0] != '[' {
			dst = append(appendMember(dst, m), ',')
			continue
		}
		tagged = true
		dst = append(append(append(dst, m.RawName...), ":["...), subsettedTag...)
		if rest := bytes.TrimSpace(m.Value[1:]); rest[0] != ']' {
			dst = append(dst, ',')
		}
		dst = append(append(dst, m.Value[1:]...), ',')
	}
	if !tagged {
		dst = append(append(append(dst, `"tag":[`...), subsettedTag...), `],`...)
	}
	dst[len(dst)-1] = '}'
	return dst, nil
}

func isKept(name string, typ typeIndex, elements []string) bool {
	e := lookup(typ, []byte(name))
	if e == nil {
		return slices.Contains(alwaysKept, name)
	}
	return types[typ].required&e.bit() != 0 || slices.Contains(alwaysKept, name) ||
		slices.Contains(elements, name) || slices.Contains(elements, e.base())
}

// appendMember appends a member as it is written.
func appendMember(dst []byte, m jsonwalk.Member) []byte {
	dst = append(append(dst, m.RawName...), ':')
	return append(dst, m.Value...)
}
