package audit

import (
	"bytes"
	"encoding/json"
	"slices"
)

// afterMark is the first byte of a line that has only what differs from the line before. Such a
// line is not JSON, so that a program that does not know the format refuses the line instead of
// misreading it.
const afterMark = '+'

// AppendAfter appends the entry as a line for a sequence of entries, without a line break. before is
// the previous entry of the sequence, or nil for the first. The line has only what differs from
// before. The line is much shorter than a line of AppendJSON, because most entries have the same
// site, caller and interaction as the previous entry.
func (e *Entry) AppendAfter(b []byte, before *Entry) []byte {
	if before == nil {
		return e.AppendJSON(b)
	}
	b = e.appendMembers(append(b, afterMark), before)
	if e.Records != before.Records {
		b = e.Records.appendShortJSON(append(b, `,"records":`...))
	}
	return append(b, '}')
}

// ParseAfter parses a line that AppendAfter wrote. before is the previous entry of the sequence,
// which ParseAfter does not change.
func ParseAfter(line []byte, before Entry) (Entry, error) {
	changes, isAfter := bytes.CutPrefix(line, []byte{afterMark})
	if !isAfter {
		return Parse(line)
	}
	before.Parameters = slices.Clone(before.Parameters) // Unmarshal writes into it
	err := json.Unmarshal(changes, &before)
	return before, err
}
