package postgres

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// mostReading is how many connections a kind of question is asked on at a time: one, and
	// another whenever a crowd waits for those under way, or somebody has for longer than
	// patientFor. A round trip costs both sides more than what it brings, but where all are
	// asked in one, both sides take turns.
	mostReading = 4
	crowd       = 16
	patientFor  = 5 * time.Millisecond
	// mostTogether is how many are asked at once.
	mostTogether = 64
)

// together brings questions together: those that find one under way are asked with the
// next one.
type together[Q any] struct {
	// ask asks all at once and leaves with each its own answer.
	ask     func(ctx context.Context, all []Q)
	timeout time.Duration

	mu      sync.Mutex
	reading int
	waiting []*asker[Q]
}

// asker has a question. Who is woken has the answer, or the lead: it asks its own and what
// has come to wait.
type asker[Q any] struct {
	question Q
	woken    chan struct{}
	leads    bool
}

// answer has a question answered, unless ctx ends before.
func (t *together[Q]) answer(ctx context.Context, question Q) error {
	own := &asker[Q]{question: question}
	if !t.start(own) {
		if err := t.wait(ctx, own); err != nil {
			return err
		}
	}
	if own.leads {
		t.lead(ctx, own)
	}
	return nil
}

// start takes the lead if nobody asks or a crowd waits, else a place among those who wait.
func (t *together[Q]) start(own *asker[Q]) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reading == 0 || t.reading < mostReading && len(t.waiting)+1 >= crowd {
		t.reading++
		own.leads = true
		return true
	}
	own.woken = make(chan struct{})
	t.waiting = append(t.waiting, own)
	return false
}

// wait waits for the answer or the lead.
func (t *together[Q]) wait(ctx context.Context, own *asker[Q]) error {
	until := time.Now().Add(t.timeout)
	patience := time.NewTicker(patientFor)
	defer patience.Stop()
	for {
		var err error
		select {
		case <-own.woken:
			return nil
		case <-ctx.Done():
			err = ctx.Err()
		case now := <-patience.C:
			if t.overtake(own) {
				return nil
			}
			if now.Before(until) {
				continue
			}
			err = context.DeadlineExceeded
		}
		// The lead may have come meanwhile: who has it asks for the others.
		if t.leave(own) {
			return nil
		}
		return err
	}
}

// overtake takes the lead of another call if there may be one more.
func (t *together[Q]) overtake(own *asker[Q]) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := slices.Index(t.waiting, own)
	if at < 0 || t.reading == mostReading {
		return false
	}
	t.waiting = slices.Delete(t.waiting, at, at+1)
	t.reading++
	own.leads = true
	return true
}

// leave gives a place up. It returns whether the lead has come to it meanwhile.
func (t *together[Q]) leave(own *asker[Q]) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = slices.DeleteFunc(t.waiting, func(other *asker[Q]) bool { return other == own })
	return own.leads
}

// lead asks for all who wait, its own first, and hands the lead on.
func (t *together[Q]) lead(ctx context.Context, own *asker[Q]) {
	joined := t.join()
	defer t.handOn()
	all := make([]Q, 1, 1+len(joined))
	all[0] = own.question
	for _, one := range joined {
		all = append(all, one.question)
	}
	// That one caller goes away is nothing to the others.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.timeout)
	defer cancel()
	defer func() {
		for _, one := range joined {
			close(one.woken)
		}
	}()
	t.ask(ctx, all)
}

// join takes those who wait, as far as they can be asked at once.
func (t *together[Q]) join() []*asker[Q] {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(len(t.waiting), mostTogether-1)
	joined := slices.Clone(t.waiting[:n])
	t.waiting = slices.Delete(t.waiting, 0, n)
	return joined
}

// handOn gives the lead to the first who waits, or the connection back.
func (t *together[Q]) handOn() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.reading--
		return
	}
	next := t.waiting[0]
	t.waiting = slices.Delete(t.waiting, 0, 1)
	next.leads = true
	close(next.woken)
}
