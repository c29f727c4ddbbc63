package postgres

import (
	"hash/maphash"
	"sync"
	"time"
)

const (
	// quickStatement is the average duration below which a statement is batched with other
	// statements.
	quickStatement = 10 * time.Millisecond
	// averagedRuns is the number of runs over which the duration is averaged, and the number of runs
	// before a statement is batched. A run of 500 ms in a batch is followed by at least 14 runs alone.
	averagedRuns = 8
	// maxQuickStatements is the maximum number of statements, per process and site. At the limit all are
	// forgotten.
	maxQuickStatements = 1024
)

// quickStatements remembers how long statements take whose time the plan cannot bound, such as pages
// of records that privacy rules restrict. Statements that are quick on average are batched, like
// statements whose time is bounded. The key is the text of a statement, whose arguments may have
// other values each time. quickStatements is safe for concurrent use.
type quickStatements struct {
	mu    sync.Mutex
	seed  maphash.Seed
	known map[uint64]statementRuns
}

// statementRuns are the runs of a statement: their number, up to averagedRuns, and their average
// duration, in which newer runs have more weight.
type statementRuns struct {
	n       int
	average time.Duration
}

func newQuickStatements() *quickStatements {
	return &quickStatements{seed: maphash.MakeSeed(), known: map[uint64]statementRuns{}}
}

// isQuick reports whether a statement is quick on average.
func (q *quickStatements) isQuick(sql string) bool {
	key := maphash.String(q.seed, sql)
	q.mu.Lock()
	defer q.mu.Unlock()
	runs := q.known[key]
	return runs.n == averagedRuns && runs.average < quickStatement
}

// add records a run of a statement.
func (q *quickStatements) add(sql string, took time.Duration) {
	key := maphash.String(q.seed, sql)
	q.mu.Lock()
	defer q.mu.Unlock()
	runs, known := q.known[key]
	if !known && len(q.known) >= maxQuickStatements {
		clear(q.known)
	}
	runs.n = min(runs.n+1, averagedRuns)
	runs.average += (took - runs.average) / time.Duration(runs.n)
	q.known[key] = runs
}
