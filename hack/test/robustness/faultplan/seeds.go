package faultplan

import (
	"fmt"
	"strconv"
	"strings"
)

// maxSeeds is the maximum number of seeds in one range, so that a typing error does not fill the
// memory.
const maxSeeds = 100_000

// ParseSeeds reads seeds and ranges of seeds, such as "7" and "1-200,301". An empty text has no seeds.
func ParseSeeds(text string) ([]uint64, error) {
	var seeds []uint64
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.ParseUint(from, 10, 64)
		last := first
		if err == nil && isRange {
			last, err = strconv.ParseUint(to, 10, 64)
		}
		if err != nil || last < first || last-first >= maxSeeds {
			return nil, fmt.Errorf("seeds %q: want numbers and ranges of at most %d seeds, for example 1-200,301", part, maxSeeds)
		}
		for seed := first; ; seed++ {
			seeds = append(seeds, seed)
			if seed == last {
				break
			}
		}
	}
	return seeds, nil
}
