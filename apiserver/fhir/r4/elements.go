package r4

import "github.com/go-json-experiment/json/jsontext"

// mandatory are the elements of a resource that R4 requires (cardinality 1..1 or
// 1..*), of the types that have any.
var mandatory = map[string][]string{
	"DeviceMetric":  {"type", "category"},
	"Endpoint":      {"status", "connectionType", "payloadType", "address"},
	"Group":         {"type", "actual"},
	"RelatedPerson": {"patient"},
}

// notePresence remembers that the resource has one of its mandatory elements. A
// primitive may have its extensions alone, in its companion. The decoder is about
// to read the value.
func (r *reader) notePresence(name []byte) {
	elements := mandatory[r.opts.Type]
	if len(elements) == 0 || r.decoder.PeekKind() == jsontext.KindNull {
		return
	}
	if len(name) > 0 && name[0] == '_' {
		name = name[1:]
	}
	for i, element := range elements {
		if string(name) == element {
			r.present |= 1 << i
		}
	}
}

// checkComplete reports what the resource must have and has not.
func (r *reader) checkComplete() {
	if !r.resourceType.found() && !r.reported("resourceType") {
		r.report(IssueRequired, CodeMissingElement, "resourceType", "resourceType is missing; it must be \""+r.opts.Type+"\"")
	}
	for i, element := range mandatory[r.opts.Type] {
		if r.present&(1<<i) == 0 && !r.isOptional(element) {
			r.report(IssueRequired, CodeMissingElement, element, "the required element "+element+" is missing")
		}
	}
}

// reported tells whether there is an issue about one of the resource's own elements.
func (r *reader) reported(element string) bool {
	for _, issue := range r.issues {
		if issue.Expression == r.opts.Type+"."+element {
			return true
		}
	}
	return false
}

func (r *reader) isOptional(element string) bool {
	for _, path := range r.opts.Optional {
		if path == r.opts.Type+"."+element {
			return true
		}
	}
	return false
}
