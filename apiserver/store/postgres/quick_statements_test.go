package postgres

import (
	"strconv"
	"testing"
	"time"
)

func TestQuickStatements(t *testing.T) {
	q := newQuickStatements()
	run := func(sql string, n int, took time.Duration) {
		for range n {
			q.add(sql, took)
		}
	}
	expect := func(want bool, when string) {
		t.Helper()
		if got := q.isQuick("a"); got != want {
			t.Errorf("%s: quick %t, want %t", when, got, want)
		}
	}
	expect(false, "without a run")
	run("a", averagedRuns-1, time.Millisecond)
	expect(false, "before enough runs")
	run("a", 1, 2*quickStatement)
	expect(true, "one run that is not quick")
	run("a", 1, 50*quickStatement)
	expect(false, "after a slow run")
	run("a", 10, time.Millisecond)
	expect(false, "soon after a slow run")
	run("a", 40, time.Millisecond)
	expect(true, "long after a slow run")
	run("a", 40, 2*quickStatement)
	expect(false, "always slow")
	for i := range 2 * maxQuickStatements {
		run(strconv.Itoa(i), 1, time.Millisecond)
	}
	if len(q.known) > maxQuickStatements {
		t.Errorf("%d statements are remembered", len(q.known))
	}
}
