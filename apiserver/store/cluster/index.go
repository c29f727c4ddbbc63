package cluster

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"github.com/tidwall/btree"
	"k8s.io/apimachinery/pkg/types"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

// indexedRecord is one Record in an index.
type indexedRecord struct {
	obj *recordsv1.Record
	// id is the id in lower case.
	id string
	// created and updated are in milliseconds since 1970.
	created, updated int64
	used             usage
	values           []store.IndexValue
	// labels are those of the newest version. If that is a tombstone, they are those of the version
	// before it. labelled is false if an older release wrote the tombstone, without labels.
	labels   store.Labels
	labelled bool
}

// searchable reports whether searches may find the record.
func (e *indexedRecord) searchable() bool {
	return !e.obj.Spec.Deleted && !e.obj.Spec.Purging
}

// index holds the records of one site in memory, in the orders in which searches return them. The
// writes of this replica are added at once, those of other replicas by watch events. Of several
// states of a Record, the index keeps the one with the latest resourceVersion.
type index struct {
	extractor store.Extractor

	mu sync.RWMutex
	// names has all Records by name. types has the searchable Records by type.
	names map[string]*indexedRecord
	types map[string]*typeIndex
	// withEvents are the records in names that have events.
	withEvents map[string]*indexedRecord
	// removed has the removed Records by UID, for a time. A delayed watch event or response may still
	// contain the Record, and must be ignored.
	removed map[types.UID]removal
	// forgotten is the resourceVersion of the latest removal that forgetRemoved has deleted from removed.
	// For a removal of unknown resourceVersion, the resourceVersion that the watch had reached counts.
	forgotten int64
	used      usage

	open openWrites
	// retention is nil until Store.SetRetention is called.
	retention atomic.Pointer[store.Retention]
}

// removal is the removal of a Record.
type removal struct {
	key store.Key
	at  time.Time
	// version is the resourceVersion of the removal, or 0 until the watch event has come.
	version int64
}

// typeIndex holds the searchable records of one type: sorted by creation, update and id, and by
// value.
type typeIndex struct {
	created, updated, id *btree.BTreeG[*indexedRecord]
	postings             postings
	byLabels             byLabels
}

func newIndex(extractor store.Extractor) *index {
	return &index{
		extractor:  extractor,
		names:      map[string]*indexedRecord{},
		types:      map[string]*typeIndex{},
		withEvents: map[string]*indexedRecord{},
		removed:    map[types.UID]removal{},
	}
}

func newTypeIndex() *typeIndex {
	options := btree.Options{NoLocks: true}
	return &typeIndex{
		created:  btree.NewBTreeGOptions(byCreated, options),
		updated:  btree.NewBTreeGOptions(byUpdated, options),
		id:       btree.NewBTreeGOptions(byID, options),
		postings: newPostings(),
		byLabels: byLabels{},
	}
}

func (t *typeIndex) add(e *indexedRecord) {
	t.created.Set(e)
	t.updated.Set(e)
	t.id.Set(e)
	t.postings.add(e)
	t.byLabels.add(e)
}

func (t *typeIndex) remove(e *indexedRecord) {
	t.created.Delete(e)
	t.updated.Delete(e)
	t.id.Delete(e)
	t.postings.remove(e)
	t.byLabels.remove(e)
}

func byCreated(a, b *indexedRecord) bool {
	if a.created != b.created {
		return a.created < b.created
	}
	return a.id < b.id
}

func byUpdated(a, b *indexedRecord) bool {
	if a.updated != b.updated {
		return a.updated < b.updated
	}
	return byCreated(a, b)
}

func byID(a, b *indexedRecord) bool { return a.id < b.id }

// lookup returns the newest known state of a Record, or nil.
func (x *index) lookup(name string) *recordsv1.Record {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if e := x.names[name]; e != nil {
		return e.obj
	}
	return nil
}

// live returns the record with a key, or nil if searches may not find it. The id of the key must be
// in lower case.
func (x *index) live(key store.Key) *indexedRecord {
	t := x.types[key.Type]
	if t == nil {
		return nil
	}
	e, _ := t.id.Get(&indexedRecord{id: key.ID})
	return e
}

// typeNames returns the types of the records in alphabetical order.
func (x *index) typeNames() []string { return slices.Sorted(maps.Keys(x.types)) }

func (x *index) usage() usage {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.used
}

// apply adds a state of a Record to the index, unless the index has the same or a newer one. It
// returns the change of the usage of the site.
func (x *index) apply(obj *recordsv1.Record) usage {
	// The watch also returns the writes of this replica. The check avoids parsing them again.
	x.mu.RLock()
	awaited, known := x.isNewer(obj), x.names[obj.Name]
	x.mu.RUnlock()
	if !awaited {
		return usage{}
	}
	added := x.read(obj, known)
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.isNewer(obj) {
		return usage{}
	}
	change := x.drop(x.names[obj.Name])
	x.names[obj.Name] = added
	if len(obj.Spec.Events) > 0 {
		x.withEvents[obj.Name] = added
	}
	if added.searchable() {
		t := x.types[obj.Spec.Type]
		if t == nil {
			t = newTypeIndex()
			x.types[obj.Spec.Type] = t
		}
		t.add(added)
	}
	x.used = x.used.plus(added.used)
	return change.plus(added.used)
}

// isNewer reports whether a state of a Record is later than the one in the index. The caller holds
// mu.
func (x *index) isNewer(obj *recordsv1.Record) bool {
	if _, gone := x.removed[obj.UID]; gone {
		return false
	}
	known := x.names[obj.Name]
	return known == nil || newer(obj.ResourceVersion, known.obj.ResourceVersion)
}

// read extracts the values and labels of a Record. It needs no lock, so that this slow step does
// not delay the writers of the site. known is an earlier state of the Record, or nil. If the body
// has not changed, as after events were removed, read reuses the values and labels of known.
func (x *index) read(obj *recordsv1.Record, known *indexedRecord) *indexedRecord {
	e := &indexedRecord{
		obj: obj, id: strings.ToLower(obj.Spec.ID), used: usageOf(&obj.Spec),
		created: obj.Spec.Created.UnixMilli(), updated: obj.Spec.Updated.UnixMilli(),
	}
	switch {
	case e.searchable() && known != nil && known.searchable() && known.obj.Spec.Body == obj.Spec.Body:
		e.values, e.labels, e.labelled = known.values, known.labels, known.labelled
	case e.searchable():
		e.values = x.extractor.Extract(obj.Spec.Type, []byte(obj.Spec.Body))
		e.labels, e.labelled = x.extractor.Labels(obj.Spec.Type, e.values), true
		for i, name := range e.labels.Names { // the same few names recur: equal names share memory, and are compared faster
			e.labels.Names[i] = unique.Make(name).Value()
		}
	default:
		e.labels, e.labelled = parseLabels(obj.Spec.Labels)
	}
	return e
}

// remove removes a Record from the index and returns the change of usage. The index then ignores
// further states of the object with the UID. version is the resourceVersion of the removal, or 0 if it
// is not known.
func (x *index) remove(name string, uid types.UID, key store.Key, version int64, now time.Time) usage {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.removed[uid] = removal{key: key, at: now, version: version}
	old := x.names[name]
	if old == nil || old.obj.UID != uid {
		return usage{}
	}
	change := x.drop(old)
	x.release(old.obj.Spec.Type)
	return change
}

// release frees the memory of the index of a type, and of names, if they are empty. Go's maps do not shrink,
// and an index outlives its Site. The caller holds mu.
func (x *index) release(typeName string) {
	if t := x.types[typeName]; t != nil && t.id.Len() == 0 {
		delete(x.types, typeName)
	}
	if len(x.names) == 0 {
		x.names, x.withEvents = map[string]*indexedRecord{}, map[string]*indexedRecord{}
	}
}

// forgetRemoved forgets the Records that were removed before a time. seen is the resourceVersion that
// the watch has reached.
func (x *index) forgetRemoved(before time.Time, seen int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for uid, removed := range x.removed {
		if removed.at.Before(before) {
			x.forgotten = max(x.forgotten, cmp.Or(removed.version, seen))
			delete(x.removed, uid)
		}
	}
	if len(x.removed) == 0 {
		x.removed = map[types.UID]removal{}
	}
}

// drop removes a record from all maps and trees, and returns the change of usage. The caller holds
// mu.
func (x *index) drop(old *indexedRecord) usage {
	if old == nil {
		return usage{}
	}
	delete(x.names, old.obj.Name)
	delete(x.withEvents, old.obj.Name)
	if t := x.types[old.obj.Spec.Type]; t != nil && old.searchable() {
		t.remove(old)
	}
	x.used = x.used.minus(old.used)
	return usage{}.minus(old.used)
}
