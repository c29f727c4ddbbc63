package r4

import "math"

// SelectedValue is a value in a body that a search parameter selects, or a literal reference that no
// search parameter selects. It has no pointers, so that the garbage collector does not scan slices
// of it.
type SelectedValue struct {
	parameter uint16 // index in searchParameters, or noParameter
	typ       typeIndex
	// from and to are the span of the value in the body. If the parameter tests for existence, from is
	// 0 and to is 1 for true and 0 for false.
	from, to uint32
}

// Parameter returns the search parameter that selects the value. It returns nil for a literal
// reference that no parameter selects.
func (v SelectedValue) Parameter() *SearchParameter {
	if v.parameter == noParameter {
		return nil
	}
	return &searchParameters[v.parameter]
}

// noParameter is the parameter of a literal reference that no search parameter selects.
const noParameter = math.MaxUint16

// Type returns the FHIR type of the value, such as CodeableConcept.
func (v SelectedValue) Type() string { return types[v.typ].name }

// JSON returns the value in body, which must be the indexed body. It may share memory with body.
func (v SelectedValue) JSON(body []byte) []byte {
	switch {
	case v.from > 0:
		return body[v.from:v.to]
	case v.to > 0:
		return []byte("true")
	default:
		return []byte("false")
	}
}

// Index returns the values of all search parameters in a stored resource, except _id and
// _lastUpdated, and the literal references that no parameter selects. body must be the Body of a
// Resource that Read returned.
func Index(body []byte, typeName string) []SelectedValue {
	r := readers.Get().(*reader)
	defer r.release()
	r.start(body, Options{Type: typeName, Index: true, stored: true})
	r.root()
	return r.index
}

// trail is a node of the tree of all search paths of a type. It belongs to an object or a value.
type trail struct {
	// bits has the bits of the elements for which next has an edge.
	bits uint64
	next []trailEdge
	// finds are the parameters that select the object or value itself.
	finds []find
	// exists are the parameters that test for elements of a resource.
	exists []existence
	// gated is set for an extension, because its URL decides which parameters apply.
	gated bool
}

// trailEdge leads to the trail of an element.
type trailEdge struct {
	element *element
	to      *trail
}

// find is a parameter that selects a value which meets the conditions of the path.
type find struct {
	parameter uint16
	path      *searchPath
}

// existence is a parameter that tests whether there is an element with a value other than false.
type existence struct {
	parameter uint16
	ord       uint8
}

// trails are the roots of the trees, for the supported resource types.
var trails = buildTrails()

func buildTrails() map[typeIndex]*trail {
	all := map[typeIndex]*trail{}
	for _, t := range Types {
		typ, _ := resourceNamed([]byte(t.Name))
		all[typ] = &trail{}
		for n := range searchParameters {
			p := &searchParameters[n]
			if !p.isOf(typ) || p.Name == "_id" || p.Name == "_lastUpdated" { // these values are not in the body
				continue
			}
			for i := range p.paths {
				all[typ].add(typ, p.paths[i].steps, find{uint16(n), &p.paths[i]})
			}
		}
	}
	return all
}

// add adds a parameter's path to the tree. steps lead from an object of type typ, to which t belongs,
// to the selected values. If these are codes, add also sets the parameter's codes.
func (t *trail) add(typ typeIndex, steps []string, f find) {
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
			t.exists = append(t.exists, existence{f.parameter, e.ord})
			return
		}
		if len(steps) == 1 && e.typ == typeCode {
			searchParameters[f.parameter].codes = e.codes
		}
		t.on(e).add(e.typ, steps[1:], f)
	}
}

// on returns the trail of an element. It creates the trail if there is none.
func (t *trail) on(e *element) *trail {
	if to := t.to(e); to != nil {
		return to
	}
	to := &trail{}
	t.bits |= e.bit()
	t.next = append(t.next, trailEdge{e, to})
	return to
}

// to returns the trail of an element, and nil if there is none.
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

// indexValue adds a value to the index for each parameter that selects it. f is the frame of the
// value if it is an object, otherwise that of the object with the value.
func (r *reader) indexValue(t *trail, typ typeIndex, f *frame, at span) {
	for i := range t.finds {
		found := &t.finds[i]
		if found.path.where != "" && !r.meets(f, found.path) || found.path.refersTo != 0 && f.refersTo != found.path.refersTo {
			continue
		}
		r.index = append(r.index, SelectedValue{found.parameter, typ, uint32(at.from), uint32(at.to)})
	}
}

// meets reports whether an object meets the where condition of a path.
func (r *reader) meets(f *frame, path *searchPath) bool {
	e := lookup(f.typ, []byte(path.where))
	return e != nil && string(r.textOf(f, e.bit())) == path.is
}

// dropOtherURLs removes from the index the values in an extension whose parameters select only
// extensions with another URL at this level.
func (r *reader) dropOtherURLs(f *frame) {
	url, level := r.textOf(f, bitExtensionURL), r.depth-2
	kept := r.index[:f.indexed]
	for _, v := range r.index[f.indexed:] {
		if p := v.Parameter(); p == nil || len(p.paths[0].urls) <= level || string(url) == p.paths[0].urls[level] {
			kept = append(kept, v)
		}
	}
	r.index = kept
}

// indexExistence adds true or false for each parameter that tests for an element of a resource. It
// adds nothing for an element with extensions only.
func (r *reader) indexExistence(f *frame) {
	for _, t := range f.trail.exists {
		result, unknown := SelectedValue{parameter: t.parameter, typ: typeBoolean}, f.extended&(1<<t.ord) != 0
		for _, v := range r.values[f.values:] {
			if f.element(v).ord == t.ord && !v.isExtension {
				unknown = false
				if string(r.body[v.from:v.to]) != "false" {
					result.to = 1
				}
			}
		}
		if !unknown {
			r.index = append(r.index, result)
		}
	}
}
