package sites

import (
	"context"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
)

// pausesWrites reports whether a Site refuses writes because of a move.
func pausesWrites(object *sitesv1.Site) bool {
	return object.Status.Move != nil && object.Status.Move.PausesWrites()
}

// stopsDeliveries reports whether, because of a move, no delivery of a Site is started.
func stopsDeliveries(object *sitesv1.Site) bool {
	return object.Status.Move != nil && (object.Status.Move.Elsewhere || object.Status.Move.Phase.StopsDeliveries())
}

// pauseWrites returns opened, after it has made the store refuse or allow writes as the Site says.
// While a move switches the storage (MoveSwitching) and opened is nil, because the new storage is not
// known to be ready yet, pauseWrites returns before, which then serves reads only.
func pauseWrites(object *sitesv1.Site, opened, before store.Store) store.Store {
	paused := pausesWrites(object)
	if opened == nil && paused && object.Status.Move.Phase == sitesv1.MoveSwitching {
		opened = before
	}
	switch site := opened.(type) {
	case *database:
		site.paused.Store(paused)
	case *cluster.Store:
		if paused {
			return site.Paused()
		}
	}
	return opened
}

// pausedDeliveries is the log of the deliveries of a Site that refuses writes.
type pausedDeliveries struct{ delivery.Log }

// Redeliver implements delivery.Log.
func (pausedDeliveries) Redeliver(context.Context, string, string) (delivery.Delivery, error) {
	return delivery.Delivery{}, store.ErrMoving
}

// Replay implements delivery.Log.
func (pausedDeliveries) Replay(context.Context, delivery.Query) (delivery.Replayed, error) {
	return delivery.Replayed{}, store.ErrMoving
}
