package events

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/jsonwalk"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Text is JSON text with gaps for values that the storage engine inserts. The offsets are in bytes
// of JSON, as in store.Envelope.
type Text struct {
	JSON []byte
	// VersionOffset is where the record's version is inserted. If it is 0, none is inserted.
	VersionOffset int
	// TimeOffsets are where the time of the write is inserted, in ascending order.
	TimeOffsets []int
}

// content has the members of an envelope, except for the sequence.
type content struct {
	id, eventType, site, subject string
	// timestamp is a JSON string. If it is empty, the time of the write is used.
	timestamp     jsontext.Value
	changedFields []string
	data          Text
}

// envelope returns {id, type, timestamp, siteId, subject, sequence, changedFields, data}. Equal
// contents have equal bytes. All members are present: subject is null for an event without a subject,
// and changedFields is null if it is unknown which fields changed.
func (c content) envelope() store.Envelope {
	const roomForRest = 512
	e := store.Envelope{JSON: make([]byte, 0, len(c.data.JSON)+roomForRest)}
	raw := func(text string) { e.JSON = append(e.JSON, text...) }
	quoted := func(text string) { e.JSON, _ = jsontext.AppendQuote(e.JSON, text) } // bad UTF-8 is written as U+FFFD
	raw(`{"id":`)
	quoted(c.id)
	raw(`,"type":`)
	quoted(c.eventType)
	raw(`,"timestamp":`)
	if len(c.timestamp) > 0 {
		e.JSON = append(e.JSON, c.timestamp...)
	} else {
		raw(`"`)
		e.TimeOffsets = append(e.TimeOffsets, len(e.JSON))
		raw(`"`)
	}
	raw(`,"siteId":`)
	quoted(c.site)
	raw(`,"subject":`)
	if c.subject == "" {
		raw(`null`)
	} else {
		quoted(c.subject)
	}
	raw(`,"sequence":`)
	e.SequenceOffset = len(e.JSON)
	raw(`,"changedFields":`)
	if c.changedFields == nil {
		raw(`null`)
	} else {
		for i, name := range c.changedFields {
			raw([]string{`[`, `,`}[min(i, 1)])
			quoted(name)
		}
		raw(map[bool]string{true: `[]`, false: `]`}[len(c.changedFields) == 0])
	}
	raw(`,"data":`)
	at := len(e.JSON)
	e.JSON = append(e.JSON, c.data.JSON...)
	if c.data.VersionOffset > 0 {
		e.VersionOffset = at + c.data.VersionOffset
	}
	for _, offset := range c.data.TimeOffsets {
		e.TimeOffsets = append(e.TimeOffsets, at+offset)
	}
	raw(`}`)
	return e
}

// ChangedFields returns the names of the top-level members that differ between two JSON objects, or
// that only one of them has, in ascending order. It returns an empty list if the objects are equal,
// and nil if one is invalid.
func ChangedFields(before, after []byte) []string {
	old, readable := members(before)
	now, alsoReadable := members(after)
	if !readable || !alsoReadable {
		return nil
	}
	changed := []string{}
	for name, value := range now {
		other, had := old[name]
		if !had || !(store.Body{JSON: value}).SameValue(store.Body{JSON: other}) {
			changed = append(changed, name)
		}
	}
	for name := range old {
		if _, has := now[name]; !has {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return changed
}

// members returns the members of a JSON object by name. It reports false if text is not a JSON object.
func members(text []byte) (map[string]jsontext.Value, bool) {
	found := map[string]jsontext.Value{}
	for m, err := range jsonwalk.Members(text) {
		if err != nil {
			return nil, false
		}
		found[m.Name] = m.Value
	}
	return found, true
}
