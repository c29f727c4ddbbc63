package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster/deliveries"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

// maxEvictions is the maximum number of records of which one write removes old versions or the
// tombstone. Each record costs up to three requests to kube-apiserver. At the limit the write fails,
// but its removals make room for the next write.
const maxEvictions = 100

// checkLimits returns a *store.LimitError if a plan exceeds the limits. If the plan needs more bytes than
// the site or all sites together have left, checkLimits first removes the oldest tombstones of the site,
// then the oldest superseded versions of other records of the site, and at last those of the record
// itself from the plan. It removes nothing if all of that would not be enough. If a removal fails,
// checkLimits returns its error. before is the usage of the superseded version.
func (w *write) checkLimits(ctx context.Context, p *plan, before usage) error {
	s := w.site
	check := func() error { return s.limits.check(p, before, s.index.usage(), s.engine.usage(), s.engine.limits) }
	err := check()
	missing := func() int64 {
		more := usageOf(&p.next).minus(before).bytes
		return more + max(s.index.usage().bytes-s.limits.MaxBytes, s.engine.usage().bytes-s.engine.limits.MaxBytes)
	}
	if !isShortOfBytes(err) {
		return err
	}
	own := sum(p.next.History)
	found, most := s.index.evictions(w.name)
	if most+own < missing() {
		return err
	}
	for _, e := range found[:min(len(found), maxEvictions)] {
		if !isShortOfBytes(err) {
			return err
		}
		if evictErr := s.evict(ctx, e, missing()); evictErr != nil {
			return evictErr
		}
		err = check()
	}
	for isShortOfBytes(err) && len(p.next.History) > 0 {
		dropOldest(&p.next, 1)
		err = check()
	}
	return err
}

// isShortOfBytes reports whether err means that the site or all sites together have too few bytes
// left.
func isShortOfBytes(err error) bool {
	var limit *store.LimitError
	return errors.As(err, &limit) && limit.What == "bytes" && limit.Scope != store.LimitRecord
}

// eviction is a tombstone, or the superseded versions of a record, which may be removed.
type eviction struct {
	obj *recordsv1.Record
	// oldest is the time of the tombstone, or of the oldest superseded version.
	oldest, bytes int64
}

// evictions returns what may be removed to make room: the tombstones, oldest first, and then the
// superseded versions by record, that with the oldest version first. most is the sum of their bytes.
// It leaves out the Record with the name except, Records of posted events, and Records with events,
// which the delivery process writes.
func (x *index) evictions(except string) (found []eviction, most int64) {
	x.mu.RLock()
	for name, e := range x.names {
		spec := &e.obj.Spec
		switch {
		case name == except || spec.Purging || spec.HasEvents || spec.Type == deliveries.EventType:
		case spec.Deleted:
			found = append(found, eviction{e.obj, e.updated, e.used.bytes})
		case len(spec.History) > 0:
			oldest := e.updated
			if len(spec.HistoryUpdated) > 0 {
				oldest = spec.HistoryUpdated[0]
			}
			found = append(found, eviction{e.obj, oldest, sum(spec.History)})
		}
	}
	x.mu.RUnlock()
	slices.SortFunc(found, func(a, b eviction) int {
		tombstonesFirst := 0
		if a.obj.Spec.Deleted != b.obj.Spec.Deleted {
			tombstonesFirst = 1
			if a.obj.Spec.Deleted {
				tombstonesFirst = -1
			}
		}
		return cmp.Or(tombstonesFirst, cmp.Compare(a.oldest, b.oldest), cmp.Compare(a.obj.Name, b.obj.Name))
	})
	for _, e := range found {
		most += e.bytes
	}
	return found, most
}

// evict removes a tombstone, or as many superseded versions of a record, oldest first, as free the
// bytes. It does nothing if the record has changed since.
func (s *Store) evict(ctx context.Context, e eviction, bytes int64) error {
	if e.obj.Spec.Deleted {
		return s.removeTombstone(ctx, e.obj)
	}
	n, freed := 0, int64(0)
	for n < len(e.obj.Spec.History) && freed < bytes {
		freed += e.obj.Spec.History[n]
		n++
	}
	return s.dropVersions(ctx, e.obj, n)
}

// removeTombstone purges a record if its newest version is still the tombstone in obj.
func (s *Store) removeTombstone(ctx context.Context, obj *recordsv1.Record) error {
	key := store.Key{Type: obj.Spec.Type, ID: obj.Spec.ID}
	purge := &write{site: s, name: obj.Name, op: store.Op{
		Kind: store.Purge, Key: key, Method: store.MethodDelete, If: store.Precondition{Absent: true, Version: obj.Spec.Version},
	}}
	if _, err := purge.run(ctx); err != nil && !store.IsConflict(err) {
		return err
	}
	return nil
}

// dropVersions removes the oldest n superseded versions of a record, unless the Record has changed
// since it was read. The Record is written first, so that it lists no version that is gone. If the
// process crashes in between, the next write removes the versions.
func (s *Store) dropVersions(ctx context.Context, current *recordsv1.Record, n int) error {
	if n == 0 {
		return nil
	}
	spec := current.Spec
	spec.Write = newID()
	setEvents(&spec, deliveries.Carry(spec.Events, current.ResourceVersion))
	dropOldest(&spec, n)
	w := &write{site: s, name: current.Name}
	obj := w.object(spec, metav1.ObjectMeta{ResourceVersion: current.ResourceVersion, UID: current.UID})
	meta, err := s.engine.client.Update(ctx, objects.Records, s.namespace, w.name, obj)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return objects.StoreError("remove old versions of "+w.name, err)
	}
	obj.ObjectMeta = meta
	s.applyOwnWrite(obj)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"managedFields": objects.NoManagedFields},
		"spec":     map[string]any{"versions": droppedVersions(&spec)},
	})
	if err != nil {
		return fmt.Errorf("encode the history of record %s: %w", w.name, err)
	}
	_, err = s.engine.client.MergePatch(ctx, objects.Histories, s.namespace, objects.HistoryName(obj), patch)
	if apierrors.IsNotFound(err) {
		return nil // the record was purged meanwhile
	}
	return objects.StoreError("remove old versions of "+w.name, err)
}

// dropOldest removes the oldest n superseded versions from the lists of a Record.
func dropOldest(spec *recordsv1.RecordSpec, n int) {
	spec.History = slices.Clone(spec.History[n:])
	kept := len(spec.History)
	spec.HistoryDropped += n
	spec.HistoryUpdated = newestOf(spec.HistoryUpdated, kept)
	spec.HistoryLabels = newestOf(spec.HistoryLabels, kept)
	oldest := spec.Version - int64(kept)
	spec.HistoryDeletions = slices.DeleteFunc(slices.Clone(spec.HistoryDeletions), func(version int64) bool { return version < oldest })
}

// newestOf returns a copy of the last n elements, or of all if there are fewer.
func newestOf[T any](list []T, n int) []T { return slices.Clone(list[max(0, len(list)-n):]) }

// droppedVersions returns the members of a merge patch that remove the dropped versions from the
// RecordHistory.
func droppedVersions(spec *recordsv1.RecordSpec) map[string]*recordsv1.SupersededVersion {
	versions := map[string]*recordsv1.SupersededVersion{}
	oldest := spec.Version - int64(len(spec.History))
	for i := range int64(spec.HistoryDropped) {
		versions[versionKey(oldest-1-i)] = nil
	}
	return versions
}

func sum(sizes []int64) (total int64) {
	for _, size := range sizes {
		total += size
	}
	return total
}
