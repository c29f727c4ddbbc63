package r4

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/jsonwalk"
)

// AppendSummary appends the projection of a resource for _summary=true to dst: the summary elements
// at all levels, and the elements and the tag that AppendSubset adds. R4 search.html#summary.
func AppendSummary(dst, resource []byte, typeName string) ([]byte, error) {
	typ, _ := resourceNamed([]byte(typeName))
	short, err := appendSummaryObject(nil, resource, typ)
	if err != nil {
		return nil, fmt.Errorf("summarize a resource of type %s: %w", typeName, err)
	}
	return AppendSubset(dst, short, typeName, topElements(typ, func(e *element) bool { return e.is&summary != 0 }))
}

// AppendData appends the projection of a resource for _summary=data to dst: all elements except
// text. meta gets the tag SUBSETTED. R4 search.html#summary.
func AppendData(dst, resource []byte, typeName string) ([]byte, error) {
	typ, _ := resourceNamed([]byte(typeName))
	return AppendSubset(dst, resource, typeName, topElements(typ, func(e *element) bool { return e.name != "text" }))
}

func topElements(typ typeIndex, wanted func(*element) bool) []string {
	var names []string
	for i := range types[typ].elements {
		if e := &types[typ].elements[i]; wanted(e) {
			names = append(names, e.name)
		}
	}
	return names
}

// appendSummaryObject appends an object with the summary elements of its values. The elements of a
// resource itself are all kept here. AppendSubset selects them afterwards.
func appendSummaryObject(dst, object []byte, typ typeIndex) ([]byte, error) {
	dst = append(dst, '{')
	empty := len(dst)
	for m, err := range jsonwalk.Members(object) {
		if err != nil {
			return dst, err
		}
		e := lookup(typ, []byte(strings.TrimPrefix(m.Name, "_")))
		if e != nil && !typ.isResource() && !isInSummary(e, typ) {
			continue
		}
		before := len(dst)
		if before > empty {
			dst = append(dst, ',')
		}
		if e == nil || m.Name != e.name || e.typ.isPrimitive() || e.typ.isResource() || e.typ == typeExtension || e.typ == typeMeta {
			dst = appendMember(dst, m)
			continue
		}
		dst = append(append(dst, m.RawName...), ':')
		value := len(dst)
		if dst, err = appendSummaryValue(dst, m.Value, e.typ); err != nil {
			return dst, err
		}
		if isEmpty(dst[value:]) {
			dst = dst[:before]
		}
	}
	return append(dst, '}'), nil
}

// isEmpty reports whether an object or an array is empty. FHIR does not allow empty objects and
// arrays, so a projection omits them.
func isEmpty(value []byte) bool { return string(value) == "{}" || string(value) == "[]" }

// isInSummary reports whether a summary has an element of a datatype or component: a summary
// element, a required element, an id or an extension.
func isInSummary(e *element, of typeIndex) bool {
	return e.is&summary != 0 || types[of].required&e.bit() != 0 || slices.Contains([]string{"id", "extension"}, e.name)
}

// appendSummaryValue applies appendSummaryObject to an object or to each object of an array.
func appendSummaryValue(dst, value []byte, typ typeIndex) ([]byte, error) {
	switch jsontext.Value(value).Kind() {
	case jsontext.KindBeginObject:
		return appendSummaryObject(dst, value, typ)
	case jsontext.KindBeginArray:
		dst = append(dst, '[')
		empty := len(dst)
		for item, err := range jsonwalk.Elements(value) {
			if err != nil {
				return dst, err
			}
			before := len(dst)
			if before > empty {
				dst = append(dst, ',')
			}
			value := len(dst)
			if dst, err = appendSummaryValue(dst, item, typ); err != nil {
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
