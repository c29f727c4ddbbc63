package r4

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/suggest"
)

// frame is an object that is being read.
type frame struct {
	typ typeIndex
	// at is the element whose value is being read, and item the index of its repetition or -1. other
	// is the name of resourceType, of an unknown member or of a missing element, for the path of an
	// issue. It is nil otherwise.
	at    *element
	item  int
	other *string
	// trail is the trail of the object, or nil. start is the offset of the object in the body, and
	// indexed the length of reader.index before the object was read.
	trail          *trail
	start, indexed int
	// refersTo is the type that a Reference refers to, if it is known.
	refersTo typeIndex
	// seen has the bits of the elements with a value, extended of those with a primitive extension.
	seen, extended uint64
	// values is the index of the object's first value in reader.values.
	values int
	// contained is set for a contained resource, typed for a resource whose resourceType was read.
	contained, typed bool
	// coded is set for a CodeableConcept with a coding from the value set to which its element is
	// bound, foreign for a CodeableConcept with a coding that has a code from elsewhere.
	coded, foreign bool
	// nulls is set if an array of primitives has nulls, flawed if a member is invalid and was skipped,
	// mismatched if the resourceType is not the expected type.
	nulls, flawed, mismatched bool
}

// value is a member of an object that has been read. It has no pointers, so that the garbage
// collector does not scan slices of it.
type value struct {
	span
	// row is the index of the element among those of the object's type.
	row         uint16
	isExtension bool
}

// element returns the element of a member.
func (f *frame) element(v value) *element { return &types[f.typ].elements[v.row] }

func (r *reader) push(t typeIndex) *frame {
	f := &r.frames[r.depth]
	*f = frame{typ: t, item: -1, values: len(r.values)}
	r.depth++
	return f
}

// pop removes the frame that was pushed last, and its values.
func (r *reader) pop(f *frame) {
	r.values = r.values[:f.values]
	r.depth--
}

// object reads an object of a type, after its opening brace. on is its trail, or nil.
func (r *reader) object(t typeIndex, on *trail) bool {
	f := r.push(t)
	f.trail, f.start, f.indexed = on, r.offset()-1, len(r.index)
	if t.isResource() && r.depth > 1 {
		f.contained = r.frames[r.depth-2].at.name == "contained"
	}
	inMeta := t == typeMeta && r.depth == 2
	for r.decoder.PeekKind() != jsontext.KindEndObject {
		raw, err := r.decoder.ReadValue()
		if err != nil {
			return r.fail(err)
		}
		start := r.offset() - len(raw)
		name := r.unquote(raw)
		ours := inMeta && isServerSet(string(name))
		if !r.member(f, name) {
			return false
		}
		if inMeta {
			r.cuts.add(span{start, r.offset()}, ours)
		}
		f.at, f.item, f.other = nil, -1, nil
	}
	if _, err := r.decoder.ReadToken(); err != nil {
		return r.fail(err)
	}
	ok := r.complete(f)
	if on != nil {
		r.indexValue(on, t, f, span{f.start, r.offset()})
		r.indexExistence(f)
		if on.gated {
			r.dropOtherURLs(f)
		}
	}
	if t == typeReference {
		r.recordLiteral(f)
	}
	r.pop(f)
	return ok
}

// member reads the value of a member.
func (r *reader) member(f *frame, name []byte) bool {
	e, row := lookupRow(f.typ, name)
	if e == nil {
		return r.otherMember(f, name)
	}
	f.at = e
	if (f.seen|f.extended)&e.bit() != 0 && !r.checkRepeated(f, e, false) {
		return false
	}
	f.seen |= e.bit()
	from, ok := 0, false
	switch {
	case r.isIgnored(f, e):
		from, ok = r.ignore()
	case e.isMany():
		from, ok = r.array(f, e)
	default:
		from, ok = r.single(f, e)
	}
	if !ok {
		return false
	}
	at := span{from, r.offset()}
	r.values = append(r.values, value{span: at, row: row})
	if r.depth == 1 {
		r.recordOffsets(e, at)
	}
	return true
}

// isIgnored reports whether the server sets the element itself. Its value in the body is ignored
// and need not be valid. R4 http.html#create, http.html#update.
func (r *reader) isIgnored(f *frame, e *element) bool {
	switch r.depth {
	case 1:
		return r.opts.IgnoreID && e.name == "id"
	case 2:
		return f.typ == typeMeta && isServerSet(e.name)
	default:
		return false
	}
}

// isServerSet reports whether the server sets a member of meta.
func isServerSet(name string) bool { return name == "versionId" || name == "lastUpdated" }

// ignore reads a value of any kind without validation, and returns where it starts.
func (r *reader) ignore() (from int, ok bool) {
	raw, err := r.decoder.ReadValue()
	if err != nil {
		return 0, r.fail(err)
	}
	return r.offset() - len(raw), true
}

// recordOffsets records the span of the resource's id or the offset after the opening brace of its
// meta. For meta it also completes the cuts.
func (r *reader) recordOffsets(e *element, at span) {
	switch e.name {
	case "id":
		r.idValue = at
	case "meta":
		r.metaOffset = at.from + 1
		r.cuts.close()
	}
}

// otherMember reads a member other than an element: resourceType, a primitive extension, or an
// unknown one.
func (r *reader) otherMember(f *frame, name []byte) bool {
	if f.typ.isResource() && string(name) == "resourceType" {
		return r.readResourceType(f)
	}
	if len(name) > 1 && name[0] == '_' {
		if e, row := lookupRow(f.typ, name[1:]); e != nil && e.typ.isPrimitive() && e.is&plain == 0 {
			return r.primitiveExtension(f, e, row)
		}
	}
	f.flawed = true
	other := truncate(string(name))
	f.other = &other
	return r.report(IssueStructure, CodeUnknownElement, unknownElement(string(name), f.typ)) && r.skip()
}

// replaced maps the path of an element of DSTU2 and STU3 to the URL of the extension that replaces the
// element in R4. A client that was written for these releases may send the element. Of the types
// that a site stores, R4 has such an extension for Patient only (StructureDefinition patient-animal
// of the package hl7.fhir.r4.core).
var replaced = map[string]string{
	"Patient.animal": "http://hl7.org/fhir/StructureDefinition/patient-animal",
}

// unknownElement returns the message about an element that the type does not have.
func unknownElement(name string, typ typeIndex) string {
	if path := types[typ].name + "." + name; replaced[path] != "" {
		return "R4 has no " + path + "; use the extension " + replaced[path]
	}
	return types[typ].name + " has no element " + Quote(name) + remedyFor(name, typ)
}

// remedyFor returns the end of the message about an unknown element: the element that was probably
// meant or, if none is similar, the advice to correct or omit it.
func remedyFor(name string, typ typeIndex) string {
	known := make([]string, len(types[typ].elements))
	for i := range known {
		known[i] = types[typ].elements[i].name
	}
	if meant, ok := suggest.Closest(name, known); ok {
		return "; did you mean " + meant + "?"
	}
	return "; correct its name or omit it"
}

var resourceTypeName = "resourceType"

// readResourceType reads the resourceType of a resource whose type is already known. If the two
// differ, it skips the remaining members, and complete does not check the resource.
func (r *reader) readResourceType(f *frame) bool {
	f.other = &resourceTypeName
	if f.typed && !r.report(IssueStructure, CodeDuplicateElement, "the object has two members \"resourceType\"; send one") {
		return false
	}
	f.typed = true
	if kind := r.decoder.PeekKind(); kind != jsontext.KindString {
		return r.wrongKind("resourceType", kind, "a string")
	}
	raw, err := r.decoder.ReadValue()
	if err != nil {
		return r.fail(err)
	}
	if r.depth == 1 {
		r.resourceType = span{r.offset() - len(raw), r.offset()}
	}
	if got, want := r.unquote(raw), types[f.typ].name; string(got) != want {
		f.mismatched = true
		return r.report(IssueValue, CodeResourceMismatch,
			"the resourceType is "+Quote(string(got))+"; this URL requires \""+want+"\"") && r.skipMembers()
	}
	return true
}

// checkRepeated reports an element that the object already has. A value and a primitive extension
// under the same name are valid.
func (r *reader) checkRepeated(f *frame, e *element, isExtension bool) bool {
	for _, v := range r.values[f.values:] {
		before := f.element(v)
		switch {
		case before.ord != e.ord:
		case before != e:
			return r.report(IssueStructure, CodeConflictingChoice,
				"the object already has "+before.name+"; send only one type of "+e.base()+"[x]")
		case v.isExtension == isExtension:
			return r.report(IssueStructure, CodeDuplicateElement,
				"the object has two members "+Quote(memberName(e, isExtension))+"; send one")
		}
	}
	return true
}

func memberName(e *element, isExtension bool) string {
	if isExtension {
		return "_" + e.name
	}
	return e.name
}

// complete checks an object whose last member has been read.
func (r *reader) complete(f *frame) bool {
	if f.mismatched {
		return true
	}
	present := f.seen | f.extended
	if missing := types[f.typ].required &^ present; missing != 0 && !r.reportMissing(f, missing) {
		return false
	}
	if (f.extended != 0 || f.nulls) && !r.checkPrimitiveExtensions(f) {
		return false
	}
	if f.typ.isResource() {
		return r.completeResource(f)
	}
	// Bit 0 is the id. A primitive extension (an Element) with an id alone is valid if the primitive
	// has a value, which checkPrimitiveExtensions checks.
	isEmpty := present>>1 == 0 && (f.typ != typeElement || present == 0)
	if isEmpty && !f.flawed && (!r.opts.stored || f.typ != typeMeta || r.depth != 2) {
		return r.report(IssueStructure, CodeEmptyElement, emptyElement)
	}
	return r.checkInvariants(f)
}

const emptyElement = "the element is empty or has only an id; send a value, child elements or extensions, or omit it"

func (r *reader) reportMissing(f *frame, missing uint64) bool {
	elements := types[f.typ].elements
	for i := range elements {
		e := &elements[i]
		if missing&e.bit() == 0 {
			continue
		}
		missing &^= e.bit()
		if r.depth == 1 && r.isOptional(e.name) {
			continue
		}
		base := e.base()
		f.other = &base
		if !r.report(IssueRequired, CodeMissingElement, "the required element "+e.base()+" is missing; send it") {
			return false
		}
	}
	f.other = nil
	return true
}

func (r *reader) isOptional(element string) bool {
	for _, path := range r.opts.Optional {
		if path == r.opts.Type+"."+element {
			return true
		}
	}
	return false
}
