package cluster

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

const (
	// synchronizePage is the number of Records whose metadata one request lists.
	synchronizePage = 500
	// synchronizePause is the pause before the index is compared again.
	synchronizePause = 50 * time.Millisecond
)

// Synchronize implements store.Synchronizer. It waits until the index has all changes of the site's
// Records from before the call. A Dump or Search then has the writes of other replicas too. Errors:
// store.ErrUnavailable, ctx.Err().
func (s *Store) Synchronize(ctx context.Context) error {
	stored := map[string]metav1.ObjectMeta{}
	options := metav1.ListOptions{FieldSelector: "spec.siteKey=" + s.key, Limit: synchronizePage}
	for {
		page, err := s.engine.client.ListMetadata(ctx, objects.Records, s.namespace, options)
		if err != nil {
			return objects.StoreError("list records", err)
		}
		for i := range page.Items {
			stored[page.Items[i].Name] = page.Items[i].ObjectMeta
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	for !s.index.has(stored) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(synchronizePause):
		}
	}
	return nil
}

// has reports whether the index is at least as new as a list of Records, by name. Then it has each
// listed Record in that state or a later one, or knows that it was removed, and it has no Record that
// was removed before the list.
func (x *index) has(stored map[string]metav1.ObjectMeta) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var newest string
	for name, meta := range stored {
		known := x.names[name]
		if _, gone := x.removed[meta.UID]; !gone && (known == nil || newer(meta.ResourceVersion, known.obj.ResourceVersion)) {
			return false
		}
		if newest == "" || newer(meta.ResourceVersion, newest) {
			newest = meta.ResourceVersion
		}
	}
	for name, known := range x.names {
		if _, there := stored[name]; !there && (newest == "" || !newer(known.obj.ResourceVersion, newest)) {
			return false // it was removed, and the watch event has not come yet
		}
	}
	return true
}

var _ store.Synchronizer = (*Store)(nil)
