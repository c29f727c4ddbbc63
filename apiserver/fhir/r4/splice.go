package r4

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"time"
)

// Resource is a body as it is stored: byte for byte what the client sent, but its
// id is the empty string and its meta has neither versionId nor lastUpdated.
// AppendJSON puts the three in again.
type Resource struct {
	Body []byte
	// IDOffset is just behind the opening quote of the id, MetaOffset just behind
	// the opening brace of meta.
	IDOffset, MetaOffset int
	Type                 string
	// ID is what the client sent, empty when it sent none or Options.IgnoreID was set.
	ID string
	// Warnings are what is to be said of the resource all the same, when asked for.
	Warnings []Issue
	// Index is what searches look for, when asked for. It is about the body that was
	// read, not about Body.
	Index []IndexValue
}

// span is a range of the body. Offset 0 is before the opening brace, so the zero
// span is none.
type span struct{ from, to int }

func (s span) found() bool { return s.to != 0 }

// cuts are what to leave out of an object, in order. What the client wrote around
// it stays, so that an answer sent back is stored as the very bytes it came from.
type cuts struct {
	body    []byte
	spans   []span
	dropped span // members dropped since the last one kept
	keptEnd int
}

// add takes the next member.
func (c *cuts) add(member span, drop bool) {
	if drop {
		c.drop(member)
	} else {
		c.keep(member)
	}
}

func (c *cuts) drop(member span) {
	if !c.dropped.found() {
		c.dropped.from = member.from
	}
	c.dropped.to = member.to
}

// keep ends a run of dropped members, which goes with the comma behind it.
func (c *cuts) keep(member span) {
	if c.dropped.found() {
		comma := bytes.IndexByte(c.body[c.dropped.to:], ',')
		c.spans = append(c.spans, span{c.dropped.from, c.dropped.to + comma + 1})
		c.dropped = span{}
	}
	c.keptEnd = member.to
}

// close ends the object: a run of dropped members at its end goes with the comma
// before it.
func (c *cuts) close() {
	if !c.dropped.found() {
		return
	}
	if c.keptEnd != 0 {
		c.dropped.from = c.keptEnd
	}
	c.spans = append(c.spans, c.dropped)
}

// edit replaces a span of the body by text. What it marks is where, in the outcome,
// the text's byte at is.
type edit struct {
	span
	text  string
	marks mark
	at    int
}

// mark is a place in a stored body.
type mark int

const (
	nothing mark = iota
	idMark
	metaMark
	marksCount
)

const (
	insertedID   = `,"id":""`
	insertedMeta = `,"meta":{}`
)

// splice makes the stored body of a resource without issues.
func (r *reader) splice() Resource {
	res := Resource{Type: r.opts.Type}
	var room [8]edit
	edits := room[:0]
	behind := span{r.resourceType.to, r.resourceType.to}
	switch {
	case r.idValue.found() && r.opts.IgnoreID: // it may be of any kind
		edits = append(edits, edit{span: r.idValue, text: `""`, marks: idMark, at: 1})
		behind = span{r.idValue.to, r.idValue.to}
	case r.idValue.found():
		res.ID = string(r.unquote(r.body[r.idValue.from:r.idValue.to]))
		edits = append(edits, edit{span: span{r.idValue.from + 1, r.idValue.to - 1}, marks: idMark})
		behind = span{r.idValue.to, r.idValue.to}
	default:
		edits = append(edits, edit{span: behind, text: insertedID, marks: idMark, at: len(insertedID) - 1})
	}
	if r.metaInside != 0 {
		edits = append(edits, edit{span: span{r.metaInside, r.metaInside}, marks: metaMark})
		for _, cut := range r.cuts.spans {
			edits = append(edits, edit{span: cut})
		}
	} else {
		edits = append(edits, edit{span: behind, text: insertedMeta, marks: metaMark, at: len(insertedMeta) - 1})
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var offsets [marksCount]int
	res.Body, offsets = apply(r.body, edits)
	res.IDOffset, res.MetaOffset = offsets[idMark], offsets[metaMark]
	return res
}

// apply makes the edits, which are in order and do not overlap.
func apply(body []byte, edits []edit) (out []byte, offsets [marksCount]int) {
	out = make([]byte, 0, len(body)+len(insertedID)+len(insertedMeta))
	done := 0
	for _, e := range edits {
		out = append(out, body[done:e.from]...)
		offsets[e.marks] = len(out) + e.at
		out = append(out, e.text...)
		done = e.to
	}
	return append(out, body[done:]...), offsets
}

// AppendInstant appends t as a FHIR instant, in UTC with milliseconds. Only layouts that
// the time package knows by name are quick.
func AppendInstant(dst []byte, t time.Time) []byte {
	dst = t.UTC().AppendFormat(dst, time.RFC3339)
	milli := t.Nanosecond() / 1e6
	return append(dst[:len(dst)-len("Z")], '.', byte('0'+milli/100), byte('0'+milli/10%10), byte('0'+milli%10), 'Z')
}

// AppendJSON appends a stored body with its id, versionId and lastUpdated put in.
func AppendJSON(dst, body []byte, idOffset, metaOffset int, id string, version int64, lastUpdated time.Time) []byte {
	if idOffset < metaOffset {
		dst = append(dst, body[:idOffset]...)
		dst = append(dst, id...)
		dst = append(dst, body[idOffset:metaOffset]...)
		dst = appendMeta(dst, body[metaOffset:], version, lastUpdated)
		return append(dst, body[metaOffset:]...)
	}
	dst = append(dst, body[:metaOffset]...)
	dst = appendMeta(dst, body[metaOffset:], version, lastUpdated)
	dst = append(dst, body[metaOffset:idOffset]...)
	dst = append(dst, id...)
	return append(dst, body[idOffset:]...)
}

// appendMeta appends the server's members of a meta object of which rest follows.
func appendMeta(dst, rest []byte, version int64, lastUpdated time.Time) []byte {
	dst = append(dst, `"versionId":"`...)
	dst = strconv.AppendInt(dst, version, 10)
	dst = append(dst, `","lastUpdated":"`...)
	dst = AppendInstant(dst, lastUpdated)
	dst = append(dst, '"')
	if !closesObject(rest) {
		dst = append(dst, ',')
	}
	return dst
}

// closesObject reports whether the next token of valid JSON is a closing brace.
func closesObject(rest []byte) bool {
	for _, c := range rest {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c == '}'
		}
	}
	return false
}
