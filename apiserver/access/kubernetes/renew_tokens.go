package kubernetes

import (
	"context"
	"time"
)

const (
	// tokenRenewal is how long after a review an accepted token is reviewed again, in the background, if
	// a request had it in the last tokenIdle. It is shorter than the time for which the token is cached,
	// because the review may have to wait.
	tokenRenewal = 35 * time.Second
	tokenIdle    = 2 * time.Minute
)

// acceptedToken is an accepted token that is due for renewal.
type acceptedToken struct {
	at    acceptance
	token string
	found *accepted
	due   time.Time
}

// keep caches an accepted token, and has it renewed.
func (a *Access) keep(at acceptance, token string, found *accepted) {
	a.accepted.Add(at, found, tokenTTL-reviewTTL)
	select {
	case a.renewable <- acceptedToken{at, token, found, a.now().Add(tokenRenewal)}:
	default: // more tokens than are cached
	}
}

// renewTokens renews accepted tokens, in the order in which they are due, until ctx ends.
func (a *Access) renewTokens(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case t := <-a.renewable:
			for wait := t.due.Sub(a.now()); wait > 0 && ctx.Err() == nil; wait = t.due.Sub(a.now()) {
				sleep(ctx, min(wait, time.Second))
			}
			if cached, _ := a.accepted.Get(t.at); cached != t.found || a.now().UnixNano()-t.found.used.Load() > int64(tokenIdle) {
				continue
			}
			select {
			case <-ctx.Done():
				return
			case a.renewals <- struct{}{}:
			}
			go func() {
				defer func() { <-a.renewals }()
				a.renewToken(ctx, t)
			}()
		}
	}
}

// renewToken reviews an accepted token again. If it is refused, it is no longer accepted.
func (a *Access) renewToken(ctx context.Context, t acceptedToken) {
	caller, ok, err := a.reviewFor(ctx, t.at.site, t.token, t.found.claims)
	switch {
	case err != nil: // it is accepted until it expires
	case !ok:
		a.accepted.Remove(t.at)
	default:
		caller.Identity = identity(caller)
		found := &accepted{caller: caller, claims: t.found.claims}
		found.used.Store(t.found.used.Load())
		a.keep(t.at, t.token, found)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
