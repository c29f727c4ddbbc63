package r4

// Literal is a literal reference in a resource, or in a resource that it contains, to another
// resource. R4 references.html#literal.
type Literal struct {
	// Reference is the text of the reference.
	Reference string
	// Expression is the FHIRPath of the text, such as Patient.link[0].other.reference.
	Expression string
}

// Literals returns the literal references of a stored resource in all its elements, except
// references to contained resources. body must be the Body of a Resource that Read returned.
func Literals(body []byte, typeName string) []Literal {
	r := readers.Get().(*reader)
	defer r.release()
	r.start(body, Options{Type: typeName, literals: true, stored: true})
	r.root()
	return r.literals
}

// recordLiteral records the literal reference of a Reference that has been read, if it has one: in
// r.literals if Options.literals is set, and in r.index if Options.Index is set and no search
// parameter selected the Reference.
func (r *reader) recordLiteral(f *frame) {
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
		r.index = append(r.index, SelectedValue{noParameter, typeReference, uint32(f.start), uint32(r.offset())})
	}
}

// isFound reports whether a search parameter selected the object that has just been read.
func (r *reader) isFound(f *frame) bool {
	last := len(r.index) - 1
	return last >= 0 && int(r.index[last].from) == f.start
}
