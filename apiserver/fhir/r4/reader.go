package r4

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds how deep objects and arrays nest in a body, the body itself included.
const maxDepth = 64

// Options say what a body must be.
type Options struct {
	// Type is the name of the resource type, one of R4's.
	Type string
	// Optional names elements, such as Endpoint.status, that may be missing
	// although R4 requires them.
	Optional []string
	// IgnoreID skips the id of the resource, whatever its value: a create gives the resource
	// another one (R4 http.html#create). Resource.ID is empty then.
	IgnoreID bool
	// Warnings asks for what is to be said of a valid resource too.
	Warnings bool
	// Index asks for what searches look for, in the body as it is read.
	Index bool

	// literals asks for the literal references.
	literals bool
	// stored bodies have an empty id, and meta may be empty.
	stored bool
}

// Read validates a body in one pass and prepares it for storing. The error, if any,
// is of type Errors. The body is neither changed nor kept.
func Read(body []byte, opts Options) (Resource, error) {
	r := readers.Get().(*reader)
	defer r.release()
	r.start(body, opts)
	r.root()
	if slices.ContainsFunc(r.issues, func(i Issue) bool { return i.Severity == SeverityError }) {
		return Resource{}, Errors(r.issues)
	}
	resource := r.splice()
	resource.Warnings = r.issues
	resource.Index = r.index
	return resource, nil
}

// reader holds what one pass over a body has found. Its methods return false
// when the pass cannot or need not go on.
type reader struct {
	buffer  bytes.Buffer
	decoder *jsontext.Decoder
	body    []byte
	opts    Options
	issues  []Issue

	// frames are the objects that are being read, the resource first; there are depth.
	frames [maxDepth]frame
	depth  int
	// values are the members of these objects that have been read.
	values []value
	scope  scope
	index  []IndexValue
	// literals are the literal references, if asked for.
	literals []Literal
	// unescaped holds the text of a string that is written with escapes.
	unescaped []byte

	// Where the body has what is spliced: the values of resourceType and id, the
	// offset just behind meta's brace, and the members of meta to leave out.
	resourceType, idValue span
	metaInside            int
	cuts                  cuts
}

var readers = sync.Pool{New: func() any {
	return &reader{decoder: jsontext.NewDecoder(strings.NewReader(""))}
}}

// doubledNames are for the reader to find: it knows better what doubles what.
var doubledNames = jsontext.AllowDuplicateNames(true)

func (r *reader) start(body []byte, opts Options) {
	r.body, r.opts = body, opts
	r.cuts.body = body
	r.buffer = *bytes.NewBuffer(body)
	// From a bytes.Buffer the decoder reads in place, without copying.
	r.decoder.Reset(&r.buffer, doubledNames)
}

// kept bounds the memory that a reader in the pool holds.
const maxKept = 1 << 10

// release lets go of the body and gives the reader back.
func (r *reader) release() {
	r.decoder.Reset(strings.NewReader(""))
	r.buffer = bytes.Buffer{}
	r.body, r.opts, r.issues, r.index, r.literals = nil, Options{}, nil, nil, nil
	r.depth, r.values, r.scope = 0, r.values[:0], scope{}
	if cap(r.values) > maxKept {
		r.values = nil
	}
	if cap(r.unescaped) > maxKept {
		r.unescaped = nil
	}
	r.resourceType, r.idValue, r.metaInside = span{}, span{}, 0
	r.cuts = cuts{spans: r.cuts.spans[:0]}
	readers.Put(r)
}

// root reads the body.
func (r *reader) root() {
	switch kind := r.decoder.PeekKind(); kind {
	case jsontext.KindBeginObject:
	case jsontext.KindInvalid:
		r.skip() // reports why
		return
	default:
		if r.skip() && r.end() {
			r.report(IssueStructure, CodeNotAnObject, "the body is a JSON "+kindName(kind)+"; a resource is a JSON object")
		}
		return
	}
	typ, ok := resourceNamed([]byte(r.opts.Type))
	if !ok {
		r.report(IssueValue, CodeUnknownType, Quote(r.opts.Type)+" is not a resource type of R4")
		return
	}
	r.scope.start(typ)
	var t *trail
	if r.opts.Index {
		t = trails[typ]
		r.index = make([]IndexValue, 0, 32)
	}
	if r.open() && r.object(typ, t) {
		r.end()
	}
}
