package r4

import (
	"bytes"
	"slices"
	"strings"
)

// literal is a parsed Reference.reference. R4 references.html#literal.
type literal struct {
	// typ is the resource type that the reference names. It is valid if typed is set.
	typ   typeIndex
	typed bool
}

// checkReference checks the form and the target type of a Reference that has been read. It sets
// f.refersTo. A reference to a contained resource is only recorded, for checkScope.
func (r *reader) checkReference(f *frame) bool {
	if f.seen&(bitReferenceReference|bitReferenceType) == 0 {
		return true
	}
	targets := r.frames[r.depth-2].at.targets
	named, ok := r.checkReferenceType(f, targets)
	f.refersTo = named.typ
	if !ok || f.seen&bitReferenceReference == 0 {
		return ok
	}
	text := r.textOf(f, bitReferenceReference)
	if len(text) == 0 {
		return true // reported before
	}
	if text[0] == '#' {
		return r.recordLocalReference(text[1:], targets)
	}
	l, problem := r.parseLiteral(text)
	if l.typed {
		f.refersTo = l.typ
	}
	switch {
	case problem != "":
		return r.reportBelow("reference", IssueValue, CodeInvalidReference, Quote(string(text))+" is not a valid reference: "+problem)
	case l.typed && named.typed && l.typ != named.typ:
		return r.reportBelow("type", IssueValue, CodeWrongReferenceType,
			"the target has the type "+types[l.typ].name+", but Reference.type is "+types[named.typ].name+"; send the same type in both")
	case l.typed && !isTarget(targets, l.typ):
		return r.reportBelow("reference", IssueValue, CodeWrongReferenceType,
			"the target has the type "+types[l.typ].name+"; "+describeTargets(targets))
	}
	return true
}

// checkReferenceType checks and returns Reference.type: the name of a resource type, or the URL of
// its StructureDefinition.
func (r *reader) checkReferenceType(f *frame, targets uint16) (literal, bool) {
	if f.seen&bitReferenceType == 0 {
		return literal{}, true
	}
	text := r.textOf(f, bitReferenceType)
	name, _ := bytes.CutPrefix(text, []byte("http://hl7.org/fhir/StructureDefinition/"))
	typ, ok := resourceNamed(name)
	switch {
	case len(text) == 0:
		return literal{}, true // reported before
	case !ok:
		return literal{}, r.reportBelow("type", IssueValue, CodeInvalidReference, Quote(string(text))+" is not a resource type of R4; send the name of a type, such as Patient")
	case !isTarget(targets, typ):
		return literal{}, r.reportBelow("type", IssueValue, CodeWrongReferenceType,
			"the target has the type "+types[typ].name+"; "+describeTargets(targets))
	}
	return literal{typ: typ, typed: true}, true
}

// recordLocalReference records a reference to a contained resource. With an empty id it refers to
// the container.
func (r *reader) recordLocalReference(id []byte, targets uint16) bool {
	if len(id) == 0 {
		r.scope.recordContainerReference()
		return isTarget(targets, r.scope.typ) || r.reportBelow("reference", IssueValue, CodeWrongReferenceType,
			"the target is the resource itself, which has the type "+types[r.scope.typ].name+"; "+describeTargets(targets))
	}
	s := &r.scope
	from := len(s.paths)
	s.paths = r.appendSteps(s.paths)
	s.references = append(s.references, localReference{bytes.Clone(id), targets, from, len(s.paths)})
	return true
}

const relativeForm = "send a URL, a URN, Type/id or Type/id/_history/version"

// parseLiteral parses an absolute URL, a URN, a relative reference or, in a Bundle, a conditional
// reference. problem is empty if the reference is valid.
func (r *reader) parseLiteral(text []byte) (l literal, problem string) {
	scheme, rest, hasScheme := bytes.Cut(text, []byte{':'})
	switch {
	case !isURI(text):
		return l, "it has white space; percent-encode it"
	case hasScheme && string(scheme) == "urn":
		if bytes.HasPrefix(rest, []byte("uuid:")) && !isUUID(bytes.ToLower(text)) || bytes.HasPrefix(rest, []byte("oid:")) && !isOID(text) {
			return l, "the URN is not well-formed; send urn:uuid: with a UUID or urn:oid: with an OID"
		}
		return l, ""
	case hasScheme && (string(scheme) == "http" || string(scheme) == "https"):
		if own, ok := r.parseOwn(text); ok {
			return own, ""
		}
		return parseRESTful(rest), ""
	case hasScheme && isScheme(scheme):
		return l, ""
	}
	if query := bytes.IndexByte(text, '?'); query >= 0 && r.inBundle() {
		l.typ, l.typed = resourceNamed(text[:query]) // a conditional reference, which the bundle resolves
	} else {
		l = parseRelative(text)
	}
	if !l.typed {
		return l, relativeForm
	}
	return l, ""
}

func isScheme(text []byte) bool {
	for i, c := range text {
		if !isLetter(c) && (i == 0 || !isDigit(c) && c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return len(text) > 0
}

// parseOwn parses the URL of a record of the site, in which the type may be the contract's segment. It reports
// whether the URL begins with a base URL of the site.
func (r *reader) parseOwn(url []byte) (literal, bool) {
	for _, base := range r.opts.Bases {
		if len(url) <= len(base) || url[len(base)] != '/' || string(url[:len(base)]) != base {
			continue
		}
		record := url[len(base)+1:]
		spelling, rest, _ := bytes.Cut(record, []byte{'/'})
		if t, known := TypeOf(string(spelling)); known {
			record = append([]byte(t.Name+"/"), rest...)
		}
		return parseRelative(record), true
	}
	return literal{}, false
}

// parseRESTful returns the type in a URL that has the form of a resource's URL on a FHIR server.
// Another URL has no type. url is the text after the scheme and its colon.
func parseRESTful(url []byte) literal {
	segments := 2
	if version := bytes.LastIndex(url, []byte("/_history/")); version >= 0 {
		segments = 4
	}
	at := len(url)
	for range segments {
		if at = bytes.LastIndexByte(url[:at], '/'); at < 0 {
			return literal{}
		}
	}
	if at < len("//x") {
		return literal{} // the last segments are the host
	}
	return parseRelative(url[at+1:])
}

// parseRelative parses Type/id or Type/id/_history/version.
func parseRelative(text []byte) literal {
	name, rest, _ := bytes.Cut(text, []byte{'/'})
	id, version, versioned := bytes.Cut(rest, []byte("/_history/"))
	typ, ok := resourceNamed(name)
	if !ok || !isID(id) || versioned && !isID(version) {
		return literal{}
	}
	return literal{typ: typ, typed: true}
}

func isTarget(targets uint16, typ typeIndex) bool {
	return targets == 0 || slices.Contains(targetSets[targets], typ)
}

func describeTargets(targets uint16) string {
	names := make([]string, len(targetSets[targets]))
	for i, typ := range targetSets[targets] {
		names[i] = types[typ].name
	}
	return "this element can refer to " + strings.Join(names, ", ")
}

// inBundle reports whether the body is a Bundle.
func (r *reader) inBundle() bool { return r.frames[0].typ == typeBundle }
