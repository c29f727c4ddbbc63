package store

import "time"

// Retention is how long a site keeps deleted records, superseded versions and ended deliveries. In
// Tombstones and Versions, zero means no limit.
type Retention struct {
	// Tombstones is how long deleted records are kept, with their histories.
	Tombstones time.Duration
	// Versions is how long versions are kept after they were superseded.
	Versions time.Duration
	// Deliveries is how long ended webhook deliveries are kept. Zero means 7 days. In the Cluster engine,
	// it applies only to failed and undelivered deliveries. Successful deliveries are limited by number.
	Deliveries time.Duration
}

// Cutoffs are the times before which an engine removes deleted records and superseded versions. A
// zero time removes nothing.
type Cutoffs struct {
	// Tombstones is compared with the time of the delete, Versions with the time at which a version was
	// superseded.
	Tombstones, Versions time.Time
}

// Cutoffs returns the cutoffs of a pass of retention at the time now.
func (r Retention) Cutoffs(now time.Time) Cutoffs {
	before := func(age time.Duration) time.Time {
		if age <= 0 {
			return time.Time{}
		}
		return now.Add(-age)
	}
	return Cutoffs{Tombstones: before(r.Tombstones), Versions: before(r.Versions)}
}

// Retained counts the tombstones and the superseded versions that passes of retention have removed.
type Retained struct{ Tombstones, Versions int64 }

// Plus returns the sums of both counts.
func (r Retained) Plus(other Retained) Retained {
	return Retained{r.Tombstones + other.Tombstones, r.Versions + other.Versions}
}
