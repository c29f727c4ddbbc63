package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"time"
)

const (
	// During the overload, clients send overloadTimes the capacity, for overloadLength.
	overloadTimes  = 3
	overloadLength = 30 * time.Second
	// calmShare is the part of the capacity that clients send before and after the overload.
	// calmLength is the duration of the phase before.
	calmShare  = 0.5
	calmLength = 10 * time.Second
	// recoveryWindow is the length of the turns after the overload. The site has recovered when the
	// p99 of a turn is below recoveredTimes the p99 before the overload. The set fails if
	// the site has not recovered within recoveryDeadline.
	recoveryWindow   = 2 * time.Second
	recoveredTimes   = 1.5
	recoveryDeadline = 20 * time.Second
)

// The limits of a Site in the set overload.
const (
	defaultLimits = "default limits"
	ownLimits     = "limited to its capacity"
)

// benchOverload sends overloadTimes the capacity of a practice for overloadLength, without waiting for
// responses, once with limits at the capacity and once with the default limits of a Site. It fails if
// a request fails with another error than 429 or 503, if a 429 or 503 has no Retry-After, or if the
// site does not recover.
func benchOverload(ctx context.Context, o options, in installation) error {
	dir, err := os.MkdirTemp("", "paddock-bench-overload")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	practices, server, err := openPractices(ctx, o, in, dir)
	if server != nil {
		defer func() { _ = server.Stop() }()
	}
	if err != nil {
		return err
	}
	fmt.Printf("%d times the capacity for %s, %d CPUs, fsync on\n\n", overloadTimes, overloadLength, runtime.NumCPU())
	fmt.Print("| storage | limits | capacity | sent | p99 before | admitted | their p50 | their p99 | longest | 429 | 503 | without Retry-After | other failures | not sent | recovered after |\n")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	var failures []error
	for _, p := range practices {
		defer p.fan.close()
		transport := p.fhir.client.Transport.(*http.Transport)
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = openInFlight, openInFlight
		capacity, err := p.capacity(ctx, o)
		if err != nil {
			return err
		}
		for _, limits := range []string{ownLimits, defaultLimits} {
			if err := p.setLimits(ctx, in, limits, int(capacity)); err != nil {
				return err
			}
			failures = append(failures, p.overload(ctx, limits, capacity))
			// Otherwise, the idle connections of this row would count against the limit of the API
			// server.
			transport.CloseIdleConnections()
		}
	}
	fmt.Println()
	return errors.Join(failures...)
}

// setLimits sets the limits of the Site to its capacity, or removes them for the default limits, and
// waits until the programs have settled.
func (p *practice) setLimits(ctx context.Context, in installation, limits string, capacity int) error {
	spec := "null"
	if limits == ownLimits {
		spec = fmt.Sprintf(`{"requestsPerSecond":%[1]d,"callerRequestsPerSecond":%[1]d,"burst":%[1]d}`, capacity)
	}
	_, err := in.paddock.Kubectl(ctx, "patch", "site", p.namespace, "-n", p.namespace, "--type=json", "-p",
		`[{"op":"replace","path":"/spec/limits","value":`+spec+`}]`)
	if err != nil {
		return err
	}
	return settle(ctx)
}

// overloadRow is a row of the report.
type overloadRow struct {
	before, recovered                  time.Duration
	admitted                           []time.Duration
	tooMany, unavailable, noRetryAfter int
	unsent                             int
	// others has the number of other failures by their kind (kindOf), and firsts the first failure of
	// each kind.
	others map[string]int
	firsts map[string]error
}

// overload measures one row and prints it.
func (p *practice) overload(ctx context.Context, limits string, capacity float64) error {
	row, n := overloadRow{others: map[string]int{}, firsts: map[string]error{}}, 0
	send := func(share float64, length time.Duration) []sent {
		all, unsent := openLoop(ctx, share*capacity, length, n, p.request)
		n += len(all) + unsent
		row.unsent += unsent
		return all
	}
	send(calmShare, calmLength/3) // it warms connections
	row.before = percentile(durations(send(calmShare, calmLength)), 99)
	all := send(overloadTimes, overloadLength)
	ended := time.Now()
	for _, s := range all {
		row.add(s)
	}
	for row.recovered == 0 && ctx.Err() == nil && time.Since(ended) < recoveryDeadline {
		began := time.Now()
		calm := send(calmShare, recoveryWindow)
		failed := slices.ContainsFunc(calm, func(s sent) bool { return s.err != nil })
		if !failed && percentile(durations(calm), 99) < time.Duration(recoveredTimes*float64(row.before)) {
			// The requests of this turn were fast from its beginning. 1 ms is added, because 0 means
			// not recovered.
			row.recovered = began.Sub(ended) + time.Millisecond
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return row.tell(p.storage, limits, capacity, len(all))
}

// add counts a request of the overload.
func (r *overloadRow) add(s sent) {
	var answer *answerError
	switch errors.As(s.err, &answer); {
	case s.err == nil:
		r.admitted = append(r.admitted, s.took)
		return
	case answer != nil && answer.code == http.StatusTooManyRequests:
		r.tooMany++
	case answer != nil && answer.code == http.StatusServiceUnavailable:
		r.unavailable++
	default:
		kind := kindOf(s.err)
		if r.others[kind]++; r.firsts[kind] == nil {
			r.firsts[kind] = s.err
		}
		return
	}
	if !answer.retryAfter {
		r.noRetryAfter++
	}
}

func (r *overloadRow) tell(storage, limits string, capacity float64, sent int) error {
	slices.Sort(r.admitted)
	share := func(n int) string { return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(sent)) }
	recovered := fmt.Sprintf("%.1f s", r.recovered.Seconds())
	if r.recovered == 0 {
		recovered = "not within " + recoveryDeadline.String()
	}
	others := 0
	for _, n := range r.others {
		others += n
	}
	fmt.Printf("| %s | %s | %.0f/s | %.0f/s | %s | %.0f/s | %s | %s | %s | %s | %s | %d | %d | %d | %s |\n", storage, limits, capacity,
		float64(sent)/overloadLength.Seconds(), r.before.Round(time.Millisecond), float64(len(r.admitted))/overloadLength.Seconds(),
		at(r.admitted, 50), at(r.admitted, 99), r.admitted[len(r.admitted)-1].Round(time.Millisecond),
		share(r.tooMany), share(r.unavailable), r.noRetryAfter, others, r.unsent, recovered)
	var failures []error
	for kind, err := range r.firsts {
		fmt.Fprintln(os.Stderr, storage, limits, kind, r.others[kind], err)
		failures = append(failures, fmt.Errorf("%s, %s: %d requests failed with %s, the first with: %w", storage, limits, r.others[kind], kind, err))
	}
	if r.noRetryAfter > 0 {
		failures = append(failures, fmt.Errorf("%s, %s: %d responses with status 429 or 503 have no header Retry-After", storage, limits, r.noRetryAfter))
	}
	if r.recovered == 0 {
		failures = append(failures, fmt.Errorf("%s, %s: requests had not recovered %s after the overload", storage, limits, recoveryDeadline))
	}
	return errors.Join(failures...)
}

// durations returns the sorted durations of requests.
func durations(all []sent) []time.Duration {
	took := make([]time.Duration, len(all))
	for i, s := range all {
		took[i] = s.took
	}
	slices.Sort(took)
	return took
}

// kindOf returns the status of a response, or why there is none.
func kindOf(err error) string {
	var answer *answerError
	switch {
	case errors.As(err, &answer):
		return answer.status
	case errors.Is(err, context.DeadlineExceeded):
		return "no response within " + openTimeout.String()
	default:
		return "no response"
	}
}
