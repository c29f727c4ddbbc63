package r4

import "math"

// IndexValue is a value that a search parameter finds in a body. It has no
// pointers, so that finding it costs little.
type IndexValue struct {
	parameter uint16 // in searchParameters
	typ       typeIndex
	// from and to are where the body has the value. What only asks whether there is
	// one has no place: it ends at 1 or at 0.
	from, to uint32
}

// Parameter is the search parameter that finds the value; nil of a literal reference
// that none finds.
func (v IndexValue) Parameter() *SearchParameter {
	if v.parameter == byNone {
		return nil
	}
	return &searchParameters[v.parameter]
}

// byNone is in the place of a parameter.
const byNone = math.MaxUint16

// Type is the FHIR type of the value, such as CodeableConcept.
func (v IndexValue) Type() string { return types[v.typ].name }

// JSON is the value, out of the body that it was found in.
func (v IndexValue) JSON(body []byte) []byte {
	switch {
	case v.from > 0:
		return body[v.from:v.to]
	case v.to > 0:
		return []byte("true")
	default:
		return []byte("false")
	}
}

// Index finds what searches look for in a resource as it is stored, and the literal
// references that they do not find: in one that Read has accepted, without its id.
func Index(body []byte, typeName string) []IndexValue {
	r := readers.Get().(*reader)
	defer r.release()
	r.start(body, Options{Type: typeName, Index: true, stored: true})
	r.root()
	return r.index
}

// trail is where search parameters lead: to the elements of an object, by their
// bits, and to the object itself.
type trail struct {
	bits  uint64
	next  []branchOff
	finds []find
	// truths, of a resource, are what asks whether it has an element at all.
	truths []truth
	// gated tells that, of an extension, the URL decides what is found in it.
	gated bool
}

// branchOff leads on to an element.
type branchOff struct {
	element *element
	to      *trail
}

// find is a parameter that finds a value, if that meets the path's conditions.
type find struct {
	parameter uint16
	path      *searchPath
}

// truth is a parameter that asks whether there is an element that is not false.
type truth struct {
	parameter uint16
	ord       uint8
}

// trails begin at the types kept.
var trails = layTrails()

func layTrails() map[typeIndex]*trail {
	all := map[typeIndex]*trail{}
	for _, t := range Types {
		typ, _ := resourceNamed([]byte(t.Name))
		all[typ] = &trail{}
		for n := range searchParameters {
			p := &searchParameters[n]
			if !p.isOf(typ) || p.Name == "_id" || p.Name == "_lastUpdated" { // those are not the body's to say
				continue
			}
			for i := range p.paths {
				all[typ].lay(typ, p.paths[i].steps, find{uint16(n), &p.paths[i]})
			}
		}
	}
	return all
}

// lay makes the trail along the steps from an object of a type.
func (t *trail) lay(typ typeIndex, steps []string, f find) {
	if len(steps) == 0 {
		t.finds = append(t.finds, f)
		return
	}
	t.gated = t.gated || typ == typeExtension
	for i := range types[typ].elements {
		e := &types[typ].elements[i]
		if e.base() != steps[0] || f.path.as != 0 && e.isChoice() && e.typ != f.path.as {
			continue
		}
		if f.path.truth {
			t.truths = append(t.truths, truth{f.parameter, e.ord})
			return
		}
		if len(steps) == 1 && e.typ == typeCode {
			searchParameters[f.parameter].codes = e.codes
		}
		t.on(e).lay(e.typ, steps[1:], f)
	}
}

// on is the trail on to an element.
func (t *trail) on(e *element) *trail {
	if to := t.to(e); to != nil {
		return to
	}
	branch := branchOff{e, &trail{}}
	t.bits |= e.bit()
	t.next = append(t.next, branch)
	return branch.to
}

// to is the trail to an element, or nil.
func (t *trail) to(e *element) *trail {
	if t == nil || t.bits&e.bit() == 0 {
		return nil
	}
	for i := range t.next {
		if t.next[i].element == e {
			return t.next[i].to
		}
	}
	return nil
}

// note notes a value that parameters may find. Of an object, f is its frame.
func (r *reader) note(t *trail, typ typeIndex, f *frame, at span) {
	for i := range t.finds {
		found := &t.finds[i]
		if found.path.where != "" && !r.meets(f, found.path) || found.path.refersTo != 0 && f.refersTo != found.path.refersTo {
			continue
		}
		r.index = append(r.index, IndexValue{found.parameter, typ, uint32(at.from), uint32(at.to)})
	}
}

// meets reports whether an object has the value that a path asks for.
func (r *reader) meets(f *frame, path *searchPath) bool {
	e := lookup(f.typ, []byte(path.where))
	return e != nil && string(r.textOf(f, e.bit())) == path.is
}

// dropOthers drops what was found in an extension, since its place in the index, by
// parameters that look for another URL at its level.
func (r *reader) dropOthers(f *frame) {
	url, level := r.textOf(f, bitExtensionURL), r.depth-2
	kept := r.index[:f.indexed]
	for _, v := range r.index[f.indexed:] {
		if p := v.Parameter(); p == nil || len(p.paths[0].urls) <= level || string(url) == p.paths[0].urls[level] {
			kept = append(kept, v)
		}
	}
	r.index = kept
}

// noteTruths notes the parameters that ask whether a resource has an element that
// is not false. Of one without a value, which has extensions only, that is unknown.
func (r *reader) noteTruths(f *frame) {
	for _, t := range f.trail.truths {
		answer, unknown := IndexValue{parameter: t.parameter, typ: typeBoolean}, f.noted&(1<<t.ord) != 0
		for _, v := range r.values[f.values:] {
			if f.element(v).ord == t.ord && !v.companion {
				unknown = false
				if string(r.body[v.from:v.to]) != "false" {
					answer.to = 1
				}
			}
		}
		if !unknown {
			r.index = append(r.index, answer)
		}
	}
}
