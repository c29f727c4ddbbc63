package r4

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/jsonwalk"
)

// scope is a resource with its contained resources, to which references with a # refer.
type scope struct {
	typ       typeIndex
	contained []containedResource
	// current is the index of the contained resource that is being read, or -1.
	current int
	// references are the References that start with a #, and fragments the ids in other URIs that
	// start with a #. paths has the paths of all references.
	references []localReference
	paths      []step
	fragments  [][]byte
}

// containedResource is a resource inside another resource. R4 references.html#contained.
type containedResource struct {
	typ typeIndex
	id  []byte
	// refersToContainer is set if the resource refers to its container with "#".
	refersToContainer bool
}

// localReference is a reference to a contained resource, which may come later in the body. The path
// of the reference is scope.paths[from:to].
type localReference struct {
	id       []byte
	targets  uint16
	from, to int
}

func (s *scope) start(t typeIndex) { *s = scope{typ: t, current: -1} }

// recordID records the id of the contained resource that is being read.
func (s *scope) recordID(id []byte) {
	if s.current >= 0 {
		s.contained[s.current].id = bytes.Clone(id)
	}
}

// recordFragment records a URI that starts with a # and is not in a Reference. id is the text after
// the #. An empty id means the container.
func (s *scope) recordFragment(id []byte) {
	if len(id) > 0 {
		s.fragments = append(s.fragments, bytes.Clone(id))
		return
	}
	s.recordContainerReference()
}

func (s *scope) recordContainerReference() {
	if s.current >= 0 {
		s.contained[s.current].refersToContainer = true
	}
}

// resource reads a resource inside another one, after its opening brace.
func (r *reader) resource(f *frame, e *element) bool {
	name, ok := resourceTypeOf(r.body[r.offset()-1:])
	if !ok {
		return r.reportBelow("resourceType", IssueRequired, CodeMissingElement,
			"resourceType is missing or not a string; send the name of a type, such as Patient") && r.skipMembers() && r.closeObject()
	}
	typ, ok := resourceNamed(name)
	if !ok {
		return r.reportBelow("resourceType", IssueValue, CodeUnknownType,
			Quote(string(name))+" is not a resource type of R4; send the name of a type, such as Patient") && r.skipMembers() && r.closeObject()
	}
	if e.name != "contained" {
		outer := r.scope
		r.scope.start(typ)
		ok = r.object(typ, nil)
		r.scope = outer
		return ok
	}
	if f.contained && !r.report(IssueInvariant, "dom-2", "a contained resource must not contain another resource; move that one to the outer resource") {
		return false
	}
	outer := r.scope.current
	r.scope.current = len(r.scope.contained)
	r.scope.contained = append(r.scope.contained, containedResource{typ: typ})
	ok = r.object(typ, nil)
	r.scope.current = outer
	return ok
}

// resourceTypeOf returns the resourceType of the resource at the start of text.
func resourceTypeOf(text []byte) ([]byte, bool) {
	for m, err := range jsonwalk.Members(text, allowDuplicateNames) {
		if err != nil {
			return nil, false
		}
		if m.Name == resourceTypeName {
			typeName, err := jsontext.AppendUnquote(nil, m.Value)
			return typeName, err == nil && m.Value.Kind() == jsontext.KindString
		}
	}
	return nil, false
}

// completeResource checks a resource after its last member.
func (r *reader) completeResource(f *frame) bool {
	if !f.typed && !r.reportBelow("resourceType", IssueRequired, CodeMissingElement,
		"resourceType is missing; send \""+types[f.typ].name+"\"") {
		return false
	}
	if !f.contained && (!r.checkScope() || !r.warnMissingNarrative(f)) {
		return false
	}
	return r.checkInvariants(f)
}

// warnMissingNarrative adds a warning if a resource violates dom-6. It does nothing unless
// Options.Warnings is set.
func (r *reader) warnMissingNarrative(f *frame) bool {
	text := lookup(f.typ, []byte("text"))
	if !r.opts.Warnings || text == nil || text.typ != typeNarrative || f.seen&text.bit() != 0 {
		return true
	}
	return r.add(Issue{
		Severity: SeverityWarning, Type: IssueInvariant, Code: "dom-6", Expression: r.here(),
		Diagnostics: "the resource has no narrative; send the element \"text\" for readers that cannot interpret the other elements",
	})
}

// checkScope checks the references between a resource and what it contains.
func (r *reader) checkScope() bool {
	s := &r.scope
	if len(s.contained) == 0 && len(s.references) == 0 {
		return true
	}
	byID := make(map[string]int, len(s.contained))
	referred := make([]bool, len(s.contained))
	for i, c := range s.contained {
		if first, doubled := byID[string(c.id)]; doubled && len(c.id) > 0 {
			referred[first] = true
			if !r.reportContained(i, CodeDuplicateID, "the id "+Quote(string(c.id))+" is also the id of another contained resource; send distinct ids") {
				return false
			}
		}
		byID[string(c.id)] = i
	}
	for _, reference := range s.references {
		i, ok := byID[string(reference.id)]
		if ok {
			referred[i] = true
		}
		if problem := s.checkTarget(reference, i, ok); problem.Code != "" {
			problem.Expression = r.pathOf(s.paths[reference.from:reference.to]) + ".reference"
			if !r.add(problem) {
				return false
			}
		}
	}
	for _, id := range s.fragments {
		if i, ok := byID[string(id)]; ok {
			referred[i] = true
		}
	}
	for i, c := range s.contained {
		if !referred[i] && !c.refersToContainer && !r.reportContained(i, "dom-3",
			"no reference points to the contained resource, and it does not refer to its container with \"#\"; refer to it or remove it") {
			return false
		}
	}
	return true
}

// reportContained reports an issue of contained resource i.
func (r *reader) reportContained(i int, code, diagnostics string) bool {
	f := &r.frames[r.depth-1]
	f.at, f.item = lookup(f.typ, []byte("contained")), i
	ok := r.report(IssueInvariant, code, diagnostics)
	f.at, f.item = nil, -1
	return ok
}

// checkTarget returns the issue of a reference to contained resource i. If found is false, there is
// no such resource. An Issue without a Code means that the reference is valid.
func (s *scope) checkTarget(reference localReference, i int, found bool) Issue {
	if !found {
		return Issue{
			Severity: SeverityError, Type: IssueInvariant, Code: "ref-1",
			Diagnostics: "no contained resource has the id " + Quote(string(reference.id)) + "; add one or correct the reference",
		}
	}
	if typ := s.contained[i].typ; !isTarget(reference.targets, typ) {
		return Issue{
			Severity: SeverityError, Type: IssueValue, Code: CodeWrongReferenceType,
			Diagnostics: "the target has the type " + types[typ].name + "; " + describeTargets(reference.targets),
		}
	}
	return Issue{}
}
