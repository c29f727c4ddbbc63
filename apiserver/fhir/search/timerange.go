package search

import (
	"fmt"
	"time"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// TimeRange parses a date with an optional prefix into the range of instants that match. zone
// applies to dates and times without a zone; nil means UTC. The prefix ne is not supported, since it
// would be two ranges. R4 search.html#prefix.
func TimeRange(value string, now time.Time, zone *time.Location) (store.TimeRange, error) {
	searched, err := parsePrefixedDate(value, now, zone)
	if err != nil {
		return store.TimeRange{}, err
	}
	ranges := searched.instants()
	if len(ranges) != 1 {
		return store.TimeRange{}, fmt.Errorf("%s has the prefix %s, which is not supported here; give eq, ge, gt, le, lt, sa, eb or ap", r4.Quote(value), r4.Quote(searched.prefix))
	}
	return ranges[0], nil
}
