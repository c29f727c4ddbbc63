package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

// version is one version of a record without its body.
type version struct {
	obj    *recordsv1.Record
	number int64
	// updated is when the version was written. until is when it was superseded, or zero if it is the
	// newest one.
	updated, until time.Time
	deleted        bool
	// labels are the labels of a superseded version as JSON. They are empty for the newest one.
	labels string
}

func (v version) matches(query store.HistoryQuery) bool {
	if v.deleted && !query.Deletions || v.updated.Before(query.Since) {
		return false
	}
	return query.Current == nil || slices.ContainsFunc(query.Current, func(r store.TimeRange) bool {
		return r.Overlaps(v.updated, v.until)
	})
}

// History implements store.Store. The history of one record needs the index only for the access of a
// restricted caller, whose conditions may depend on other records.
func (s *Store) History(ctx context.Context, query store.HistoryQuery) (store.Page, error) {
	if query.Key.ID == "" {
		return s.historyOfMany(ctx, query)
	}
	if query.Access != nil && !s.engine.isSynced() {
		return store.Page{}, store.ErrNotReady
	}
	var after int64
	if query.After != nil {
		position, err := parseHistoryPosition(query.After)
		if err != nil || position.ID != "" {
			return store.Page{}, store.ErrBadPosition
		}
		after = position.Version
	}
	obj, err := s.fetch(ctx, recordName(query.Key))
	if err != nil {
		return store.Page{}, err
	}
	if obj == nil || obj.Spec.Purging { // a deleted record still has its Record
		return store.Page{}, store.ErrNotFound
	}
	past, err := s.superseded(ctx, obj)
	if err != nil {
		return store.Page{}, err
	}
	s.index.mu.RLock()
	access, err := s.index.historyAccess(query, newQueryBudget(ctx, s.engine.queryTimeout))
	var versions []version
	if err == nil {
		versions = access.visible(s.index.read(obj, nil), storedVersions(obj, past))
	}
	s.index.mu.RUnlock()
	if err != nil {
		return store.Page{}, err
	}
	if versions == nil {
		return store.Page{}, store.ErrNotFound
	}
	page := store.Page{}
	for _, v := range versions {
		if !v.matches(query) {
			continue
		}
		page.Total++
		if after != 0 && v.number >= after {
			continue
		}
		if len(page.Records) == query.Count {
			if query.Count > 0 && page.Next == nil {
				page.Next, err = json.Marshal(historyPosition{Version: page.Records[query.Count-1].Version})
			}
			continue
		}
		record, err := s.read(v, past)
		if err != nil {
			return store.Page{}, err
		}
		page.Records = append(page.Records, record)
	}
	return page, err
}

// historyPosition is the position after the last version of a page. In the history of one record,
// only Version is set.
type historyPosition struct {
	// Until is the watermark of the first page, in milliseconds since 1970. It applies to all further
	// pages.
	Until   int64  `json:"u,omitempty"`
	Millis  int64  `json:"t,omitempty"`
	Type    string `json:"type,omitempty"`
	ID      string `json:"id,omitempty"`
	Version int64  `json:"v"`
}

func parseHistoryPosition(text store.Position) (historyPosition, error) {
	var position historyPosition
	if err := json.Unmarshal(text, &position); err != nil || position.Version < 1 {
		return historyPosition{}, store.ErrBadPosition
	}
	return position, nil
}

// storedVersions returns the newest version of a record, and the superseded versions that its Record
// lists and its RecordHistory has, newest first.
func storedVersions(obj *recordsv1.Record, past map[string]recordsv1.SupersededVersion) []version {
	newest := version{obj: obj, number: obj.Spec.Version, updated: obj.Spec.Updated.Time, deleted: obj.Spec.Deleted}
	versions, until := []version{newest}, newest.updated
	for number := newest.number - 1; number >= newest.number-int64(len(obj.Spec.History)); number-- {
		if old, kept := past[versionKey(number)]; kept {
			versions = append(versions, version{obj, number, old.Updated.Time, until, old.Deleted, labelsAt(&obj.Spec, number)})
			until = old.Updated.Time
		}
	}
	return versions
}

// listedVersions returns the newest version of a record and the superseded versions that the Record
// lists, newest first.
func listedVersions(obj *recordsv1.Record) []version {
	spec := &obj.Spec
	newest := version{obj: obj, number: spec.Version, updated: spec.Updated.Time, deleted: spec.Deleted}
	versions, until := []version{newest}, newest.updated
	for i := range spec.HistoryUpdated {
		number := newest.number - 1 - int64(i)
		updated := time.UnixMilli(spec.HistoryUpdated[len(spec.HistoryUpdated)-1-i])
		versions = append(versions, version{obj, number, updated, until, slices.Contains(spec.HistoryDeletions, number), labelsAt(spec, number)})
		until = updated
	}
	return versions
}

// historyOfMany returns a page of the history of a type or of the site. The index has the times of
// all versions and the bodies of the newest versions. Only the superseded bodies of the page are read
// from kube-apiserver.
func (s *Store) historyOfMany(ctx context.Context, query store.HistoryQuery) (store.Page, error) {
	if !s.engine.isSynced() {
		return store.Page{}, store.ErrNotReady
	}
	var after *version
	var until time.Time
	if query.After == nil {
		var err error
		if until, err = s.watermark(ctx, s.index.open.acknowledged()); err != nil {
			return store.Page{}, err
		}
	} else {
		position, err := parseHistoryPosition(query.After)
		if err != nil || position.ID == "" {
			return store.Page{}, store.ErrBadPosition
		}
		at := recordsv1.Record{Spec: recordsv1.RecordSpec{Type: position.Type, ID: position.ID}}
		until = time.UnixMilli(position.Until)
		after = &version{obj: &at, number: position.Version, updated: time.UnixMilli(position.Millis)}
	}
	newest := newestVersions{count: query.Count}
	if err := s.index.eachVersion(query, newQueryBudget(ctx, s.engine.queryTimeout), func(v version) {
		if v.updated.Before(until) && v.matches(query) {
			newest.total++
			if after == nil || newestFirst(*after, v) < 0 {
				newest.add(v)
			}
		}
	}); err != nil {
		return store.Page{}, err
	}
	found, more := newest.take()
	page := store.Page{Total: newest.total}
	var err error
	if more && query.Count > 0 {
		last := found[len(found)-1]
		page.Next, err = json.Marshal(historyPosition{
			Until: until.UnixMilli(), Millis: last.updated.UnixMilli(), Type: last.obj.Spec.Type, ID: last.obj.Spec.ID, Version: last.number,
		})
	}
	if err == nil {
		page.Records, err = s.readVersions(ctx, found)
	}
	return page, err
}

// eachVersion calls visit with all visible versions of the records in the history, also of records
// that are deleted.
func (x *index) eachVersion(query store.HistoryQuery, w *queryBudget, visit func(version)) error {
	wanted := func(recordType string) bool {
		if query.Key.Type != "" {
			return recordType == query.Key.Type
		}
		return query.Types == nil || slices.Contains(query.Types, recordType)
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	access, err := x.historyAccess(query, w)
	if err != nil {
		return err
	}
	for _, e := range x.names {
		if e.obj.Spec.Purging || !wanted(e.obj.Spec.Type) {
			continue
		}
		for _, v := range access.visible(e, listedVersions(e.obj)) {
			visit(v)
		}
	}
	return nil
}

// newestFirst compares two versions in the order of a history of several records: newest first,
// then by type, id and descending version.
func newestFirst(a, b version) int {
	return cmp.Or(
		cmp.Compare(b.updated.UnixMilli(), a.updated.UnixMilli()),
		cmp.Compare(a.obj.Spec.Type, b.obj.Spec.Type),
		strings.Compare(strings.ToLower(a.obj.Spec.ID), strings.ToLower(b.obj.Spec.ID)),
		cmp.Compare(b.number, a.number),
	)
}

// newestVersions keeps the newest count+1 of the versions that are added to it.
type newestVersions struct {
	count    int
	total    int64
	versions []version
}

func (n *newestVersions) add(v version) {
	n.versions = append(n.versions, v)
	if len(n.versions) >= 2*(n.count+1)+1000 {
		n.trim()
	}
}

func (n *newestVersions) trim() {
	slices.SortFunc(n.versions, newestFirst)
	n.versions = n.versions[:min(len(n.versions), n.count+1)]
}

// take returns the versions of the page, and reports whether more versions follow.
func (n *newestVersions) take() ([]version, bool) {
	n.trim()
	return n.versions[:min(len(n.versions), n.count)], len(n.versions) > n.count
}

// fetchers is the maximum number of RecordHistories that are read concurrently for one page.
const fetchers = 8

// readVersions returns versions of several records with their bodies. It leaves out versions that
// were dropped after the index listed them.
func (s *Store) readVersions(ctx context.Context, versions []version) ([]store.Record, error) {
	var superseded []*recordsv1.Record
	for _, v := range versions {
		if v.number != v.obj.Spec.Version && !slices.Contains(superseded, v.obj) {
			superseded = append(superseded, v.obj)
		}
	}
	pasts := make([]map[string]recordsv1.SupersededVersion, len(superseded))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fetchers)
	for i, obj := range superseded {
		group.Go(func() (err error) {
			pasts[i], err = s.superseded(ctx, obj)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	records := make([]store.Record, 0, len(versions))
	for _, v := range versions {
		var past map[string]recordsv1.SupersededVersion
		if i := slices.Index(superseded, v.obj); i >= 0 {
			past = pasts[i]
		}
		if _, kept := past[versionKey(v.number)]; !kept && v.number != v.obj.Spec.Version {
			continue
		}
		record, err := s.read(v, past)
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}

// read returns a version with its body. The body of the newest version is in its Record, the bodies
// of superseded versions are in past.
func (s *Store) read(v version, past map[string]recordsv1.SupersededVersion) (store.Record, error) {
	if v.number == v.obj.Spec.Version {
		return toRecord(v.obj), nil
	}
	return s.readPast(v.obj, v.number, past[versionKey(v.number)])
}
