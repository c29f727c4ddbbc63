package pagetoken

import (
	"bytes"
	"encoding/base64"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func keyOf(b byte) []byte {
	return []byte(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, size)))
}

func TestRotate(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	old, next, last := entry{keyOf(1), start}, entry{keyOf(2), start.Add(life - verifyOnly)}, entry{keyOf(0), start.Add(-life)}
	for name, test := range map[string]struct {
		ring, want []entry
		at         time.Time
	}{
		"a young key stays":                      {[]entry{old}, []entry{old}, start.Add(life - verifyOnly - 1)},
		"the next is added before it is due":     {[]entry{old}, []entry{old, next}, next.made},
		"the next does not sign at once":         {[]entry{old, next}, []entry{old, next}, next.made.Add(verifyOnly - 1)},
		"the next signs when servers know it":    {[]entry{old, next}, []entry{next, old}, next.made.Add(verifyOnly)},
		"the former key verifies":                {[]entry{next, old}, []entry{next, old}, next.made.Add(life / 2)},
		"the former key verifies until the next": {[]entry{old, last}, []entry{old, next, last}, next.made},
		"the former key goes as the next signs":  {[]entry{old, next, last}, []entry{next, old}, next.made.Add(verifyOnly)},
		"a key without a time is replaced":       {[]entry{{key: keyOf(1)}}, []entry{{key: keyOf(1)}, {keyOf(2), start}}, start},
		"a long sleep takes one step, not more":  {[]entry{old}, []entry{old, {keyOf(2), start.Add(10 * life)}}, start.Add(10 * life)},
	} {
		t.Run(name, func(t *testing.T) {
			got := rotate(test.ring, life, test.at, func() []byte { return keyOf(2) })
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(entry{})); diff != "" {
				t.Errorf("ring (-want +got):\n%s", diff)
			}
			read, ok := parseRing(formatRing(got))
			if diff := cmp.Diff(got, read, cmp.AllowUnexported(entry{})); diff != "" || !ok {
				t.Errorf("read again (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEverySignatureIsVerified walks through three replacements: what one server signs, servers
// that read the Secret up to an hour earlier or later verify, and so does each for the life of a
// key.
func TestEverySignatureIsVerified(t *testing.T) {
	made := byte(1)
	ring := []entry{{keyOf(1), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}}
	var states [][]entry
	const step = 10 * time.Minute
	for now := ring[0].made; len(states) < int(3*life/step); now = now.Add(step) {
		ring = rotate(ring, life, now, func() []byte { made++; return keyOf(made) })
		states = append(states, ring)
	}
	if made < 3 {
		t.Fatalf("%d keys were made", made)
	}
	verifies := func(ring []entry, key []byte) bool {
		for _, e := range ring {
			if bytes.Equal(e.key, key) {
				return true
			}
		}
		return false
	}
	lag, half := int((verifyOnly-step)/step), int((life-2*verifyOnly)/step)
	for i, ring := range states {
		for _, other := range []int{i - lag, i + lag, i + half} {
			if other >= 0 && other < len(states) && !verifies(states[other], ring[0].key) {
				t.Fatalf("what is signed at step %d is refused at step %d", i, other)
			}
		}
	}
}
