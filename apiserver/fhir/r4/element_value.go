package r4

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// array reads the values of an element that repeats, and returns where the array starts.
func (r *reader) array(f *frame, e *element) (from int, ok bool) {
	if kind := r.decoder.PeekKind(); kind != jsontext.KindBeginArray {
		return r.offset(), r.wrongKind(e.name, kind, "an array: "+e.name+" may repeat")
	}
	if !r.open() {
		return 0, false
	}
	from = r.offset() - 1
	for f.item = 0; r.decoder.PeekKind() != jsontext.KindEndArray; f.item++ {
		if _, ok := r.single(f, e); !ok {
			return 0, false
		}
	}
	count := f.item
	f.item = -1
	if _, err := r.decoder.ReadToken(); err != nil {
		return 0, r.fail(err)
	}
	if count == 0 {
		return from, r.report(IssueStructure, CodeEmptyElement, "the array is empty; omit "+e.name)
	}
	return from, true
}

// single reads one value, and returns where it starts.
func (r *reader) single(f *frame, e *element) (from int, ok bool) {
	if e.typ.isPrimitive() {
		return r.primitive(f, e)
	}
	if kind := r.decoder.PeekKind(); kind != jsontext.KindBeginObject {
		return r.offset(), r.wrongKind(e.name, kind, "an object")
	}
	if !r.open() {
		return 0, false
	}
	from = r.offset() - 1
	if e.typ == typeResource {
		return from, r.resource(f, e)
	}
	return from, r.object(e.typ, f.trail.to(e))
}

// primitive reads a value of a primitive type.
func (r *reader) primitive(f *frame, e *element) (from int, ok bool) {
	raw, err := r.decoder.ReadValue()
	if err != nil {
		return 0, r.fail(err)
	}
	from = r.offset() - len(raw)
	p := &primitives[e.typ]
	kind := raw.Kind()
	if !p.supports(kind) {
		if kind == jsontext.KindNull && f.item >= 0 {
			f.nulls = true // for checkPrimitiveExtensions
			return from, true
		}
		f.flawed = true
		return from, r.reportKind(e.name, kind, p.wants())
	}
	text := []byte(raw)
	if kind == jsontext.KindString {
		text = r.unquote(raw)
	}
	if !p.valid(text) && (!r.opts.stored || r.depth != 1 || e.name != "id") {
		code := CodeInvalidValue
		if e.typ == typeID && f.typ.isResource() {
			code = CodeInvalidID
		}
		return from, r.report(IssueValue, code, e.name+" "+Quote(string(text))+" is not "+p.form)
	}
	if on := f.trail.to(e); on != nil {
		r.indexValue(on, e.typ, f, span{from, from + len(raw)})
	}
	return from, r.checkPrimitive(f, e, text)
}

// wants describes the JSON kind of the primitive's values in messages.
func (p *primitive) wants() string {
	if p.kind == jsontext.KindFalse {
		return "true or false"
	}
	return withArticle(p.kind)
}

// checkPrimitive checks the text of a primitive that has a valid form. It records the ids of
// contained resources, and URIs that start with a #, for checkScope.
func (r *reader) checkPrimitive(f *frame, e *element, text []byte) bool {
	switch e.typ {
	case typeCode:
		if e.codes != 0 && !valueSets[e.codes].has(text) && !isFormatCode(f, text) {
			return r.report(IssueCodeInvalid, CodeInvalidCode,
				Quote(string(text))+" is not a code of "+valueSets[e.codes].describe())
		}
	case typeString:
		if e.is&plain != 0 {
			return r.checkElementID(text)
		}
	case typeCanonical, typeURI, typeURL:
		if text[0] == '#' {
			r.scope.recordFragment(text[1:])
		}
	case typeID:
		if f.contained {
			r.scope.recordID(text)
		}
	case typeXhtml:
		if invariant, problem := checkNarrative(text); problem != "" {
			return r.report(IssueInvariant, invariant, problem)
		}
	}
	return true
}

// checkElementID checks the id of an element. R4 element.html#id. It does not check that ids are
// unique in a resource, because HL7's own StructureDefinitions repeat the ids of the snapshot in
// the differential.
func (r *reader) checkElementID(text []byte) bool {
	if bytes.ContainsAny(text, " \t\r\n") {
		return r.report(IssueValue, CodeInvalidValue, "id "+Quote(string(text))+" is not the id of an element; send an id without white space")
	}
	return true
}

// wrongKind reports a value of the wrong JSON kind, and skips it.
func (r *reader) wrongKind(name string, kind jsontext.Kind, wants string) bool {
	if kind == jsontext.KindInvalid || kind == jsontext.KindEndObject || kind == jsontext.KindEndArray {
		return r.skip() // there is no value, so skip reports the syntax error
	}
	r.frames[r.depth-1].flawed = true
	return r.reportKind(name, kind, wants) && r.skip()
}

func (r *reader) reportKind(name string, kind jsontext.Kind, wants string) bool {
	return r.report(IssueStructure, CodeWrongKind, name+" is "+withArticle(kind)+"; it must be "+wants)
}
