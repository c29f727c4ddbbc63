package postgres

import (
	"fmt"
	"hash/maphash"
	"sync"
	"time"
)

const (
	// longFor is how long a list is taken to have too many records as it had.
	longFor = time.Minute
	// mostLong is how many lists are remembered.
	mostLong = 4096
)

// longLists remembers which lists were found to have too many records to be read as a
// whole: who asks for the next page, or the same once more, walks at once. Where a list has
// become short meanwhile, the walk finds the same in more time.
type longLists struct {
	mu    sync.Mutex
	until map[uint64]time.Time
}

var longSeed = maphash.MakeSeed()

// longID is what a list is remembered by: how it is read, and up to how many records.
func longID(from string, args []any, few int) uint64 {
	var hash maphash.Hash
	hash.SetSeed(longSeed)
	_, _ = fmt.Fprint(&hash, few, from, args) // never fails
	return hash.Sum64()
}

func (l *longLists) has(id uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.until[id])
}

func (l *longLists) add(ids []uint64) {
	if len(ids) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until == nil || len(l.until) >= mostLong {
		l.until = map[uint64]time.Time{}
	}
	until := time.Now().Add(longFor)
	for _, id := range ids {
		l.until[id] = until
	}
}
