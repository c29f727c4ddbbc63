package r4

import (
	"sort"
	"strings"
)

// has reports whether the value set has the code in any system.
func (v *valueSet) has(code []byte) bool {
	for i := range v.systems {
		if v.systems[i].has(code) {
			return true
		}
	}
	return false
}

// hasOf reports whether the value set has the code in the system.
func (v *valueSet) hasOf(system string, code []byte) bool {
	for i := range v.systems {
		if v.systems[i].system == system && v.systems[i].has(code) {
			return true
		}
	}
	return false
}

func (l *codeList) has(code []byte) bool {
	switch l.system {
	case "urn:ietf:bcp:13":
		return isMimeType(code)
	case "urn:ietf:bcp:47":
		return isLanguageTag(code)
	}
	at := sort.Search(len(l.codes), func(i int) bool { return l.codes[i] >= string(code) })
	return at < len(l.codes) && l.codes[at] == string(code)
}

// recordCoding records in the frame of a concept whether a coding is from the value set that the
// concept is bound to, or has a code from elsewhere.
func (r *reader) recordCoding(f *frame) {
	if r.depth < 3 || r.frames[r.depth-2].typ != typeCodeableConcept {
		return
	}
	bound := r.frames[r.depth-3].at.codes
	if bound == 0 {
		return
	}
	concept := &r.frames[r.depth-2]
	if valueSets[bound].hasOf(string(r.textOf(f, bitCodingSystem)), r.textOf(f, bitCodingCode)) {
		concept.coded = true
	} else if f.seen&bitCodingCode != 0 {
		concept.foreign = true
	}
}

// checkConcept reports a concept that has no coding from the value set that it is bound to.
// R4 terminologies.html#required: text alone does not satisfy a required binding. The binding
// to all-languages is a maximum value set instead (elementdefinition-maxValueSet). It limits
// the codes that a concept has, and does not require one.
func (r *reader) checkConcept(f *frame) bool {
	bound := r.frames[r.depth-2].at.codes
	if bound == 0 || f.coded || bound == codesAllLanguages && !f.foreign {
		return true
	}
	return r.report(IssueCodeInvalid, CodeInvalidCode, "the concept must have a coding from "+valueSets[bound].describe())
}

// isFormatCode reports whether a code is json, xml or ttl in an element of a CapabilityStatement or
// TestScript. There these codes stand for the MIME types of FHIR's formats.
func isFormatCode(f *frame, code []byte) bool {
	return (f.typ == typeCapabilityStatement || f.typ == typeTestScriptSetupActionOperation || f.typ == typeTestScriptSetupActionAssert) &&
		(string(code) == "json" || string(code) == "xml" || string(code) == "ttl")
}

// describe returns the name of the value set for a message, and its codes if they are at most
// maxListed.
func (v *valueSet) describe() string {
	const maxListed = 12
	name := v.url[strings.LastIndexByte(v.url, '/')+1:]
	var codes []string
	for _, list := range v.systems {
		codes = append(codes, list.codes...)
	}
	if len(codes) == 0 || len(codes) > maxListed {
		return "the value set " + name
	}
	return "the value set " + name + ": " + strings.Join(codes, ", ")
}
