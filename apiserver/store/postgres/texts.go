package postgres

import "strings"

// texts keeps the strings of several records in one piece of memory: there are four to
// each record of a page.
type texts struct {
	strings.Builder
	repeated string
}

// textsOfRecord is about how long those of a record are: its id, its uid, its revision.
const textsOfRecord = 96

// keep returns a string of its own.
func (t *texts) keep(value []byte) string {
	from := t.Len()
	t.Write(value)
	return t.String()[from:]
}

// keepRepeated is keep for what is likely the same as the last time, as types are.
func (t *texts) keepRepeated(value []byte) string {
	if t.repeated != string(value) {
		t.repeated = t.keep(value)
	}
	return t.repeated
}
