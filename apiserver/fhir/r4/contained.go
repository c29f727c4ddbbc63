package r4

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// scope is what references with a # can refer to: a resource and what it contains.
type scope struct {
	typ       typeIndex
	contained []containedResource
	// current is the contained resource that is being read, or -1.
	current int
	// references are those with a #; fragments are other URIs with one.
	references []localReference
	paths      []step
	fragments  [][]byte
}

// containedResource is a resource inside another. R4 references.html#contained.
type containedResource struct {
	typ typeIndex
	id  []byte
	// refersOut tells that it refers to the resource it is in.
	refersOut bool
}

// localReference is a reference to a contained resource, which may come later. Its
// path is between two places in the scope's paths.
type localReference struct {
	id       []byte
	targets  uint16
	from, to int
}

func (s *scope) start(t typeIndex) { *s = scope{typ: t, current: -1} }

// noteID notes the id of the contained resource that is being read.
func (s *scope) noteID(id []byte) {
	if s.current >= 0 {
		s.contained[s.current].id = bytes.Clone(id)
	}
}

// noteFragment notes a URI with a # that is no reference.
func (s *scope) noteFragment(id []byte) {
	if len(id) > 0 {
		s.fragments = append(s.fragments, bytes.Clone(id))
		return
	}
	s.referOut()
}

func (s *scope) referOut() {
	if s.current >= 0 {
		s.contained[s.current].refersOut = true
	}
}

// resource reads a resource inside another one from behind its brace on.
func (r *reader) resource(f *frame, e *element) bool {
	name, ok := resourceTypeOf(r.body[r.offset()-1:])
	if !ok {
		return r.reportBelow("resourceType", IssueRequired, CodeMissingElement,
			"resourceType is missing, or no string; it must name the type of the resource") && r.skipMembers() && r.closeObject()
	}
	typ, ok := resourceNamed(name)
	if !ok {
		return r.reportBelow("resourceType", IssueValue, CodeUnknownType,
			Quote(string(name))+" is not a resource type of R4") && r.skipMembers() && r.closeObject()
	}
	if e.name != "contained" {
		outer := r.scope
		r.scope.start(typ)
		ok = r.object(typ, nil)
		r.scope = outer
		return ok
	}
	if f.contained && !r.report(IssueInvariant, "dom-2", "a contained resource must not contain others") {
		return false
	}
	outer := r.scope.current
	r.scope.current = len(r.scope.contained)
	r.scope.contained = append(r.scope.contained, containedResource{typ: typ})
	ok = r.object(typ, nil)
	r.scope.current = outer
	return ok
}

// resourceTypeOf finds the resourceType of the resource that text begins with.
func resourceTypeOf(text []byte) ([]byte, bool) {
	d := jsontext.NewDecoder(bytes.NewBuffer(text), doubledNames)
	if _, err := d.ReadToken(); err != nil {
		return nil, false
	}
	for d.PeekKind() == jsontext.KindString {
		name, err := d.ReadToken()
		if err != nil {
			return nil, false
		}
		if name.String() != resourceTypeName {
			if d.SkipValue() != nil {
				return nil, false
			}
			continue
		}
		value, err := d.ReadValue()
		if err != nil || value.Kind() != jsontext.KindString {
			return nil, false
		}
		typeName, err := jsontext.AppendUnquote(nil, value)
		return typeName, err == nil
	}
	return nil, false
}

// completeResource checks a resource that has been read to its end.
func (r *reader) completeResource(f *frame) bool {
	if !f.typed && !r.reportBelow("resourceType", IssueRequired, CodeMissingElement,
		"resourceType is missing; it must be \""+types[f.typ].name+"\"") {
		return false
	}
	if !f.contained && (!r.checkScope() || !r.warnOfNarrative(f)) {
		return false
	}
	return r.checkInvariants(f)
}

// warnOfNarrative is dom-6, a warning.
func (r *reader) warnOfNarrative(f *frame) bool {
	text := lookup(f.typ, []byte("text"))
	if !r.opts.Warnings || text == nil || text.typ != typeNarrative || f.seen&text.bit() != 0 {
		return true
	}
	return r.add(Issue{
		Severity: SeverityWarning, Type: IssueInvariant, Code: "dom-6", Expression: r.here(),
		Diagnostics: "a resource should have a narrative, for those who can make nothing else of it",
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
			if !r.reportContained(i, CodeDuplicateID, "the id "+Quote(string(c.id))+" is that of another contained resource too") {
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
		if problem := s.judge(reference, i, ok); problem.Code != "" {
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
		if !referred[i] && !c.refersOut && !r.reportContained(i, "dom-3",
			"nothing in the resource refers to this contained resource, and it does not refer to the resource by \"#\"") {
			return false
		}
	}
	return true
}

// reportContained reports something about a resource that the current one contains.
func (r *reader) reportContained(i int, code, diagnostics string) bool {
	f := &r.frames[r.depth-1]
	f.at, f.item = lookup(f.typ, []byte("contained")), i
	ok := r.report(IssueInvariant, code, diagnostics)
	f.at, f.item = nil, -1
	return ok
}

// judge says what is wrong with a reference to contained resource i, or to none.
func (s *scope) judge(reference localReference, i int, found bool) Issue {
	if !found {
		return Issue{
			Severity: SeverityError, Type: IssueInvariant, Code: "ref-1",
			Diagnostics: "no contained resource has the id " + Quote(string(reference.id)),
		}
	}
	if typ := s.contained[i].typ; !isTarget(reference.targets, typ) {
		return Issue{
			Severity: SeverityError, Type: IssueValue, Code: CodeWrongReferenceType,
			Diagnostics: "the reference is to a " + types[typ].name + "; " + describeTargets(reference.targets),
		}
	}
	return Issue{}
}
