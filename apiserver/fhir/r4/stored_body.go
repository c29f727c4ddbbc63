package r4

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"time"
)

// Resource is a valid resource in the form in which it is stored.
type Resource struct {
	// Body is the client's body with an empty id and without meta.versionId and meta.lastUpdated,
	// which AppendJSON inserts. An empty id and an empty meta are added if the client sent none. All
	// other bytes are unchanged.
	Body []byte
	// IDOffset is the offset after the opening quote of the id, and MetaOffset the offset after the
	// opening brace of meta.
	IDOffset, MetaOffset int
	Type                 string
	// ID is the id in the client's body. It is empty if there is none or Options.IgnoreID is set.
	ID string
	// Warnings are the warnings about the resource. It is nil unless Options.Warnings is set.
	Warnings []Issue
	// Index has the values of search parameters, as spans of the client's body, not of Body. It is nil
	// unless Options.Index is set.
	Index []SelectedValue
}

// span is a range of the body. The zero span means that there is none, because offset 0 is before
// the opening brace.
type span struct{ from, to int }

func (s span) found() bool { return s.to != 0 }

// cuts computes the spans that are removed from an object, in order. The text around the removed
// members stays unchanged, so a client that sends a response back stores the same bytes again.
type cuts struct {
	body    []byte
	spans   []span
	dropped span // the members dropped since the last kept member
	keptEnd int  // the end of the last kept member
}

// add adds the next member.
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

// keep ends a run of dropped members. The comma after the run is dropped with it.
func (c *cuts) keep(member span) {
	if c.dropped.found() {
		comma := bytes.IndexByte(c.body[c.dropped.to:], ',')
		c.spans = append(c.spans, span{c.dropped.from, c.dropped.to + comma + 1})
		c.dropped = span{}
	}
	c.keptEnd = member.to
}

// close ends the object. If its last members are dropped, the comma before them is dropped too.
func (c *cuts) close() {
	if !c.dropped.found() {
		return
	}
	if c.keptEnd != 0 {
		c.dropped.from = c.keptEnd
	}
	c.spans = append(c.spans, c.dropped)
}

// edit replaces a span of the body by text. marks says which offset of the result is that of
// text[at].
type edit struct {
	span
	text  string
	marks mark
	at    int
}

// mark names an offset in a stored body.
type mark int

const (
	noMark mark = iota
	idMark
	metaMark
	marksCount
)

const (
	insertedID   = `,"id":""`
	insertedMeta = `,"meta":{}`
)

// splice returns the stored form of a resource without errors.
func (r *reader) splice() Resource {
	res := Resource{Type: r.opts.Type}
	var buffer [8]edit
	edits := buffer[:0]
	behind := span{r.resourceType.to, r.resourceType.to}
	switch {
	case r.idValue.found() && r.opts.IgnoreID: // the value may have any JSON kind
		edits = append(edits, edit{span: r.idValue, text: `""`, marks: idMark, at: 1})
		behind = span{r.idValue.to, r.idValue.to}
	case r.idValue.found():
		res.ID = string(r.unquote(r.body[r.idValue.from:r.idValue.to]))
		edits = append(edits, edit{span: span{r.idValue.from + 1, r.idValue.to - 1}, marks: idMark})
		behind = span{r.idValue.to, r.idValue.to}
	default:
		edits = append(edits, edit{span: behind, text: insertedID, marks: idMark, at: len(insertedID) - 1})
	}
	if r.metaOffset != 0 {
		edits = append(edits, edit{span: span{r.metaOffset, r.metaOffset}, marks: metaMark})
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

// apply applies edits, which are in order and do not overlap. It returns the offsets of their
// marks.
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

// AppendInstant appends t as a FHIR instant, in UTC, truncated to milliseconds. It formats the
// milliseconds itself, because the time package is fast with its predefined layouts only.
func AppendInstant(dst []byte, t time.Time) []byte {
	dst = t.UTC().AppendFormat(dst, time.RFC3339)
	milli := t.Nanosecond() / 1e6
	return append(dst[:len(dst)-len("Z")], '.', byte('0'+milli/100), byte('0'+milli/10%10), byte('0'+milli%10), 'Z')
}

// AppendJSON appends a stored body to dst, with its id, versionId and lastUpdated inserted.
// idOffset and metaOffset are those of the Resource.
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

// AppendGaps appends a stored body like AppendJSON, for a version that is not written yet.
// versionId and lastUpdated are empty strings. versionOffset and timeOffset are the offsets in text
// at which their values are to be inserted, before either value is inserted.
func AppendGaps(dst, body []byte, idOffset, metaOffset int, id string) (text []byte, versionOffset, timeOffset int) {
	versionOffset = len(dst) + metaOffset + len(`"versionId":"`)
	if idOffset < metaOffset {
		versionOffset += len(id)
	}
	text = AppendJSON(dst, body, idOffset, metaOffset, id, 0, time.Time{})
	text = slices.Delete(text, versionOffset, versionOffset+len("0"))
	timeOffset = versionOffset + len(`","lastUpdated":"`)
	return slices.Delete(text, timeOffset, timeOffset+len(AppendInstant(nil, time.Time{}))), versionOffset, timeOffset
}

// appendMeta appends the server's members of meta. rest is the text that follows.
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
