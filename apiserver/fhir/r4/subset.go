package r4

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// always are the elements that a part of a resource keeps, whatever is asked for:
// what identifies it, and what changes how the rest is to be understood.
var always = []string{"resourceType", "id", "meta", "implicitRules", "modifierExtension"}

// subsetted is the tag of a part of a resource. R4 search.html#elements.
const subsetted = `{"system":"http://terminology.hl7.org/CodeSystem/v3-ObservationValue","code":"SUBSETTED","display":"subsetted"}`

// AppendSubset appends the part of a resource that consists of the elements named,
// those that R4 requires, and those that are always there. The tag SUBSETTED in
// its meta says that it is a part.
func AppendSubset(dst, resource []byte, typeName string, elements []string) ([]byte, error) {
	typ, _ := resourceNamed([]byte(typeName))
	dst = append(dst, '{')
	first := true
	err := eachMember(resource, func(m member) error {
		if !isKept(strings.TrimPrefix(m.name, "_"), typ, elements) {
			return nil
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		if m.name != "meta" {
			dst = m.append(dst)
			return nil
		}
		var err error
		dst, err = appendTagged(append(append(dst, m.rawName...), ':'), m.value)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("take a part of a %s: %w", typeName, err)
	}
	return append(dst, '}'), nil
}

// appendTagged appends a meta object with the tag SUBSETTED as its first tag.
func appendTagged(dst, meta []byte) ([]byte, error) {
	dst = append(dst, '{')
	tagged := false
	err := eachMember(meta, func(m member) error {
		if m.name != "tag" || m.value[0] != '[' {
			dst = append(m.append(dst), ',')
			return nil
		}
		tagged = true
		dst = append(append(append(dst, m.rawName...), ":["...), subsetted...)
		if rest := bytes.TrimSpace(m.value[1:]); rest[0] != ']' {
			dst = append(dst, ',')
		}
		dst = append(append(dst, m.value[1:]...), ',')
		return nil
	})
	if !tagged {
		dst = append(append(append(dst, `"tag":[`...), subsetted...), `],`...)
	}
	dst[len(dst)-1] = '}'
	return dst, err
}

func isKept(name string, typ typeIndex, elements []string) bool {
	e := lookup(typ, []byte(name))
	if e == nil {
		return slices.Contains(always, name)
	}
	return types[typ].required&e.bit() != 0 || slices.Contains(always, name) ||
		slices.Contains(elements, name) || slices.Contains(elements, e.base())
}

// member is one member of an object, as it is written.
type member struct {
	name           string
	rawName, value []byte
}

func (m member) append(dst []byte) []byte {
	dst = append(append(dst, m.rawName...), ':')
	return append(dst, m.value...)
}

func eachMember(object []byte, visit func(member) error) error {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(object))
	if _, err := decoder.ReadToken(); err != nil {
		return err
	}
	for decoder.PeekKind() != jsontext.KindEndObject {
		name, err := decoder.ReadValue()
		if err != nil {
			return err
		}
		value, err := decoder.ReadValue()
		if err != nil {
			return err
		}
		unquoted, err := jsontext.AppendUnquote(nil, name)
		if err != nil {
			return err
		}
		if err := visit(member{string(unquoted), name, value}); err != nil {
			return err
		}
	}
	return nil
}
