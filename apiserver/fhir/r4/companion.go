package r4

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// companion reads the member _x of a primitive element x: its id and extensions.
func (r *reader) companion(f *frame, e *element, row uint16) bool {
	f.at = e
	if (f.seen|f.noted)&e.bit() != 0 && !r.checkRepeated(f, e, true) {
		return false
	}
	f.noted |= e.bit()
	var from int
	var ok bool
	if e.isMany() {
		from, ok = r.companions(f, e)
	} else {
		from, ok = r.oneCompanion(e)
	}
	r.values = append(r.values, value{span: span{from, r.offset()}, row: row, companion: true})
	return ok
}

// companions reads those of an element that repeats.
func (r *reader) companions(f *frame, e *element) (from int, ok bool) {
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
			if _, ok := r.oneCompanion(e); !ok {
				return 0, false
			}
		}
	}
}

func (r *reader) oneCompanion(e *element) (from int, ok bool) {
	if kind := r.decoder.PeekKind(); kind != jsontext.KindBeginObject {
		return r.offset(), r.wrongKind("_"+e.name, kind, "an object, with the id or the extensions of "+e.name)
	}
	if !r.open() {
		return 0, false
	}
	return r.offset() - 1, r.object(typeElement, nil)
}

// checkCompanions makes sure that each primitive of an object has a value, or a
// companion with extensions, and that arrays of both are in step. It reads them
// once more: companions are rare.
func (r *reader) checkCompanions(f *frame) bool {
	for _, v := range r.values[f.values:] {
		e, ok := f.element(v), true
		switch {
		case !e.typ.isPrimitive():
		case v.companion && e.isMany():
			ok = r.checkInStep(f, e, r.valueOf(f, v.row), v.span)
		case v.companion:
			if !r.valueOf(f, v.row).found() && isBare(r.body[v.from:v.to]) {
				f.at = e
				ok = r.report(IssueStructure, CodeEmptyElement, emptyElement)
			}
		case e.isMany() && f.noted&e.bit() == 0:
			ok = r.checkInStep(f, e, v.span, span{})
		}
		if !ok {
			return false
		}
	}
	f.at = nil
	return true
}

// valueOf is where the object has the value of an element.
func (r *reader) valueOf(f *frame, row uint16) span {
	for _, v := range r.values[f.values:] {
		if v.row == row && !v.companion {
			return v.span
		}
	}
	return span{}
}

// checkInStep compares the array of an element's values with that of their companions.
func (r *reader) checkInStep(f *frame, e *element, values, companions span) bool {
	if values.found() && r.body[values.from] != '[' || companions.found() && r.body[companions.from] != '[' {
		return true // reported before
	}
	f.at = e
	defer func() { f.item = -1 }()
	given, extended := r.items(values), r.items(companions)
	if values.found() && companions.found() && len(given) != len(extended) {
		return r.report(IssueStructure, CodeMisalignedArrays, fmt.Sprintf(
			"%s has %d items and _%s has %d; they must be in step, with null where there is nothing", e.name, len(given), e.name, len(extended)))
	}
	for i := range max(len(given), len(extended)) {
		hasValue := i < len(given) && !isNull(given[i])
		isExtended := i < len(extended) && !isNull(extended[i]) && !isBare(extended[i])
		if f.item = i; !hasValue && !isExtended && !r.report(IssueStructure, CodeEmptyElement, emptyElement) {
			return false
		}
	}
	if len(given) == 0 && len(extended) == 0 && companions.found() {
		f.item = -1
		return r.report(IssueStructure, CodeEmptyElement, "an array must have values; leave _"+e.name+" out")
	}
	return true
}

// items are the values of an array that was read before.
func (r *reader) items(at span) (items []jsontext.Value) {
	if !at.found() {
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(r.body[at.from:at.to]), doubledNames)
	if _, err := d.ReadToken(); err != nil {
		return nil
	}
	for d.PeekKind() != jsontext.KindEndArray {
		item, err := d.ReadValue()
		if err != nil {
			return nil
		}
		items = append(items, item)
	}
	return items
}

func isNull(v jsontext.Value) bool { return v.Kind() == jsontext.KindNull }

// isBare reports whether a companion has nothing but an id.
func isBare(companion []byte) bool {
	d := jsontext.NewDecoder(bytes.NewBuffer(companion), doubledNames)
	if token, err := d.ReadToken(); err != nil || token.Kind() != jsontext.KindBeginObject {
		return false
	}
	found := false
	for d.PeekKind() != jsontext.KindEndObject {
		name, err := d.ReadToken()
		if err != nil || name.String() != "id" {
			return false
		}
		if err := d.SkipValue(); err != nil {
			return false
		}
		found = true
	}
	return found
}
