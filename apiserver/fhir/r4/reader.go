package r4

import (
	"bytes"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds how deep objects and arrays nest in a body, the body itself included.
const maxDepth = 64

// Options say what a body must be.
type Options struct {
	// Type is the name of the resource type.
	Type string
	// Optional names elements, such as Endpoint.status, that may be missing
	// although R4 requires them.
	Optional []string
}

// Read checks a body in one pass and prepares it for storing. The error, if any,
// is of type Errors. The body is neither changed nor kept.
func Read(body []byte, opts Options) (Resource, error) {
	r := readers.Get().(*reader)
	defer r.release()
	r.start(body, opts)
	r.resource()
	if r.duplicate {
		// The decoder stops at the first doubled name: read again, and find them all.
		r.start(body, opts, jsontext.AllowDuplicateNames(true))
		r.names = newNameSets()
		r.resource()
	}
	if len(r.issues) > 0 {
		return Resource{}, r.issues
	}
	return r.splice(), nil
}

// reader holds what one pass over a body has found. Its methods return false
// when the pass cannot or need not go on.
type reader struct {
	buffer  bytes.Buffer
	decoder *jsontext.Decoder
	// names finds doubled names; only when the decoder is told not to.
	names     *nameSets
	duplicate bool

	body   []byte
	opts   Options
	issues Errors
	id     string
	// Where the body has what is spliced: the values of resourceType and id, the
	// offset just behind meta's brace, and the members of meta to leave out.
	resourceType, idValue span
	metaInside            int
	cuts                  cuts
	// present has a bit for each of the type's mandatory elements.
	present uint
}

var readers = sync.Pool{New: func() any {
	return &reader{decoder: jsontext.NewDecoder(strings.NewReader(""))}
}}

func (r *reader) start(body []byte, opts Options, options ...jsontext.Options) {
	*r = reader{decoder: r.decoder, body: body, opts: opts, cuts: cuts{body: body}}
	r.buffer = *bytes.NewBuffer(body)
	// From a bytes.Buffer the decoder reads in place, without copying.
	r.decoder.Reset(&r.buffer, options...)
}

// release lets go of the body and gives the reader back.
func (r *reader) release() {
	r.decoder.Reset(strings.NewReader(""))
	*r = reader{decoder: r.decoder}
	readers.Put(r)
}

// resource reads the body.
func (r *reader) resource() {
	switch kind := r.decoder.PeekKind(); kind {
	case jsontext.KindBeginObject:
	case jsontext.KindInvalid:
		r.skip() // reports why
		return
	default:
		if r.skip() && r.end() {
			r.report(IssueStructure, CodeNotAnObject, "", "the body is a JSON "+kindName(kind)+"; a resource is a JSON object")
		}
		return
	}
	if r.open() && r.members(r.member) && r.end() {
		r.checkComplete()
	}
}

// members reads an object from behind its brace on, and hands each name and where
// it starts to member, which reads the value.
func (r *reader) members(member func(name []byte, start int) bool) bool {
	for r.decoder.PeekKind() != jsontext.KindEndObject {
		raw, err := r.decoder.ReadValue()
		if err != nil {
			return r.fail(err)
		}
		name := unquote(raw)
		if !r.checkName(name) || !member(name, r.offset()-len(raw)) {
			return false
		}
	}
	_, err := r.decoder.ReadToken()
	return err == nil || r.fail(err)
}

// member reads the value of one of the resource's own elements.
func (r *reader) member(name []byte, _ int) bool {
	switch string(name) {
	case "resourceType":
		return r.readResourceType()
	case "id":
		return r.readID()
	case "meta":
		return r.readMeta()
	}
	r.notePresence(name)
	return r.skip()
}

func (r *reader) readResourceType() bool {
	value, at, ok := r.stringValue("resourceType", CodeResourceMismatch)
	if !ok || !at.found() {
		return ok
	}
	r.resourceType = at
	if string(value) == r.opts.Type {
		return true
	}
	return r.report(IssueValue, CodeResourceMismatch, "resourceType",
		"the resourceType is "+Quote(string(value))+"; this address takes "+strconv.Quote(r.opts.Type))
}

func (r *reader) readID() bool {
	value, at, ok := r.stringValue("id", CodeInvalidID)
	if !ok || !at.found() {
		return ok
	}
	r.idValue = at
	if idPattern.Match(value) {
		r.id = string(value)
		return true
	}
	return r.report(IssueValue, CodeInvalidID, "id", "the id "+Quote(string(value))+" is not "+IDPattern)
}

// stringValue reads the value of one of the resource's own elements, which must
// be a string; if it is not, that is reported and the span is none.
func (r *reader) stringValue(element, code string) ([]byte, span, bool) {
	kind := r.decoder.PeekKind()
	if kind != jsontext.KindString {
		ok := r.skip() && r.report(IssueStructure, code, element, element+" is "+withArticle(kind)+"; it must be a string")
		return nil, span{}, ok
	}
	raw, err := r.decoder.ReadValue()
	if err != nil {
		return nil, span{}, r.fail(err)
	}
	return unquote(raw), span{r.offset() - len(raw), r.offset()}, true
}

// readMeta reads meta and notes what the server replaces: versionId and lastUpdated.
func (r *reader) readMeta() bool {
	kind := r.decoder.PeekKind()
	if kind != jsontext.KindBeginObject {
		return r.skip() && r.report(IssueStructure, CodeInvalidMeta, "meta", "meta is "+withArticle(kind)+"; it must be an object")
	}
	if !r.open() {
		return false
	}
	r.metaInside = r.offset()
	ok := r.members(func(name []byte, start int) bool {
		if !r.skip() {
			return false
		}
		member := span{start, r.offset()}
		if string(name) == "versionId" || string(name) == "lastUpdated" {
			r.cuts.drop(member)
		} else {
			r.cuts.keep(member)
		}
		return true
	})
	r.cuts.close()
	return ok
}
