package postgres

import (
	"encoding/binary"
	"strconv"

	"github.com/google/uuid"
)

// uid returns the UID of the record with a rid: a UUID of version 8 that consists of the rid and
// the salt of the site. It allocates the text in kept.
func (s *Store) uid(rid int64, kept *texts) string {
	var id uuid.UUID
	top, salt := uint64(rid)<<1, s.salt
	binary.BigEndian.PutUint64(id[:8], top>>16<<16|0x8000|top>>4&0xfff)
	binary.BigEndian.PutUint64(id[8:], 0x8000000000000000|top&0xf<<58|salt&(1<<58-1))
	text, _ := id.MarshalText() // cannot fail
	return kept.keep(text)
}

// revision returns a text that changes with every write that changes the record, even if only its
// metadata change. A record that is purged and created again gets other revisions. changes is
// metadata.changes.
func revision(rid, version int64, changes uint64, kept *texts) string {
	text := strconv.AppendInt(make([]byte, 0, 32), rid, 36)
	text = strconv.AppendInt(append(text, '.'), version, 10)
	if changes > 0 {
		text = strconv.AppendUint(append(text, '.'), changes, 10)
	}
	return kept.keep(text)
}
