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
	// slowFor is from when on a walk is too slow for others to wait for.
	slowFor = 50 * time.Millisecond
)

// longLists remembers which lists were found to have too many records to be read as a
// whole: who asks for the next page, or the same once more, walks at once. Where a list has
// become short meanwhile, the walk finds the same in more time.
type longLists struct {
	mu    sync.Mutex
	known map[uint64]longList
}

// longList is what is known of a list. Slow tells that a walk in its stead took long.
type longList struct {
	until time.Time
	slow  bool
}

var longSeed = maphash.MakeSeed()

// longID is what a list is remembered by: how it is read, and up to how many records.
func longID(from string, args []any, few int) uint64 {
	var hash maphash.Hash
	hash.SetSeed(longSeed)
	_, _ = fmt.Fprint(&hash, few, from, args) // never fails
	return hash.Sum64()
}

// get tells what is known of a list, if anything is.
func (l *longLists) get(id uint64) (list longList, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list = l.known[id]
	return list, time.Now().Before(list.until)
}

// add remembers lists, or of those that are known already only whether they are slow: each
// is tried again when its time is over.
func (l *longLists) add(ids []uint64, slow bool) {
	if len(ids) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil || len(l.known) >= mostLong {
		l.known = map[uint64]longList{}
	}
	now := time.Now()
	for _, id := range ids {
		list := l.known[id]
		if !now.Before(list.until) {
			list.until = now.Add(longFor)
		}
		list.slow = slow
		l.known[id] = list
	}
}
