package postgres

import (
	"sync"
	"time"
)

const (
	// longListTTL is the time after which a search tries a list again that was too long.
	longListTTL = time.Minute
	// maxLongLists is the maximum number of entries, per process and site. At the limit the cache is
	// emptied.
	maxLongLists = 4096
	// slowScan is the duration in a batch from which a scan is marked as slow. A query whose scan is
	// marked as slow is not batched with other queries, unless its statement is quick on average
	// (quickStatements).
	slowScan = 50 * time.Millisecond
)

// longListCache remembers lists of candidates that were too long for a branch by list (README, "How a
// search is planned"). The next page of a search, or a repeated search, then uses the branch by scan
// at once. If the list has become shorter, that plan finds the same records but takes longer. The
// cache is safe for concurrent use.
type longListCache struct {
	mu    sync.Mutex
	lists map[uint64]longList
}

// longList is a cache entry, which expires at until. isSlow reports whether the scan that replaced
// the list was slow.
type longList struct {
	until  time.Time
	isSlow bool
}

// get returns an entry. known reports whether it exists and has not expired.
func (l *longListCache) get(id uint64) (list longList, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list = l.lists[id]
	return list, time.Now().Before(list.until)
}

// add adds lists that were too long. It does not extend the lifetime of a list that is in the cache
// already, so that every list is tried again after longListTTL. slow sets isSlow.
func (l *longListCache) add(ids []uint64, slow bool) {
	if len(ids) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lists == nil || len(l.lists) >= maxLongLists {
		l.lists = map[uint64]longList{}
	}
	now := time.Now()
	for _, id := range ids {
		list := l.lists[id]
		if !now.Before(list.until) {
			list.until = now.Add(longListTTL)
		}
		list.isSlow = slow
		l.lists[id] = list
	}
}
