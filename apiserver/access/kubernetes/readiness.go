package kubernetes

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"

	"golang.org/x/sync/singleflight"
	"k8s.io/client-go/rest"
)

// readiness detects refusals of a kube-apiserver that has just started: until kube-apiserver has
// loaded the objects of RBAC, it refuses every action. readiness is safe for concurrent use.
type readiness struct {
	client rest.Interface
	// connections is the number of connections to kube-apiserver so far. ready is that number when
	// kube-apiserver was last ready: after a restart there is a new connection.
	connections, ready atomic.Int64
	checks             singleflight.Group
}

// count makes the clients of a config count their connections.
func (r *readiness) count(config *rest.Config) {
	dial := config.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		r.connections.Add(1)
		return dial(ctx, network, address)
	}
}

// confirm returns an error if a refusal does not count because kube-apiserver is not ready. isNew reports
// whether kube-apiserver has been found ready only now. It may then have refused before it was ready.
func (r *readiness) confirm(ctx context.Context) (isNew bool, err error) {
	if r.connections.Load() == r.ready.Load() {
		return false, nil
	}
	// Concurrent refusals share a check, so the check must outlive the context of the first
	// refusal.
	_, err, _ = r.checks.Do("", func() (any, error) {
		ctx, cancel := withReviewTimeout(context.WithoutCancel(ctx))
		defer cancel()
		connections := r.connections.Load()
		if err := r.client.Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
			return nil, fmt.Errorf("kube-apiserver is not ready: %w", err)
		}
		r.ready.Store(connections)
		return nil, nil
	})
	return true, err
}
