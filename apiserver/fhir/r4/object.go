package r4

import (
	"github.com/go-json-experiment/json/jsontext"
)

// frame is an object that is being read.
type frame struct {
	typ typeIndex
	// at is the element whose value is being read, and item its repetition, or -1.
	// other is the name of a member that is no element, or of one that is missing.
	at    *element
	item  int
	other *string
	// trail is where search parameters lead from here, or nil; start is where the
	// object begins, in the body, and indexed where, in the index.
	trail          *trail
	start, indexed int
	// refersTo is the type that a reference refers to, if that can be told.
	refersTo typeIndex
	// seen has the bits of the elements with a value, noted of those with a companion.
	seen, noted uint64
	// values is where the members of this object begin in the reader's.
	values int
	// contained marks a contained resource, typed one whose resourceType was met.
	contained, typed bool
	// coded is set in a concept with a coding from the value set that it is bound to, foreign in
	// one with a code from elsewhere.
	coded, foreign bool
	// nulls tells that an array of primitives has nulls, flawed that there are
	// members that are no elements, mismatched that it is of another type.
	nulls, flawed, mismatched bool
}

// value is a member of an object that has been read. It has no pointers, so that
// noting it costs little.
type value struct {
	span
	// row is the place of the element among those of the object's type.
	row       uint16
	companion bool
}

// element is the one that a member of the frame's object is.
func (f *frame) element(v value) *element { return &types[f.typ].elements[v.row] }

func (r *reader) push(t typeIndex) *frame {
	f := &r.frames[r.depth]
	*f = frame{typ: t, item: -1, values: len(r.values)}
	r.depth++
	return f
}

// pop forgets the object that was pushed last.
func (r *reader) pop(f *frame) {
	r.values = r.values[:f.values]
	r.depth--
}

// object reads an object of a type from behind its brace on.
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
		r.note(on, t, f, span{f.start, r.offset()})
		r.noteTruths(f)
		if on.gated {
			r.dropOthers(f)
		}
	}
	if t == typeReference {
		r.noteLiteral(f)
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
	if (f.seen|f.noted)&e.bit() != 0 && !r.checkRepeated(f, e, false) {
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
		r.noteOwn(e, at)
	}
	return true
}

// isIgnored reports whether the server sets the element itself, so that its value in the body
// does not count and need not be valid. R4 http.html#create, http.html#update.
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

// isServerSet reports whether a member of meta is one that the server sets.
func isServerSet(name string) bool { return name == "versionId" || name == "lastUpdated" }

// ignore reads a value of any kind without looking into it, and returns where it starts.
func (r *reader) ignore() (from int, ok bool) {
	raw, err := r.decoder.ReadValue()
	if err != nil {
		return 0, r.fail(err)
	}
	return r.offset() - len(raw), true
}

// noteOwn notes where the resource has its id and its meta.
func (r *reader) noteOwn(e *element, at span) {
	switch e.name {
	case "id":
		r.idValue = at
	case "meta":
		r.metaInside = at.from + 1
		r.cuts.close()
	}
}

// otherMember reads a member that is no element.
func (r *reader) otherMember(f *frame, name []byte) bool {
	if f.typ.isResource() && string(name) == "resourceType" {
		return r.readResourceType(f)
	}
	if len(name) > 1 && name[0] == '_' {
		if e, row := lookupRow(f.typ, name[1:]); e != nil && e.typ.isPrimitive() && e.is&plain == 0 {
			return r.companion(f, e, row)
		}
	}
	f.flawed = true
	other := truncate(string(name))
	f.other = &other
	return r.report(IssueStructure, CodeUnknownElement,
		types[f.typ].name+" has no element "+Quote(string(name))) && r.skip()
}

var resourceTypeName = "resourceType"

// readResourceType reads the resourceType of a resource whose type is known by now.
func (r *reader) readResourceType(f *frame) bool {
	f.other = &resourceTypeName
	if f.typed && !r.report(IssueStructure, CodeDuplicateElement, "the name \"resourceType\" is given twice in one object") {
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
			"the resourceType is "+Quote(string(got))+"; this address takes \""+want+"\"") && r.skipMembers()
	}
	return true
}

// checkRepeated looks into an element that was met before: it may be the companion
// of that, or that of this.
func (r *reader) checkRepeated(f *frame, e *element, companion bool) bool {
	for _, v := range r.values[f.values:] {
		before := f.element(v)
		switch {
		case before.ord != e.ord:
		case before != e:
			return r.report(IssueStructure, CodeConflictingChoice,
				"there is "+before.name+" already; of "+e.base()+"[x] there can be one only")
		case v.companion == companion:
			return r.report(IssueStructure, CodeDuplicateElement,
				"the name "+Quote(memberName(e, companion))+" is given twice in one object")
		}
	}
	return true
}

func memberName(e *element, companion bool) string {
	if companion {
		return "_" + e.name
	}
	return e.name
}

// complete checks an object that has been read to its end.
func (r *reader) complete(f *frame) bool {
	if f.mismatched {
		return true
	}
	present := f.seen | f.noted
	if missing := types[f.typ].required &^ present; missing != 0 && !r.reportMissing(f, missing) {
		return false
	}
	if (f.noted != 0 || f.nulls) && !r.checkCompanions(f) {
		return false
	}
	if f.typ.isResource() {
		return r.completeResource(f)
	}
	// A companion with an id alone is enough for a primitive that has a value.
	isEmpty := present>>1 == 0 && (f.typ != typeElement || present == 0)
	if isEmpty && !f.flawed && (!r.opts.stored || f.typ != typeMeta || r.depth != 2) {
		return r.report(IssueStructure, CodeEmptyElement, emptyElement)
	}
	return r.checkInvariants(f)
}

const emptyElement = "an element must have a value, elements other than its id, or extensions"

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
		if !r.report(IssueRequired, CodeMissingElement, "the required element "+e.base()+" is missing") {
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
