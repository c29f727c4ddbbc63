package cluster

import (
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

var _ store.Archive = (*Store)(nil)

// Dump implements store.Archive. It reads the newest versions from the index, and the superseded
// versions from kube-apiserver.
func (s *Store) Dump(ctx context.Context, query store.DumpQuery) (store.DumpPage, error) {
	if !s.engine.isSynced() {
		return store.DumpPage{}, store.ErrNotReady
	}
	found := s.index.dumped(query)
	oldest := make(map[string]int64, len(query.Oldest))
	for i := range query.Oldest {
		oldest[recordName(query.Keys[i])] = query.Oldest[i]
	}
	page := store.DumpPage{Records: make([]store.Dumped, len(found))}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(fetchers)
	size := 0
	for i, obj := range found {
		if size > query.MaxBytes {
			page.Records, page.More = page.Records[:i], true
			break
		}
		if query.Heads {
			head := toRecord(obj)
			head.UID, head.Revision, head.Body = "", "", store.Body{}
			head.Claims = store.ActiveClaims(head.Claims, s.engine.clock())
			page.Records[i] = store.Dumped{Key: head.Key, Versions: []store.Record{head}, Superseded: int64(len(obj.Spec.History))}
			continue
		}
		size += len(obj.Spec.Body) + int(sum(obj.Spec.History))
		group.Go(func() (err error) {
			page.Records[i], err = s.dump(groupCtx, obj, oldest[obj.Name])
			return err
		})
	}
	page.More = page.More || len(found) == query.MaxRecords && query.Keys == nil
	return page, group.Wait()
}

// dumped returns the Records of a page, in the order of a dump.
func (x *index) dumped(query store.DumpQuery) []*recordsv1.Record {
	after := query.After.Folded()
	x.mu.RLock()
	var found []*indexedRecord
	var wanted map[string]bool
	if query.Keys != nil {
		wanted = make(map[string]bool, len(query.Keys))
		for _, key := range query.Keys {
			wanted[recordName(key)] = true
		}
	}
	for name, e := range x.names {
		if wanted != nil && !wanted[name] {
			continue
		}
		spec := &e.obj.Spec
		if spec.Purging || spec.Type == store.JobType || spec.Updated.Time.Before(query.Since) {
			continue
		}
		if cmp.Or(cmp.Compare(spec.Type, after.Type), cmp.Compare(e.id, after.ID)) > 0 {
			found = append(found, e)
		}
	}
	x.mu.RUnlock()
	slices.SortFunc(found, func(a, b *indexedRecord) int {
		return cmp.Or(cmp.Compare(a.obj.Spec.Type, b.obj.Spec.Type), cmp.Compare(a.id, b.id))
	})
	page := make([]*recordsv1.Record, 0, min(len(found), query.MaxRecords))
	for _, e := range found[:min(len(found), query.MaxRecords)] {
		page = append(page, e.obj)
	}
	return page
}

// dump returns a record with its versions from the number oldest on.
func (s *Store) dump(ctx context.Context, obj *recordsv1.Record, oldest int64) (store.Dumped, error) {
	past, err := s.superseded(ctx, obj)
	if err != nil {
		return store.Dumped{}, err
	}
	d := store.Dumped{Key: store.Key{Type: obj.Spec.Type, ID: obj.Spec.ID}}
	for _, v := range slices.Backward(storedVersions(obj, past)) {
		if v.number < oldest && v.number < obj.Spec.Version {
			continue
		}
		record, err := s.read(v, past)
		if err != nil {
			return store.Dumped{}, err
		}
		record.UID, record.Revision, record.Claims = "", "", store.ActiveClaims(record.Claims, s.engine.clock())
		d.Versions = append(d.Versions, record)
	}
	return d, nil
}
