package postgres

import "strings"

// texts allocates the strings of several records in one block of memory, because a page has several
// strings for each record.
type texts struct {
	strings.Builder
	repeated string
}

// textBytesPerRecord is the approximate total length in bytes of the strings of one record: id, UID
// and revision.
const textBytesPerRecord = 96

// keep returns a copy of value in the block.
func (t *texts) keep(value []byte) string {
	from := t.Len()
	t.Write(value)
	return t.String()[from:]
}

// keepRepeated is like keep, but returns the string of the previous call if it equals value. It is
// for types, which are often the same.
func (t *texts) keepRepeated(value []byte) string {
	if t.repeated != string(value) {
		t.repeated = t.keep(value)
	}
	return t.repeated
}
