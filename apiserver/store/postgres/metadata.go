package postgres

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// metadata is the column metadata of a record's row. The zero value is NULL.
type metadata struct {
	// changes distinguishes revisions of one version. It grows with each write that changes only the
	// metadata. A deletion sets it to 0, and so does a Restore that adds versions.
	changes uint64
	// version is the version of the record at the time when text was written.
	version int64
	text    []byte
}

var errBadMetadata = errors.New("the stored metadata is invalid")

// of returns the version of the record at the time when text was written, or 0 if there is no text.
func (m *metadata) of() int64 {
	if m.text == nil {
		return 0
	}
	return m.version
}

// pack encodes the metadata for the column. It returns nil, which is stored as NULL, if changes is 0 and
// there is no text.
func (m *metadata) pack() []byte {
	if m.changes == 0 && len(m.text) == 0 {
		return nil
	}
	head := make([]byte, 0, 4+len(m.text))
	head = binary.AppendUvarint(binary.AppendUvarint(head, m.changes), uint64(m.version))
	return append(head, m.text...)
}

// unpackMetadata decodes the column metadata. The result shares no memory with packed.
func unpackMetadata(packed []byte) (metadata, error) {
	if packed == nil {
		return metadata{}, nil
	}
	changes, n := binary.Uvarint(packed)
	if n <= 0 {
		return metadata{}, errBadMetadata
	}
	version, v := binary.Uvarint(packed[n:])
	if v <= 0 {
		return metadata{}, errBadMetadata
	}
	m := metadata{changes: changes, version: int64(version)}
	if text := packed[n+v:]; len(text) > 0 {
		m.text = bytes.Clone(text)
	}
	return m, nil
}

func (s *Store) annotate(current, next *state) change {
	st := s.planIndex.Statement()
	return change{statement: st, sql: "WITH w AS (UPDATE res SET metadata = " + st.Arg(next.metadata.pack()) +
		" WHERE site = $1 AND self = " + st.Arg(current.self) + isUnchanged(st, current) + " RETURNING rid, upd)\nSELECT rid, upd FROM w"}
}
