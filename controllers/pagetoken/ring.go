package pagetoken

import (
	"bytes"
	"fmt"
	"slices"
	"time"
)

const (
	// verifyOnly is how long a new key only verifies. By its end, all API servers have read the key.
	verifyOnly = time.Hour
	// life is the age at which a key stops signing. After that, it only verifies, until its successor is
	// replaced too.
	life = 90 * 24 * time.Hour
	// feedLife is life for the keys that sign calendar feed URLs. It is longer, because people copy these
	// URLs into other programs.
	feedLife = 365 * 24 * time.Hour
)

// rings are the key rings in the Secret: the key of each in its data, and the age at which a signing key
// of the ring stops signing.
var rings = []struct {
	name string
	life time.Duration
}{
	{"page", life},
	{"hold", life},
	{"feed", feedLife},
}

// entry is a key of a ring, in base64, and its creation time.
type entry struct {
	key  []byte
	made time.Time
}

// parseRing parses a ring: a line for each key, with the key and its creation time. A key without a
// time gets the zero time. It returns false if the text is malformed or has no key.
func parseRing(text []byte) ([]entry, bool) {
	var ring []entry
	for line := range bytes.Lines(bytes.TrimSpace(text)) {
		key, stamp, timed := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		e := entry{key: key}
		if timed {
			var err error
			if e.made, err = time.Parse(time.RFC3339, string(stamp)); err != nil {
				return nil, false
			}
		}
		if !valid(key) {
			return nil, false
		}
		ring = append(ring, e)
	}
	return ring, len(ring) > 0
}

func formatRing(ring []entry) []byte {
	var text bytes.Buffer
	for _, e := range ring {
		fmt.Fprintf(&text, "%s %s\n", e.key, e.made.UTC().Format(time.RFC3339))
	}
	return text.Bytes()
}

// rotate returns the ring after the change that is due at the time, or the same ring if no change is
// due. The first key signs, and all keys verify. A new key is added after the first key, and becomes
// the first when all API servers know it. The ring then keeps only one other key, the former first.
func rotate(ring []entry, life time.Duration, now time.Time, newKey func() []byte) []entry {
	first := ring[0]
	next := slices.IndexFunc(ring, func(e entry) bool { return e.made.After(first.made) })
	switch {
	case next > 0 && !now.Before(ring[next].made.Add(verifyOnly)):
		return []entry{ring[next], first}
	case next < 0 && !now.Before(first.made.Add(life-verifyOnly)):
		return slices.Insert(slices.Clone(ring), 1, entry{newKey(), now.UTC().Truncate(time.Second)})
	default:
		return ring
	}
}
