package robustness

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/paddock-health/paddock/hack/test/robustness/history"
)

// recorder keeps what the writers of a spec did.
type recorder struct {
	mu       sync.Mutex
	ops      []history.Operation
	answers  map[string]int
	byServer map[string]int
}

func newRecorder() *recorder {
	return &recorder{answers: map[string]int{}, byServer: map[string]int{}}
}

// recordAnswer keeps an operation on a server of the API.
func (r *recorder) recordAnswer(op history.Operation, by *client, got answer) {
	r.record(op, by.server, got.said())
	if seen, ok := by.found(op, got); ok {
		r.record(seen, by.server, "found")
	}
}

// record keeps an operation and how it was answered by whom.
func (r *recorder) record(op history.Operation, server, answered string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// A read that got no answer, or a refusal, tells nothing.
	if op.Kind != history.Read || op.Outcome == history.Acknowledged {
		r.ops = append(r.ops, op)
	}
	r.answers[string(op.Kind)+" "+answered]++
	if op.Outcome == history.Acknowledged && op.Made {
		r.byServer[server]++
	}
}

// written counts the writes that a server acknowledged.
func (r *recorder) written(server string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byServer[server]
}

func (r *recorder) all() []history.Operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ops
}

// designed are the answers that the API, and the engine behind it, are meant to
// give to correct requests while processes are killed. Any other one is a failure of its own.
var designed = regexp.MustCompile(`^(no connection|connection broke|20[01]|404 resource_not_found|410 deleted|412 version_conflict|503 (unavailable|audit_unavailable|timeout)|` +
	`ok|found|not found|deleted|claimed|unavailable|hung up|process died)$`)

// undesigned lists the other answers.
func (r *recorder) undesigned() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []string
	for said, count := range r.answers {
		if _, answer, _ := strings.Cut(said, " "); !designed.MatchString(answer) {
			found = append(found, fmt.Sprintf("%d times %s", count, said))
		}
	}
	slices.Sort(found)
	return found
}
