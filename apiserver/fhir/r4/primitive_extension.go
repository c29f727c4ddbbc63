package r4

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/jsonwalk"
)

// primitiveExtension reads the member _x of a primitive element x: its id and extensions.
// R4 json.html#primitive.
func (r *reader) primitiveExtension(f *frame, e *element, row uint16) bool {
	f.at = e
	if (f.seen|f.extended)&e.bit() != 0 && !r.checkRepeated(f, e, true) {
		return false
	}
	f.extended |= e.bit()
	var from int
	var ok bool
	if e.isMany() {
		from, ok = r.primitiveExtensions(f, e)
	} else {
		from, ok = r.singlePrimitiveExtension(e)
	}
	r.values = append(r.values, value{span: span{from, r.offset()}, row: row, isExtension: true})
	return ok
}

// primitiveExtensions reads the member _x of an element x that repeats. It returns where the array
// starts.
func (r *reader) primitiveExtensions(f *frame, e *element) (from int, ok bool) {
	if kind := r.decoder.PeekKind(); kind != jsontext.KindBeginArray {
		return r.offset(), r.wrongKind("_"+e.name, kind, "an array, as "+e.name+" is")
	}
	if !r.open() {
		return 0, false
	}
	from = r.offset() - 1
	for f.item = 0; ; f.item++ {
		switch r.decoder.PeekKind() {
		case jsontext.KindEndArray:
			f.item = -1
			if _, err := r.decoder.ReadToken(); err != nil {
				return 0, r.fail(err)
			}
			return from, true
		case jsontext.KindNull:
			if !r.skip() {
				return 0, false
			}
		default:
			if _, ok := r.singlePrimitiveExtension(e); !ok {
				return 0, false
			}
		}
	}
}

func (r *reader) singlePrimitiveExtension(e *element) (from int, ok bool) {
	if kind := r.decoder.PeekKind(); kind != jsontext.KindBeginObject {
		return r.offset(), r.wrongKind("_"+e.name, kind, "an object, with the id or the extensions of "+e.name)
	}
	if !r.open() {
		return 0, false
	}
	return r.offset() - 1, r.object(typeElement, nil)
}

// checkPrimitiveExtensions checks that each primitive of an object has a value or extensions, and
// that the arrays of both have the same length. It parses the members again, which costs little in
// all, because primitive extensions are rare.
func (r *reader) checkPrimitiveExtensions(f *frame) bool {
	for _, v := range r.values[f.values:] {
		e, ok := f.element(v), true
		switch {
		case !e.typ.isPrimitive():
		case v.isExtension && e.isMany():
			ok = r.checkAligned(f, e, r.valueOf(f, v.row), v.span)
		case v.isExtension:
			if !r.valueOf(f, v.row).found() && isBare(r.body[v.from:v.to]) {
				f.at = e
				ok = r.report(IssueStructure, CodeEmptyElement, emptyElement)
			}
		case e.isMany() && f.extended&e.bit() == 0:
			ok = r.checkAligned(f, e, v.span, span{})
		}
		if !ok {
			return false
		}
	}
	f.at = nil
	return true
}

// valueOf returns the span of an element's value, and the zero span if it has none.
func (r *reader) valueOf(f *frame, row uint16) span {
	for _, v := range r.values[f.values:] {
		if v.row == row && !v.isExtension {
			return v.span
		}
	}
	return span{}
}

// checkAligned compares the array of an element's values with that of their primitive extensions.
func (r *reader) checkAligned(f *frame, e *element, values, extensions span) bool {
	if values.found() && r.body[values.from] != '[' || extensions.found() && r.body[extensions.from] != '[' {
		return true // reported before
	}
	f.at = e
	defer func() { f.item = -1 }()
	items, extended := r.items(values), r.items(extensions)
	if values.found() && extensions.found() && len(items) != len(extended) {
		return r.report(IssueStructure, CodeMisalignedArrays, fmt.Sprintf(
			"%s and _%s have %d and %d items; send as many items in both, with null for those that are absent", e.name, e.name, len(items), len(extended)))
	}
	for i := range max(len(items), len(extended)) {
		hasValue := i < len(items) && !isNull(items[i])
		isExtended := i < len(extended) && !isNull(extended[i]) && !isBare(extended[i])
		if f.item = i; !hasValue && !isExtended && !r.report(IssueStructure, CodeEmptyElement, emptyElement) {
			return false
		}
	}
	if len(items) == 0 && len(extended) == 0 && extensions.found() {
		f.item = -1
		return r.report(IssueStructure, CodeEmptyElement, "the array is empty; omit _"+e.name)
	}
	return true
}

// items returns the values of an array that has been read, and nil if there is none.
func (r *reader) items(at span) (items []jsontext.Value) {
	if !at.found() {
		return nil
	}
	for item, err := range jsonwalk.Elements(r.body[at.from:at.to], allowDuplicateNames) {
		if err != nil {
			return nil
		}
		items = append(items, item)
	}
	return items
}

func isNull(v jsontext.Value) bool { return v.Kind() == jsontext.KindNull }

// isBare reports whether a primitive extension has an id only.
func isBare(extension []byte) bool {
	found := false
	for m, err := range jsonwalk.Members(extension, allowDuplicateNames) {
		if err != nil || m.Name != "id" {
			return false
		}
		found = true
	}
	return found
}
