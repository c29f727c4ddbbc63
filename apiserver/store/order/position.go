package order

import (
	"encoding/binary"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Position encodes the position at which a page ends: the order, and the last place of the page.
// The texts of ranks need not be valid UTF-8, because engines may truncate them within a character.
func (o Order) Position(last *Place) store.Position {
	p := binary.AppendUvarint(make([]byte, 0, 128), uint64(len(o)))
	for i, part := range o {
		p = binary.AppendUvarint(p, uint64(part.Field))
		p = appendBool(appendText(p, part.Param), part.Descending)
		rank := last.Ranks[i]
		p = appendText(binary.AppendVarint(appendBool(p, rank.Missing), rank.Number), rank.Text)
	}
	return appendText(appendText(binary.AppendVarint(p, last.Created), last.Type), last.ID)
}

// Parse returns the place that a position encodes. It returns nil for nil, which is the start of
// the first page. Errors: store.ErrBadPosition, also for a position in another order.
func (o Order) Parse(from store.Position) (*Place, error) {
	if from == nil {
		return nil, nil
	}
	p := positionReader{rest: from}
	if p.uvarint() != uint64(len(o)) {
		return nil, store.ErrBadPosition
	}
	last := &Place{Ranks: make([]Rank, len(o))}
	for i, part := range o {
		if p.uvarint() != uint64(part.Field) || p.text() != part.Param || p.bool() != part.Descending {
			return nil, store.ErrBadPosition
		}
		last.Ranks[i] = Rank{Missing: p.bool(), Number: p.varint(), Text: p.text()}
	}
	last.Created, last.Type, last.ID = p.varint(), p.text(), p.text()
	if p.bad || len(p.rest) > 0 {
		return nil, store.ErrBadPosition
	}
	return last, nil
}

// maxMillis is greater than all times in milliseconds since 1970 until the year 2109. Of the rids
// (indexrow.RidFloor), only those of records created in the first 18 minutes of 2020 are between 0 and
// maxMillis.
const maxMillis = 1 << 42

// InMillis reports whether the Cluster engine made the position: then Created is a time in milliseconds
// since 1970. In positions of the Postgres engine, Created is a rid (indexrow.RidFloor). After a move of
// its site, a client can send a position that the other engine made, which an engine must refuse.
func (p *Place) InMillis() bool { return 0 <= p.Created && p.Created < maxMillis }

func appendBool(p []byte, b bool) []byte {
	if b {
		return append(p, 1)
	}
	return append(p, 0)
}

func appendText(p []byte, text string) []byte {
	return append(binary.AppendUvarint(p, uint64(len(text))), text...)
}

// positionReader reads the values of a position one after the other. After an invalid value, bad is
// true and all further values are zero.
type positionReader struct {
	rest []byte
	bad  bool
}

// took removes n bytes that were read from rest. binary.Uvarint and binary.Varint return n ≤ 0 for
// an invalid number.
func (p *positionReader) took(n int) {
	if p.bad = p.bad || n <= 0; !p.bad {
		p.rest = p.rest[n:]
	}
}

func (p *positionReader) uvarint() uint64 {
	value, n := binary.Uvarint(p.rest)
	p.took(n)
	return value
}

func (p *positionReader) varint() int64 {
	value, n := binary.Varint(p.rest)
	p.took(n)
	return value
}

func (p *positionReader) bool() bool { return p.uvarint() == 1 }

func (p *positionReader) text() string {
	size := p.uvarint()
	if p.bad = p.bad || size > uint64(len(p.rest)); p.bad {
		return ""
	}
	text := string(p.rest[:size])
	p.rest = p.rest[size:]
	return text
}
