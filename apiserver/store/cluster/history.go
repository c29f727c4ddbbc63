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

// version is one version of a record, told without its body.
type version struct {
	obj    *recordsv1.Record
	number int64
	// It was the newest from updated until until, which is zero for the newest.
	updated, until time.Time
	deleted        bool
}

func (v version) matches(query store.HistoryQuery) bool {
	if v.deleted && !query.Deletions || v.updated.Before(query.Since) {
		return false
	}
	return query.Current == nil || slices.ContainsFunc(query.Current, func(r store.TimeRange) bool {
		return r.Overlaps(v.updated, v.until)
	})
}

// History implements store.Store.
func (s *Site) History(ctx context.Context, query store.HistoryQuery) (store.Page, error) {
	if query.Key.ID == "" {
		return s.historyOfMany(ctx, query)
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
	if obj == nil || obj.Spec.Purging {
		return store.Page{}, store.ErrNotFound
	}
	past, err := s.superseded(ctx, obj)
	if err != nil {
		return store.Page{}, err
	}
	page := store.Page{}
	for _, v := range storedVersions(obj, past) {
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

// historyPosition is the last version of a page. Of a history of one record it
// has the number alone.
type historyPosition struct {
	// Until is when what the first page told of ended: those that follow tell of the same.
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

// storedVersions lists the versions of a record, newest first, as its history
// object has them.
func storedVersions(obj *recordsv1.Record, past map[string]recordsv1.SupersededVersion) []version {
	newest := version{obj: obj, number: obj.Spec.Version, updated: obj.Spec.Updated.Time, deleted: obj.Spec.Deleted}
	versions, until := []version{newest}, newest.updated
	for number := newest.number - 1; number >= newest.number-int64(len(obj.Spec.History)); number-- {
		if old, kept := past[versionKey(number)]; kept {
			versions = append(versions, version{obj, number, old.Updated.Time, until, old.Deleted})
			until = old.Updated.Time
		}
	}
	return versions
}

// listedVersions yields the versions of a record, newest first, as the Record
// itself lists them.
func listedVersions(obj *recordsv1.Record, yield func(version)) {
	spec := &obj.Spec
	newest := version{obj: obj, number: spec.Version, updated: spec.Updated.Time, deleted: spec.Deleted}
	yield(newest)
	until := newest.updated
	for i := range spec.HistoryUpdated {
		number := newest.number - 1 - int64(i)
		updated := time.UnixMilli(spec.HistoryUpdated[len(spec.HistoryUpdated)-1-i])
		yield(version{obj, number, updated, until, slices.Contains(spec.HistoryDeletions, number)})
		until = updated
	}
}

// historyOfMany reads the history of a type or of the site. What there is and in
// which order is in memory; only the superseded bodies of the page are fetched.
func (s *Site) historyOfMany(ctx context.Context, query store.HistoryQuery) (store.Page, error) {
	if !s.engine.isSynced() {
		return store.Page{}, store.ErrNotReady
	}
	var after *version
	var until time.Time
	if query.After == nil {
		var err error
		if until, err = s.settled(ctx, s.index.open.acknowledged()); err != nil {
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
	for _, obj := range s.index.recordsOf(query) {
		listedVersions(obj, func(v version) {
			if v.updated.Before(until) && v.matches(query) {
				newest.total++
				if after == nil || newestFirst(*after, v) < 0 {
					newest.add(v)
				}
			}
		})
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

// recordsOf returns the records whose history is asked for, deleted ones included.
func (x *index) recordsOf(query store.HistoryQuery) []*recordsv1.Record {
	wanted := func(recordType string) bool {
		if query.Key.Type != "" {
			return recordType == query.Key.Type
		}
		return query.Types == nil || slices.Contains(query.Types, recordType)
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	found := make([]*recordsv1.Record, 0, len(x.names))
	for _, e := range x.names {
		if !e.obj.Spec.Purging && wanted(e.obj.Spec.Type) {
			found = append(found, e.obj)
		}
	}
	return found
}

// newestFirst is the order of a history of several records: a total one.
func newestFirst(a, b version) int {
	return cmp.Or(
		cmp.Compare(b.updated.UnixMilli(), a.updated.UnixMilli()),
		cmp.Compare(a.obj.Spec.Type, b.obj.Spec.Type),
		strings.Compare(strings.ToLower(a.obj.Spec.ID), strings.ToLower(b.obj.Spec.ID)),
		cmp.Compare(b.number, a.number),
	)
}

// newestVersions keeps the first count versions, and one more, of those added in
// any order.
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

// take returns the page and whether there are more behind it.
func (n *newestVersions) take() ([]version, bool) {
	n.trim()
	return n.versions[:min(len(n.versions), n.count)], len(n.versions) > n.count
}

// fetchers is how many histories are fetched at once for one page.
const fetchers = 8

// readVersions reads versions of several records. One that was given up since it
// was listed is left out.
func (s *Site) readVersions(ctx context.Context, versions []version) ([]store.Record, error) {
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

// read reads a version out of its Record or out of the past that holds it.
func (s *Site) read(v version, past map[string]recordsv1.SupersededVersion) (store.Record, error) {
	if v.number == v.obj.Spec.Version {
		return toRecord(v.obj), nil
	}
	return s.readPast(v.obj, v.number, past[versionKey(v.number)])
}
