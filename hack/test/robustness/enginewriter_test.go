package robustness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/hack/test/robustness/history"
)

const (
	// namesakes is how many names the writers on the engine use at a time, and
	// purge and use again.
	namesakes = 4
	// turns is how many operations a name has before the next one takes its place:
	// one purge without an answer leaves most about its name open.
	turns = 40
	// linesAtATime is how many lines the writers claim at a time. Those that a name
	// holds when its turns are over stay held.
	linesAtATime = 3
)

// steps are all steps of the engine's writes, each with what gets there.
var steps = map[string]history.Kind{
	cluster.StepPlaceholder: history.Put,
	cluster.StepClaims:      history.Put,
	cluster.StepHistory:     history.Put,
	cluster.StepRecord:      history.Put,
	cluster.StepReleased:    history.Delete,
	cluster.StepPurging:     history.Purge,
	cluster.StepPurgeMet:    history.Purge,
	cluster.StepHistoryGone: history.Purge,
	cluster.StepRecordGone:  history.Purge,
}

// engineRun is what the writers on the engine share.
type engineRun struct {
	env    []string
	random *rand.Rand
	log    *recorder

	mu       sync.Mutex
	wanted   []fault // the faults still to come, in a random order
	happened map[fault]int
	kills    int
	names    [namesakes]string
	used     [namesakes]int
	born     int
	readings []history.Reading
}

// next takes a fault that is still wanted, now and then.
func (r *engineRun) next(random *rand.Rand) fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.wanted) == 0 || random.IntN(3) != 0 {
		return fault{}
	}
	return r.wanted[random.IntN(len(r.wanted))]
}

// struck counts a fault that happened.
func (r *engineRun) struck(f fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.happened[fault{Do: f.Do, Step: f.Step}]++
	for i, w := range r.wanted {
		if w.Do == f.Do && w.Step == f.Step {
			r.wanted = append(r.wanted[:i], r.wanted[i+1:]...)
			return
		}
	}
}

func (r *engineRun) left() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.wanted)
}

// name chooses a record.
func (r *engineRun) name(random *rand.Rand) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := random.IntN(namesakes)
	if r.used[i]%turns == 0 {
		r.born++
		r.names[i] = fmt.Sprintf("namesake-%d", r.born)
	}
	r.used[i]++
	return r.names[i]
}

// line chooses what to claim.
func (r *engineRun) line(random *rand.Rand) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return []string{fmt.Sprintf("line-%d-%d", r.born/namesakes, random.IntN(linesAtATime))}
}

func (r *engineRun) saw(reading history.Reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readings = append(r.readings, reading)
}

// engineWriter does one random operation after another through its own process.
type engineWriter struct {
	process
	run    *engineRun
	name   string
	random *rand.Rand
	count  int
	// holder is the last record that claimed something.
	holder string
	// planned are the tasks that come next.
	planned []task
}

func (w *engineWriter) work(ctx context.Context) error {
	if err := w.start(w.run.env...); err != nil {
		return err
	}
	defer w.end()
	for ctx.Err() == nil {
		t := w.choose()
		op := history.Operation{Kind: t.Kind, Record: t.Record, Token: t.Token, Lines: t.Lines, Start: clock()}
		m, err := w.ask(ctx, t)
		op.End = clock()
		if (err != nil || m.Outcome == history.Unknown) && len(t.Lines) > 0 {
			w.contest(t)
		}
		if err != nil {
			op.Outcome = history.Unknown
			w.run.log.record(op, w.name, "process died")
			if err := w.start(w.run.env...); err != nil {
				return err
			}
			continue
		}
		w.record(op, t, m)
	}
	return nil
}

func (w *engineWriter) record(op history.Operation, t task, m message) {
	op.Outcome, op.Version, op.UID, op.Made = m.Outcome, m.Version, m.UID, m.Made
	switch {
	case t.Whole && m.Outcome == history.Acknowledged:
		w.run.saw(history.Reading{Record: t.Record, By: w.name, Start: op.Start, End: op.End, Versions: m.Versions})
		op.Outcome = history.Unknown // all it tells is in the reading
	case t.Kind == history.Read:
		op.Token = m.Token
	case len(t.Lines) > 0 && m.Outcome == history.Acknowledged:
		w.holder = t.Record
	}
	w.run.log.record(op, w.name, m.Said)
}

// ask gives the process a task. It wakes the process when that falls asleep. After
// an error the process is dead.
func (w *engineWriter) ask(ctx context.Context, t task) (message, error) {
	if err := w.send(t); err != nil {
		_, _ = w.next() // collects it
		return message{}, err
	}
	for {
		m, err := w.next()
		if err != nil || m.Event == done {
			return m, err
		}
		w.run.struck(t.Fault)
		if t.Fault.Do == sleep {
			idle(ctx, between(w.random, 200*time.Millisecond, 1500*time.Millisecond))
			w.signal(syscall.SIGCONT)
		}
	}
}

// contest plans to look whether a write without an answer happened, and then to
// claim for another record what that may hold.
func (w *engineWriter) contest(t task) {
	w.planned = []task{
		{Kind: history.Read, Record: t.Record, Whole: true},
		{Kind: history.Put, Record: w.run.name(w.random), Token: w.token(), Lines: t.Lines},
	}
}

func (w *engineWriter) token() string {
	w.count++
	return fmt.Sprintf("%s-%06d", w.name, w.count)
}

// choose mixes the operations, and adds a fault that is still wanted.
func (w *engineWriter) choose() task {
	if len(w.planned) > 0 {
		t := w.planned[0]
		w.planned = w.planned[1:]
		return t
	}
	t := task{Kind: history.Put, Record: w.run.name(w.random), Token: w.token()}
	switch n := w.random.IntN(100); {
	case n < 10:
		t.Kind = history.Delete
	case n < 20:
		t.Kind = history.Purge
	case n < 32:
		t.Kind, t.Whole = history.Read, true
	case n < 40:
		t.Kind = history.Read
	case n < 60:
		t.Lines = w.run.line(w.random)
	case n < 68:
		t.Lines = []string{}
	}
	if f := w.run.next(w.random); f.Do != "" && t.Kind != history.Read {
		w.spoil(&t, f)
	}
	if t.Kind != history.Put {
		t.Token, t.Lines = "", nil
	}
	return t
}

// spoil adds a fault to a task, and makes it one that is likely to get there.
func (w *engineWriter) spoil(t *task, f fault) {
	t.Fault = f
	switch f.Step {
	case "":
		t.Fault.Nth, t.Fault.More = 1+w.random.IntN(3), w.random.IntN(3)
		t.Fault.Delay = between(w.random, time.Millisecond, 150*time.Millisecond)
		if w.random.IntN(2) == 0 { // writes with claims have the most to lose
			t.Kind, t.Lines = history.Put, w.run.line(w.random)
		}
		return
	case cluster.StepPlaceholder, cluster.StepClaims:
		t.Lines = w.run.line(w.random)
	case cluster.StepReleased:
		if w.holder != "" {
			t.Record = w.holder
		}
	}
	t.Kind = steps[f.Step]
}

// wantedFaults are so many of each kind after each step, and as many lost answers
// and broken-off tasks in all.
func wantedFaults(each int) []fault {
	var wanted []fault
	for range each {
		for step := range steps {
			wanted = append(wanted, fault{Do: die, Step: step}, fault{Do: sleep, Step: step})
		}
	}
	for range each * len(steps) {
		wanted = append(wanted, fault{Do: lose}, fault{Do: hangUp})
	}
	return wanted
}
