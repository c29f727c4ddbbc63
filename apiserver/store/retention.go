package store

import "time"

// Retention is how long a site keeps what is no longer current. A zero duration means no limit, or
// for Deliveries the default of the engine.
type Retention struct {
	// Tombstones is how long deleted records are kept, with their histories.
	Tombstones time.Duration
	// Versions is how long versions are kept after they were superseded.
	Versions time.Duration
	// Deliveries is how long ended webhook deliveries are kept.
	Deliveries time.Duration
}

// Cutoffs are the times before which an engine removes what is no longer current. A zero time
// removes nothing.
type Cutoffs struct {
	// Tombstones is compared with the time of the delete, Versions with the time at which a version was
	// superseded.
	Tombstones, Versions time.Time
}

// Cutoffs returns the cutoffs at a time.
func (r Retention) Cutoffs(now time.Time) Cutoffs {
	before := func(age time.Duration) time.Time {
		if age <= 0 {
			return time.Time{}
		}
		return now.Add(-age)
	}
	return Cutoffs{Tombstones: before(r.Tombstones), Versions: before(r.Versions)}
}

// Retained is what a pass of retention has removed.
type Retained struct{ Tombstones, Versions int64 }

// Plus returns the sum of two passes.
func (r Retained) Plus(other Retained) Retained {
	return Retained{r.Tombstones + other.Tombstones, r.Versions + other.Versions}
}
