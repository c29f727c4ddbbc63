package postgres

import (
	"sync"
	"time"
)

const (
	// settledAfter is the time without writes after which a search by time may use the watermark of an
	// earlier search. During writes, the newest hits are later than that one, and the page would be read
	// twice.
	settledAfter = time.Second
	// settledTTL is the maximum age of a watermark that is used again. After the clock of the database was
	// set back, searches may miss open writes for as long.
	settledTTL = time.Second
	// maxExpectedLate is the maximum number of further rows that a search by time reads because hits may
	// be too late. If more are expected, the page is read once, with the watermark as a bound.
	maxExpectedLate = 40
)

// lateHits remembers for a site what the last searches by time have found, so that the next one likely
// needs one statement. It is safe for concurrent use.
type lateHits struct {
	mu sync.Mutex
	// count is the number of late hits of the last page, or half of the count before if that is more.
	count int
	// newest is the latest time of a hit, in milliseconds since 1970.
	newest int64
	// watermark is the last watermark, in milliseconds since 1970. It was read after readAt.
	watermark int64
	readAt    time.Time
}

// expected returns the number of hits of the next page that may be too late. few is false if they are
// more than maxExpectedLate; the next call expects half of them.
func (l *lateHits) expected() (n int, few bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count > maxExpectedLate {
		l.count /= 2
		return 0, false
	}
	return min(2*l.count, maxExpectedLate), true
}

// note records the number of late hits of a page and the latest time of all its hits.
func (l *lateHits) note(late int, newest int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count, l.newest = max(late, l.count/2), max(l.newest, newest)
}

// noteWatermark records a watermark that was read after a time.
func (l *lateHits) noteWatermark(ms int64, readAt time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watermark, l.readAt = ms, readAt
}

// settledWatermark returns the last watermark if it is at most as old as settledTTL and all known writes
// are older than it by settledAfter. Otherwise it returns 0. The watermark is still valid: no write that
// is in progress, or begins later, has a time before it. written is the time of the newest write of this
// process.
func (l *lateHits) settledWatermark(written int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.readAt) > settledTTL || l.watermark < max(written, l.newest)+settledAfter.Milliseconds() {
		return 0
	}
	return l.watermark
}
