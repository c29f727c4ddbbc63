package r4

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// AppendSummary appends the part of a resource that R4 has in summaries, at all
// depths, as AppendSubset does. R4 search.html#summary.
func AppendSummary(dst, resource []byte, typeName string) ([]byte, error) {
	typ, _ := resourceNamed([]byte(typeName))
	short, err := appendShort(nil, resource, typ)
	if err != nil {
		return nil, fmt.Errorf("take the summary of a %s: %w", typeName, err)
	}
	return AppendSubset(dst, short, typeName, elementsAtTop(typ, func(e *element) bool { return e.is&summary != 0 }))
}

// AppendData appends a resource without its text, as AppendSubset does.
func AppendData(dst, resource []byte, typeName string) ([]byte, error) {
	typ, _ := resourceNamed([]byte(typeName))
	return AppendSubset(dst, resource, typeName, elementsAtTop(typ, func(e *element) bool { return e.name != "text" }))
}

func elementsAtTop(typ typeIndex, wanted func(*element) bool) []string {
	var names []string
	for i := range types[typ].elements {
		if e := &types[typ].elements[i]; wanted(e) {
			names = append(names, e.name)
		}
	}
	return names
}

// appendShort appends an object of a type with only what summaries have inside its
// elements. Which of these are in a summary themselves is looked at where it is inside
// another: at the top that is decided later.
func appendShort(dst, object []byte, typ typeIndex) ([]byte, error) {
	dst = append(dst, '{')
	empty := len(dst)
	err := eachMember(object, func(m member) error {
		e := lookup(typ, []byte(strings.TrimPrefix(m.name, "_")))
		if e != nil && !typ.isResource() && !isInSummary(e, typ) {
			return nil
		}
		before := len(dst)
		if before > empty {
			dst = append(dst, ',')
		}
		if e == nil || m.name != e.name || e.typ.isPrimitive() || e.typ.isResource() || e.typ == typeExtension || e.typ == typeMeta {
			dst = m.append(dst)
			return nil
		}
		dst = append(append(dst, m.rawName...), ':')
		value := len(dst)
		var err error
		if dst, err = appendShortValue(dst, m.value, e.typ); isEmpty(dst[value:]) {
			dst = dst[:before]
		}
		return err
	})
	return append(dst, '}'), err
}

// isEmpty reports whether nothing is left of an object or an array: there are no empty
// ones in FHIR.
func isEmpty(value []byte) bool { return string(value) == "{}" || string(value) == "[]" }

// isInSummary reports whether summaries have an element of what is inside a resource.
// They keep what carries the rest: ids, extensions and what must be there.
func isInSummary(e *element, of typeIndex) bool {
	return e.is&summary != 0 || types[of].required&e.bit() != 0 || slices.Contains([]string{"id", "extension"}, e.name)
}

// appendShortValue appends an object, or an array of them, likewise.
func appendShortValue(dst, value []byte, typ typeIndex) ([]byte, error) {
	switch jsontext.Value(value).Kind() {
	case jsontext.KindBeginObject:
		return appendShort(dst, value, typ)
	case jsontext.KindBeginArray:
		decoder := jsontext.NewDecoder(bytes.NewBuffer(value))
		if _, err := decoder.ReadToken(); err != nil {
			return dst, err
		}
		dst = append(dst, '[')
		empty := len(dst)
		for decoder.PeekKind() != jsontext.KindEndArray {
			item, err := decoder.ReadValue()
			if err != nil {
				return dst, err
			}
			before := len(dst)
			if before > empty {
				dst = append(dst, ',')
			}
			value := len(dst)
			if dst, err = appendShortValue(dst, item, typ); err != nil {
				return dst, err
			}
			if isEmpty(dst[value:]) {
				dst = dst[:before]
			}
		}
		return append(dst, ']'), nil
	default:
		return append(dst, value...), nil
	}
}
