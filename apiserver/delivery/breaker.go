package delivery

import "time"

// The circuit breaker of a webhook opens after consecutive failures, so that an unavailable
// receiver occupies no workers. Each further failure doubles the time for which it stays open.
const (
	breakerThreshold = 5 // failures that open the breaker
	breakerFirst     = 10 * time.Second
	breakerLongest   = 5 * time.Minute
)

// After returns the state of a webhook after an attempt. A success closes the breaker. A failure
// counts unless the attempt began before the breaker opened, so that concurrent attempts that fail
// for the same reason extend the pause only once. ReasonDisabled changes nothing.
func After(state State, attempt Attempt) State {
	switch attempt.Reason {
	case ReasonDisabled:
		return state
	case ReasonDelivered:
		return State{LastSuccess: attempt.At}
	}
	if state.FailingSince.IsZero() {
		state.FailingSince = attempt.At
	}
	if attempt.At.Before(state.OpenUntil) {
		return state
	}
	state.Failures++
	if beyond := state.Failures - breakerThreshold; beyond >= 0 {
		open := breakerLongest
		if beyond < 5 { // 10 s doubled 5 times is more than 5 min
			open = min(breakerFirst<<beyond, breakerLongest)
		}
		state.OpenUntil = attempt.At.Add(attempt.Duration + open)
	}
	return state
}
