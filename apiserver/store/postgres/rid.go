package postgres

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// ridShift is how many bits of a rid are below its milliseconds, which count from ridEpoch:
// 41 bits of them last until 2089.
const ridShift = 22

var ridEpoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// ridSource makes the lower part of rids: they rise from a random number, so that two
// processes hardly ever make the same. A unique key decides when they do.
type ridSource struct{ last atomic.Int64 }

func (s *ridSource) seed() { s.last.Store(rand.Int64N(1 << ridShift)) }

func (s *ridSource) low() int64 { return s.last.Add(1) & (1<<ridShift - 1) }

// next is a rid of a record created at a time.
func (s *ridSource) next(created time.Time) int64 { return ridFloor(created) | s.low() }

// ridFloor is the least rid of a millisecond.
func ridFloor(created time.Time) int64 { return (created.UnixMilli() - ridEpoch) << ridShift }

// createdAt is when the record of a rid was created.
func createdAt(rid int64) time.Time { return time.UnixMilli(rid>>ridShift + ridEpoch).UTC() }

// uid is the uid of the record with a rid: a UUID of version 8 made of it and of what tells
// the site from all others.
func (s *Site) uid(rid int64, kept *texts) string {
	var id uuid.UUID
	top, salt := uint64(rid)<<1, s.salt
	binary.BigEndian.PutUint64(id[:8], top>>16<<16|0x8000|top>>4&0xfff)
	binary.BigEndian.PutUint64(id[8:], 0x8000000000000000|top&0xf<<58|salt&(1<<58-1))
	text, _ := id.MarshalText() // never fails
	return kept.keep(text)
}

// revision changes with every write, that of metadata alone included, and is not repeated
// when a record is purged and made again.
func revision(rid, version int64, changes uint64, kept *texts) string {
	text := strconv.AppendInt(make([]byte, 0, 32), rid, 36)
	text = strconv.AppendInt(append(text, '.'), version, 10)
	if changes > 0 {
		text = strconv.AppendUint(append(text, '.'), changes, 10)
	}
	return kept.keep(text)
}
