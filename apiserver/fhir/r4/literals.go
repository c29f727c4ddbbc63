package r4

// Literal is a literal reference in a resource: one by which it, or a resource that it
// contains, refers to another. R4 references.html#literal.
type Literal struct {
	// Reference is as it stands.
	Reference string
	// Expression is the FHIRPath of the element that has it.
	Expression string
}

// Literals lists the literal references of a resource as it is stored, wherever they are
// in it: in one that Read has accepted, without its id. References to what the resource
// contains are none.
func Literals(body []byte, typeName string) []Literal {
	r := readers.Get().(*reader)
	defer r.release()
	r.start(body, Options{Type: typeName, literals: true, stored: true})
	r.root()
	return r.literals
}

// noteLiteral notes a Reference that has been read, if it has a literal reference.
func (r *reader) noteLiteral(f *frame) {
	if !r.opts.literals && !r.opts.Index {
		return
	}
	text := r.textOf(f, bitReferenceReference)
	if len(text) == 0 || text[0] == '#' {
		return
	}
	if r.opts.literals {
		r.literals = append(r.literals, Literal{string(text), string(appendElement([]byte(r.here()), "reference"))})
	}
	if r.opts.Index && !r.isFound(f) {
		r.index = append(r.index, IndexValue{byNone, typeReference, uint32(f.start), uint32(r.offset())})
	}
}

// isFound reports whether a search parameter found the object that has just been read.
func (r *reader) isFound(f *frame) bool {
	last := len(r.index) - 1
	return last >= 0 && int(r.index[last].from) == f.start
}
