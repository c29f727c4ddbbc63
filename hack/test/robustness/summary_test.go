package robustness

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/paddock-health/paddock/hack/test/robustness/history"
)

// summary is told at the end.
type summary struct {
	text strings.Builder
	// failed: a spec did.
	failed bool
}

// add tells what happened in one spec.
func (s *summary) add(title string, log *recorder, victims []*victim) {
	ops := log.all()
	outcomes := map[history.Outcome]int{}
	var acknowledged []history.Operation
	for _, op := range ops {
		outcomes[op.Outcome]++
		if op.Outcome == history.Acknowledged && op.Made {
			acknowledged = append(acknowledged, op)
		}
	}
	fmt.Fprintf(&s.text, "%s\n  operations  %d: %d acknowledged (%d writes), %d refused, %d unknown\n", title, len(ops),
		outcomes[history.Acknowledged], len(acknowledged), outcomes[history.Refused], outcomes[history.Unknown])
	fmt.Fprintf(&s.text, "  longest time without an acknowledged write  %s\n", longestGap(acknowledged).Round(time.Millisecond))
	for _, v := range victims {
		fmt.Fprintf(&s.text, "  %-23s killed %3d times, paused %2d times", v.name, v.kills, v.pauses)
		if v.leasesLost > 0 {
			fmt.Fprintf(&s.text, ", lost its lease %d times", v.leasesLost)
		}
		fmt.Fprintf(&s.text, ", down for %s\n", v.downtime.Round(time.Millisecond))
	}
	for _, said := range slices.Sorted(maps.Keys(log.answers)) {
		fmt.Fprintf(&s.text, "  answer      %-24s %6d\n", said, log.answers[said])
	}
}

// faults tells what happened to the writers on the engine.
func (s *summary) faults(run *engineRun) {
	fmt.Fprintf(&s.text, "  killed at random times %d times\n", run.kills)
	for _, do := range []mischief{die, sleep, lose, hangUp} {
		var at []string
		for f, n := range run.happened {
			if f.Do == do {
				at = append(at, strings.TrimSpace(fmt.Sprintf("%d %s", n, f.Step)))
			}
		}
		slices.Sort(at)
		fmt.Fprintf(&s.text, "  %-7s after  %s\n", do, strings.Join(at, ", "))
	}
}

func longestGap(ops []history.Operation) time.Duration {
	slices.SortFunc(ops, func(a, b history.Operation) int { return cmp.Compare(a.End, b.End) })
	var longest time.Duration
	for i := 1; i < len(ops); i++ {
		longest = max(longest, ops[i].End-ops[i-1].End)
	}
	return longest
}

// checked counts what was read back.
func (s *summary) checked(readings []history.Reading) {
	records := map[string]bool{}
	versions := 0
	for _, r := range readings {
		if r.Final && !records[r.Record] {
			records[r.Record] = true
			versions += len(r.Versions)
		}
	}
	fmt.Fprintf(&s.text, "  checked     %d histories with %d versions\n", len(records), versions)
}

func (s *summary) String() string { return "\n" + s.text.String() + "\n" }
