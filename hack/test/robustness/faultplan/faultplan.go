// Package faultplan makes the plan of a seeded fault run: which faults happen, to which process and
// when.
package faultplan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Engine is the storage of the site under test.
type Engine string

// The engines.
const (
	Cluster  Engine = "cluster"
	Postgres Engine = "postgres"
)

// Process is a process that faults happen to.
type Process string

// The processes.
const (
	APIServer     Process = "apiserver"
	APIServer2    Process = "apiserver-2"
	PostgreSQL    Process = "postgres"
	Etcd          Process = "etcd"
	KubeAPIServer Process = "kube-apiserver"
)

// Action is what a fault does to a process.
type Action string

// The actions.
const (
	// Kill ends the process by SIGKILL, and starts it again after the duration of the fault.
	Kill Action = "kill"
	// Pause stops the process by SIGSTOP for the duration of the fault.
	Pause Action = "pause"
	// RollOut ends the process by SIGTERM and starts it again. The duration of the fault is ignored.
	RollOut Action = "roll-out"
	// Cut ends all sessions of Postgres repeatedly for the duration of the fault.
	Cut Action = "cut"
	// Full makes etcd refuse writes, as if its quota were exhausted, for the duration of the fault.
	Full Action = "full"
)

// Kind is a kind of fault, such as "kill-apiserver". Faults of both API servers have the same kinds.
type Kind string

func kindOf(action Action, process Process) Kind {
	return Kind(string(action) + "-" + strings.TrimSuffix(string(process), "-2"))
}

// cause is a fault without its times.
type cause struct {
	action  Action
	process Process
}

var apiServerCauses = []cause{
	{Kill, APIServer}, {Kill, APIServer2}, {Pause, APIServer}, {Pause, APIServer2}, {RollOut, APIServer}, {RollOut, APIServer2},
}

// causes are the possible faults of runs on each engine.
var causes = map[Engine][]cause{
	Cluster: slices.Concat(apiServerCauses, []cause{
		{Kill, Etcd}, {Pause, Etcd}, {Full, Etcd}, {Kill, KubeAPIServer}, {Pause, KubeAPIServer},
	}),
	Postgres: slices.Concat(apiServerCauses, []cause{
		{Kill, PostgreSQL}, {Pause, PostgreSQL}, {Cut, PostgreSQL},
	}),
}

// Kinds returns the kinds of faults of runs on an engine, sorted.
func Kinds(engine Engine) []Kind {
	var kinds []Kind
	for _, c := range causes[engine] {
		kinds = append(kinds, kindOf(c.action, c.process))
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

const (
	// A run has minFaults to maxFaults faults.
	minFaults, maxFaults = 2, 4
	// maxOffset is the maximum time from the start of the faults to the start of a fault. With
	// maxDuration it bounds the length of a run.
	maxOffset = 3 * time.Second
	// minDuration is long enough for some requests to run during the fault.
	minDuration = 200 * time.Millisecond
	maxDuration = 2 * time.Second
)

// Fault is one fault of a plan. Faults of the same process that overlap happen one after the other.
type Fault struct {
	Kind    Kind
	Action  Action
	Process Process
	// Offset is the time from the start of the faults to the start of this one.
	Offset   time.Duration
	Duration time.Duration
}

func (f Fault) String() string {
	text := fmt.Sprintf("%s %s at %.1fs", f.Action, f.Process, f.Offset.Seconds())
	if f.Action != RollOut {
		text += fmt.Sprintf(" for %.1fs", f.Duration.Seconds())
	}
	return text
}

// Plan are the faults of a run, in the order in which they start.
type Plan []Fault

// New returns the plan of a seed. It depends only on the arguments. If kinds is nil, all kinds are
// possible. Otherwise, the plan has only faults of these kinds, and no faults if kinds is empty.
func New(engine Engine, seed uint64, kinds []Kind) Plan {
	possible := causes[engine]
	if kinds != nil {
		possible = slices.DeleteFunc(slices.Clone(possible), func(c cause) bool {
			return !slices.Contains(kinds, kindOf(c.action, c.process))
		})
	}
	if len(possible) == 0 {
		return nil
	}
	random := rand.New(rand.NewPCG(seed, uint64(len(engine))))
	plan := make(Plan, minFaults+random.IntN(maxFaults-minFaults+1))
	for i := range plan {
		c := possible[random.IntN(len(possible))]
		plan[i] = Fault{
			Kind: kindOf(c.action, c.process), Action: c.action, Process: c.process,
			Offset:   between(random, 0, maxOffset),
			Duration: between(random, minDuration, maxDuration),
		}
	}
	slices.SortStableFunc(plan, func(a, b Fault) int { return int(a.Offset - b.Offset) })
	return plan
}

// between returns a random duration between two bounds, in steps of 100 ms, which is the precision of
// the text of a fault.
func between(random *rand.Rand, shortest, longest time.Duration) time.Duration {
	const step = 100 * time.Millisecond
	return shortest + step*time.Duration(random.Int64N(int64((longest-shortest)/step)+1))
}

// Has reports whether the plan has a fault of the kind.
func (p Plan) Has(kind Kind) bool {
	return slices.ContainsFunc(p, func(f Fault) bool { return f.Kind == kind })
}

func (p Plan) String() string {
	if len(p) == 0 {
		return "none"
	}
	var texts []string
	for _, f := range p {
		texts = append(texts, f.String())
	}
	return strings.Join(texts, ", ")
}
