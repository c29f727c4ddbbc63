package history_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/paddock-health/paddock/hack/test/robustness/history"
)

func TestLinearizable(t *testing.T) {
	a, b := put(0, 10, 1, "a"), put(20, 30, 2, "b")
	for name, s := range map[string]struct {
		ops      []history.Operation
		readings []history.Reading
		want     int
	}{
		"writes one after another":     {[]history.Operation{a, b}, []history.Reading{final("a", "b")}, 0},
		"writes at the same time":      {[]history.Operation{put(0, 10, 2, "a"), put(5, 12, 1, "b")}, []history.Reading{final("b", "a")}, 0},
		"an unknown write landed":      {[]history.Operation{a, unknown(b)}, []history.Reading{final("a", "b")}, 0},
		"an unknown write is lost":     {[]history.Operation{a, unknown(b)}, []history.Reading{final("a")}, 0},
		"an unknown write was seen":    {[]history.Operation{a, unknown(b), read(40, 50, 2, "b")}, []history.Reading{final("a", "b")}, 0},
		"deleted and brought back":     {[]history.Operation{a, remove(20, 30, 2), ifAt(2, put(40, 50, 3, "b"))}, []history.Reading{final("a", "", "b")}, 0},
		"a refused write":              {[]history.Operation{a, b, unmet(ifAt(1, put(40, 50, 0, "c")))}, []history.Reading{final("a", "b")}, 0},
		"a purged record":              {[]history.Operation{a, purge(20, 30)}, []history.Reading{final("a")}, 0},
		"a write is lost":              {[]history.Operation{a, b}, []history.Reading{final("a")}, 1},
		"a stale read":                 {[]history.Operation{a, b, read(40, 50, 1, "a")}, []history.Reading{final("a", "b")}, 1},
		"a read of what was undone":    {[]history.Operation{a, unknown(b), read(40, 50, 2, "b")}, []history.Reading{final("a")}, 1},
		"reads that go back":           {[]history.Operation{a, unknown(b), read(40, 50, 2, "b"), read(60, 70, 1, "a")}, []history.Reading{final("a", "b")}, 1},
		"two winners":                  {[]history.Operation{a, ifAt(1, b), ifAt(1, put(20, 30, 3, "c"))}, []history.Reading{final("a", "b", "c")}, 1},
		"a wrong refusal":              {[]history.Operation{a, unmet(ifAt(1, put(20, 30, 0, "b")))}, []history.Reading{final("a")}, 1},
		"a refusal in the wrong order": {[]history.Operation{a, unmet(ifAbsent(put(-9, -5, 0, "b")))}, []history.Reading{final("a")}, 1},
		"unknown deletions":            {[]history.Operation{a, unknown(remove(20, 0, 0)), unknown(remove(22, 0, 0)), ifAt(2, put(40, 50, 3, "b"))}, []history.Reading{final("a", "", "b")}, 0},
		"many unknown writes":          {append(manyUnknown(40), put(100, 110, 21, "z")), []history.Reading{final(manyTokens(20)...)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := history.CheckLinearizable(s.ops, s.readings); len(got) != s.want {
				t.Errorf("got %d violations, want %d: %v", len(got), s.want, got)
			}
		})
	}
}

// manyUnknown are writes of which every second one landed: see manyTokens.
func manyUnknown(n int) (ops []history.Operation) {
	for i := range n {
		ops = append(ops, unknown(put(time.Duration(i), 0, 0, fmt.Sprint("t", i))))
	}
	return ops
}

func manyTokens(n int) (tokens []string) {
	for i := range n {
		tokens = append(tokens, fmt.Sprint("t", 2*i))
	}
	return append(tokens, "z")
}
