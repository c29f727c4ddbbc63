package indexrow

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// RidShift is the number of lower bits of a rid, which RidSource chooses. The upper 41 bits are the
// milliseconds from RidEpoch to the creation of the record. They suffice until 2089.
const RidShift = 22

// RidEpoch is the beginning of 2020, in milliseconds since 1970.
var RidEpoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// RidSource returns the lower bits of new rids. They count up from a random number, so that two
// processes rarely return the same rid. If they do, a unique index of the database rejects one of
// the two writes. A RidSource is safe for concurrent use.
type RidSource struct{ last atomic.Int64 }

// Seed sets the random number from which the lower bits count. It must be called once, before all
// other methods.
func (s *RidSource) Seed() { s.last.Store(rand.Int64N(1 << RidShift)) }

// Low returns the lower bits of a new rid.
func (s *RidSource) Low() int64 { return s.last.Add(1) & (1<<RidShift - 1) }

// Next returns a new rid for a record that is created at a time.
func (s *RidSource) Next(created time.Time) int64 { return RidFloor(created) | s.Low() }

// RidFloor returns the least rid of the records that are created in the millisecond of a time.
func RidFloor(created time.Time) int64 { return (created.UnixMilli() - RidEpoch) << RidShift }

// CreatedAt returns the time of creation of the record with a rid, in whole milliseconds and UTC.
func CreatedAt(rid int64) time.Time { return time.UnixMilli(rid>>RidShift + RidEpoch).UTC() }
