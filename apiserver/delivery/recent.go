package delivery

import (
	"maps"
	"slices"
	"time"
)

// RecentCounts collects the numbers of a Recent. The zero value is not valid; use NewRecentCounts.
type RecentCounts struct {
	from    time.Time
	minutes map[time.Time]*Minute
}

// NewRecentCounts returns counts of events accepted at or after from, which is the start of a
// minute.
func NewRecentCounts(from time.Time) *RecentCounts {
	return &RecentCounts{from: from, minutes: map[time.Time]*Minute{}}
}

// Add adds a number of deliveries with a status, of events accepted at a time.
func (c *RecentCounts) Add(accepted time.Time, status Status, number int64) {
	at := accepted.UTC().Truncate(time.Minute)
	minute := c.minutes[at]
	if minute == nil {
		minute = &Minute{At: at}
		c.minutes[at] = minute
	}
	switch status {
	case Pending:
		minute.Pending += number
	case Delivered:
		minute.Delivered += number
	case Failed, Undelivered:
		minute.Failed += number
	}
}

// Incomplete notes that deliveries of events accepted at or before a time can be missing.
func (c *RecentCounts) Incomplete(last time.Time) {
	if next := last.UTC().Truncate(time.Minute).Add(time.Minute); next.After(c.from) {
		c.from = next
	}
}

// Recent returns the counts, without minutes that are incomplete.
func (c *RecentCounts) Recent() Recent {
	recent := Recent{From: c.from}
	for _, at := range slices.SortedFunc(maps.Keys(c.minutes), time.Time.Compare) {
		if !at.Before(c.from) {
			recent.Minutes = append(recent.Minutes, *c.minutes[at])
		}
	}
	return recent
}
