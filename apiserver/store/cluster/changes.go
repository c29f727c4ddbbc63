package cluster

import (
	"context"
	"slices"
	"strconv"

	"github.com/paddock-health/paddock/apiserver/store"
)

var _ store.ChangeLog = (*Store)(nil)

// LogChanges implements store.ChangeLog. It does nothing, because the index always knows the changes.
func (s *Store) LogChanges(context.Context) error { return nil }

// DropChanges implements store.ChangeLog. It does nothing.
func (s *Store) DropChanges(context.Context) error { return nil }

// Mark implements store.ChangeLog. The mark is the resourceVersion that the index has reached.
func (s *Store) Mark(context.Context) (string, error) {
	if !s.engine.isSynced() {
		return "", store.ErrNotReady
	}
	return strconv.FormatInt(s.engine.seen.Load(), 10), nil
}

// ChangedSince implements store.ChangeLog. It reads the index, so it returns the writes of other
// replicas with a delay, unless the caller calls Synchronize first. In addition to the changed records,
// it returns all removed records that the index remembers. Changes are lost if the index has forgotten
// a removal since the mark, or if this process started after the mark.
func (s *Store) ChangedSince(_ context.Context, mark string) ([]store.Key, error) {
	if !s.engine.isSynced() {
		return nil, store.ErrNotReady
	}
	version, err := strconv.ParseInt(mark, 10, 64)
	if err != nil || version < s.engine.listed.Load() {
		return nil, store.ErrChangesLost
	}
	x := s.index
	x.mu.RLock()
	defer x.mu.RUnlock()
	if version < x.forgotten {
		return nil, store.ErrChangesLost
	}
	var keys []store.Key
	for _, e := range x.names {
		if newer(e.obj.ResourceVersion, mark) {
			keys = append(keys, keyOf(e.obj))
		}
	}
	for _, removed := range x.removed {
		keys = append(keys, removed.key)
	}
	slices.SortFunc(keys, store.Key.Compare)
	return slices.CompactFunc(keys, func(a, b store.Key) bool { return a.Compare(b) == 0 }), nil
}

// Count implements store.ChangeLog.
func (s *Store) Count(context.Context) (store.Counts, error) {
	if !s.engine.isSynced() {
		return store.Counts{}, store.ErrNotReady
	}
	s.index.mu.RLock()
	defer s.index.mu.RUnlock()
	var counts store.Counts
	for _, e := range s.index.names {
		switch spec := &e.obj.Spec; {
		case spec.Purging || spec.Type == store.JobType:
		case spec.Deleted:
			counts.Tombstones++
		default:
			counts.Records++
		}
	}
	return counts, nil
}
