package r4

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is the maximum nesting of objects and arrays in a body, including the body itself. A
// body with deeper nesting is invalid (CodeTooDeep).
const maxDepth = 64

// Options are the options of Read. Only Type is required.
type Options struct {
	// Type is the name of the expected resource type. It must be one of R4.
	Type string
	// Optional are elements of the resource itself, such as Endpoint.status, that may be missing
	// although R4 requires them.
	Optional []string
	// IgnoreID is set for a create, which gives the resource a new id (R4 http.html#create). The id in
	// the body is then not validated, and Resource.ID is empty.
	IgnoreID bool
	// Warnings is set to return warnings too, in Resource.Warnings or Errors.
	Warnings bool
	// Bases are the base URLs of the site. In a reference that begins with one of them, the type may also be
	// the contract's segment.
	Bases []string
	// Index is set to return the values of search parameters in Resource.Index.
	Index bool

	// literals is set to collect the literal references.
	literals bool
	// stored is set for a stored body, whose id is empty and whose meta may be empty.
	stored bool
}

// Read validates a body in one pass and prepares it for storage. It neither modifies nor retains
// the body. If the body is invalid, the error is an Errors, which has the warnings too if opts.Warnings
// is set. Warnings alone do not make a body invalid.
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

// reader is the state of one pass over a body. Its methods return false if the pass has to end.
type reader struct {
	buffer  bytes.Buffer
	decoder *jsontext.Decoder
	body    []byte
	opts    Options
	issues  []Issue

	// frames[:depth] are the objects that are being read, from the resource inwards.
	frames [maxDepth]frame
	depth  int
	// values are the members of these objects that have been read.
	values []value
	scope  scope
	index  []SelectedValue
	// literals are the literal references, if Options.literals is set.
	literals []Literal
	// unescaped is the buffer for results of unquote.
	unescaped []byte

	// The edits of splice depend on the spans of the values of resourceType and id, the offset after
	// the opening brace of meta, and the members of meta that are removed.
	resourceType, idValue span
	metaOffset            int
	cuts                  cuts
}

var readers = sync.Pool{New: func() any {
	return &reader{decoder: jsontext.NewDecoder(strings.NewReader(""))}
}}

// allowDuplicateNames leaves duplicate names to the reader, which reports them with their path.
var allowDuplicateNames = jsontext.AllowDuplicateNames(true)

func (r *reader) start(body []byte, opts Options) {
	r.body, r.opts = body, opts
	r.cuts.body = body
	r.buffer = *bytes.NewBuffer(body)
	// From a bytes.Buffer the decoder reads in place, without copying.
	r.decoder.Reset(&r.buffer, allowDuplicateNames)
}

// maxKept is the maximum capacity of the slices values and unescaped that a reader in the pool
// retains. Larger slices are dropped.
const maxKept = 1 << 10

// release returns the reader to the pool. The reader no longer refers to the body.
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
	r.resourceType, r.idValue, r.metaOffset = span{}, span{}, 0
	r.cuts = cuts{spans: r.cuts.spans[:0]}
	readers.Put(r)
}

// root reads and validates the whole body.
func (r *reader) root() {
	switch kind := r.decoder.PeekKind(); kind {
	case jsontext.KindBeginObject:
	case jsontext.KindInvalid:
		r.skip() // reports the syntax error
		return
	default:
		if r.skip() && r.end() {
			r.report(IssueStructure, CodeNotAnObject, "the body is a JSON "+kindName(kind)+"; send a resource as a JSON object")
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
		r.index = make([]SelectedValue, 0, 32)
	}
	if r.open() && r.object(typ, t) {
		r.end()
	}
}
