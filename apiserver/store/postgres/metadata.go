package postgres

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/paddock-health/paddock/apiserver/store"
)

// metadata is what a record's row has in the column metadata; all zero is NULL.
type metadata struct {
	// changes counts how often it was changed and nothing else: each is a revision.
	changes uint64
	// version is the record's when the text was written.
	version int64
	text    []byte
}

var errBadMetadata = errors.New("the stored metadata cannot be read")

// of is the version that the text was written at, 0 where there is none.
func (m *metadata) of() int64 {
	if m.text == nil {
		return 0
	}
	return m.version
}

// pack makes what is stored; nil is NULL.
func (m *metadata) pack() []byte {
	if m.changes == 0 && len(m.text) == 0 {
		return nil
	}
	head := make([]byte, 0, 4+len(m.text))
	head = binary.AppendUvarint(binary.AppendUvarint(head, m.changes), uint64(m.version))
	return append(head, m.text...)
}

// unpackMetadata shares nothing with what it reads.
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

// setMetadata gives a version the metadata that an operation wants it to have.
func (at *state) setMetadata(op store.Op) {
	switch {
	case at.deleted:
		at.metadata = metadata{}
	case op.Metadata != nil:
		at.metadata.version, at.metadata.text = at.version, nil
		if len(op.Metadata) > 0 {
			at.metadata.text = op.Metadata
		}
	}
}

// annotated is the current version with other metadata.
func annotated(op store.Op, current *state) state {
	next := *current
	next.metadata.changes++
	next.setMetadata(op)
	return next
}

// annotate writes the statement that changes nothing but metadata.
func (s *Site) annotate(current, next *state) change {
	st := s.statement()
	return change{statement: st, sql: "WITH w AS (UPDATE res SET metadata = " + st.arg(next.metadata.pack()) +
		" WHERE site = $1 AND self = " + st.arg(current.self) + stillAt(st, current) + " RETURNING rid, upd)\nSELECT rid, upd FROM w"}
}
