package oidc

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/access/oidc/discovery"
)

const (
	// refreshInterval is the pause between fetches of an issuer's keys. A key that the issuer
	// withdraws is accepted until the next fetch that succeeds, and tokens that were verified with it
	// for up to cacheTTL longer.
	refreshInterval = 10 * time.Minute
	// minRetry is the pause after the first failed fetch. It doubles with each failure, up to
	// maxRetry.
	minRetry, maxRetry = time.Second, time.Minute
	// unknownKeyInterval is the minimum pause between fetches for tokens with an unknown key.
	unknownKeyInterval = time.Minute
	// maxWait limits how long a request waits for a fetch. At the limit it uses the known keys.
	maxWait = 5 * time.Second
)

// keySet has the keys of one issuer. A goroutine (run) fetches the keys. While the issuer is down,
// the keySet keeps the last keys. It is safe for concurrent use.
type keySet struct {
	site   Owner
	source discovery.Issuer
	dial   discovery.Dial
	now    func() time.Time
	close  context.CancelFunc
	// wanted makes the goroutine fetch before the pause ends.
	wanted chan struct{}

	mu sync.Mutex
	// known is nil until a fetch has succeeded.
	known *discovery.Published
	// pending is closed when the current or next fetch ends. It is nil if none is requested.
	pending chan struct{}
	// lastUnknown is when an unknown key last caused a fetch.
	lastUnknown time.Time
}

func openKeySet(ctx context.Context, site Owner, source discovery.Issuer, options Options) *keySet {
	ctx, cancel := context.WithCancel(ctx)
	k := &keySet{
		site: site, source: source, dial: options.Dial, now: options.clock(), close: cancel,
		wanted: make(chan struct{}, 1), pending: make(chan struct{}),
	}
	go k.run(ctx)
	return k
}

// run fetches the keys now and after each pause, until ctx ends. It parses inline keys once.
func (k *keySet) run(ctx context.Context) {
	retry := minRetry
	for ctx.Err() == nil {
		pause := refreshInterval
		if err := k.refresh(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "cannot get the keys of an issuer", "namespace", k.site.Namespace, "issuer", k.source.URL, "problem", discovery.Problem(err))
			pause, retry = retry, min(2*retry, maxRetry)
		} else {
			retry = minRetry
		}
		if k.source.JWKS != "" {
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-k.wanted:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// refresh fetches the keys and wakes the waiting requests.
func (k *keySet) refresh(ctx context.Context) error {
	k.mu.Lock()
	if k.pending == nil {
		k.pending = make(chan struct{})
	}
	k.mu.Unlock()
	published, err := discovery.Fetch(ctx, k.dial, k.source)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.known = &published
	}
	close(k.pending)
	k.pending = nil
	return err
}

func (k *keySet) published() (discovery.Published, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		return discovery.Published{}, false
	}
	return *k.known, true
}

// find returns the keys that may have signed a token. For an unknown key it waits for a fetch of
// the keys, but requests at most one fetch per unknownKeyInterval. Errors: *access.TokenError,
// access.ErrUnavailable until the first fetch succeeds.
func (k *keySet) find(ctx context.Context, keyID string, algorithm jose.SignatureAlgorithm) ([]jose.JSONWebKey, error) {
	keys, known := k.lookup(keyID)
	if len(keys) == 0 {
		k.await(ctx, known)
		keys, known = k.lookup(keyID)
	}
	if !known {
		return nil, fmt.Errorf("%w: the keys of the token's issuer are not known yet", access.ErrUnavailable)
	}
	if len(keys) == 0 {
		return nil, refused("the token is signed with a key that its issuer does not publish; get a new token")
	}
	var fitting []jose.JSONWebKey
	for _, key := range keys {
		if discovery.Fits(key, algorithm) {
			fitting = append(fitting, key)
		}
	}
	switch {
	case len(fitting) == 0:
		return nil, refused("the token's algorithm (header alg) does not fit the key that the token names (header kid)")
	case keyID == "" && len(fitting) > 1:
		return nil, refused("the token does not name the key that signed it (header kid), and its issuer has several keys")
	}
	return fitting, nil
}

// lookup returns the keys with an id, or all if the id is empty. It reports whether a fetch
// succeeded.
func (k *keySet) lookup(keyID string) (keys []jose.JSONWebKey, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		return nil, false
	}
	if keyID == "" {
		return k.known.Keys, true
	}
	for _, key := range k.known.Keys {
		if key.KeyID == keyID {
			keys = append(keys, key)
		}
	}
	return keys, true
}

// await waits for the pending fetch. If no fetch is pending and known is set, await requests a
// fetch, at most once per unknownKeyInterval. This limits the requests to the issuer that tokens
// with random key ids cause. Inline keys are not fetched.
func (k *keySet) await(ctx context.Context, known bool) {
	k.mu.Lock()
	if now := k.now(); known && k.source.JWKS == "" && k.pending == nil && now.Sub(k.lastUnknown) >= unknownKeyInterval {
		k.lastUnknown, k.pending = now, make(chan struct{})
		select {
		case k.wanted <- struct{}{}:
		default: // a fetch is requested already
		}
	}
	pending := k.pending
	k.mu.Unlock()
	if pending == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	select {
	case <-pending:
	case <-ctx.Done():
	}
}
