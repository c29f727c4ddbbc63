package cluster

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/btree"
	"k8s.io/apimachinery/pkg/types"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

// entry is one Record object in an index.
type entry struct {
	obj *recordsv1.Record
	// id is the lower-cased id.
	id string
	// created and updated are in milliseconds since 1970.
	created, updated int64
	size             int64
	entries          []store.Entry
}

// searchable reports whether searches may find the record.
func (e *entry) searchable() bool {
	return !e.obj.Spec.Deleted && !e.obj.Spec.Purging
}

// index holds the records of one site in memory, in the orders that searches
// page by. Two sources feed it: this replica's own writes, at once, and the
// watch, later; the newer resourceVersion wins.
type index struct {
	extract store.Extract

	mu    sync.RWMutex
	names map[string]*entry
	types map[string]*typeIndex
	// removed holds the uids of objects that are gone and that an event, or a
	// writer's late answer, may still speak of, and since when.
	removed map[types.UID]time.Time
	used    usage

	open openWrites
}

// typeIndex holds the searchable records of one type in each order, and by value.
type typeIndex struct {
	created, updated, id *btree.BTreeG[*entry]
	postings             postings
}

func newIndex(extract store.Extract) *index {
	return &index{
		extract: extract,
		names:   map[string]*entry{},
		types:   map[string]*typeIndex{},
		removed: map[types.UID]time.Time{},
	}
}

func newTypeIndex() *typeIndex {
	options := btree.Options{NoLocks: true}
	return &typeIndex{
		created:  btree.NewBTreeGOptions(byCreated, options),
		updated:  btree.NewBTreeGOptions(byUpdated, options),
		id:       btree.NewBTreeGOptions(byID, options),
		postings: newPostings(),
	}
}

func (t *typeIndex) add(e *entry) {
	t.created.Set(e)
	t.updated.Set(e)
	t.id.Set(e)
	t.postings.add(e)
}

func (t *typeIndex) remove(e *entry) {
	t.created.Delete(e)
	t.updated.Delete(e)
	t.id.Delete(e)
	t.postings.remove(e)
}

func byCreated(a, b *entry) bool {
	if a.created != b.created {
		return a.created < b.created
	}
	return a.id < b.id
}

func byUpdated(a, b *entry) bool {
	if a.updated != b.updated {
		return a.updated < b.updated
	}
	return byCreated(a, b)
}

func byID(a, b *entry) bool { return a.id < b.id }

// lookup returns the newest known state of a Record, nil when there is none.
func (x *index) lookup(name string) *recordsv1.Record {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if e := x.names[name]; e != nil {
		return e.obj
	}
	return nil
}

// visible returns the record with a key, in lower case, if searches may find it.
func (x *index) visible(key store.Key) *entry {
	t := x.types[key.Type]
	if t == nil {
		return nil
	}
	e, _ := t.id.Get(&entry{id: key.ID})
	return e
}

// typeNames lists the types of the records, in alphabetical order.
func (x *index) typeNames() []string { return slices.Sorted(maps.Keys(x.types)) }

// usage returns what the site stores.
func (x *index) usage() usage {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.used
}

// apply takes a state of a Record in, unless a newer one is known. It returns by
// how much the site's usage changed.
func (x *index) apply(obj *recordsv1.Record) usage {
	// An own write comes back by the watch: what is known already is not read again.
	x.mu.RLock()
	awaited := x.awaits(obj)
	x.mu.RUnlock()
	if !awaited {
		return usage{}
	}
	added := x.read(obj)
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.awaits(obj) {
		return usage{}
	}
	change := x.drop(x.names[obj.Name])
	x.names[obj.Name] = added
	if added.searchable() {
		t := x.types[obj.Spec.Type]
		if t == nil {
			t = newTypeIndex()
			x.types[obj.Spec.Type] = t
		}
		t.add(added)
	}
	change.records++
	change.bytes += added.size
	x.used.records++
	x.used.bytes += added.size
	return change
}

// awaits reports whether a state of a Record is later than what is known of it. The
// caller holds mu.
func (x *index) awaits(obj *recordsv1.Record) bool {
	if _, gone := x.removed[obj.UID]; gone {
		return false
	}
	known := x.names[obj.Name]
	return known == nil || newer(obj.ResourceVersion, known.obj.ResourceVersion)
}

// read makes the entry of a Record. It takes the time that writers of the site need
// not wait for.
func (x *index) read(obj *recordsv1.Record) *entry {
	e := &entry{
		obj: obj, id: strings.ToLower(obj.Spec.ID), size: storedSize(&obj.Spec),
		created: obj.Spec.Created.UnixMilli(), updated: obj.Spec.Updated.UnixMilli(),
	}
	if e.searchable() {
		e.entries = x.extract(obj.Spec.Type, []byte(obj.Spec.Body))
	}
	return e
}

// remove takes a Record out that is gone. Whatever is still said of this very
// object afterwards is older and ignored.
func (x *index) remove(name string, uid types.UID, now time.Time) usage {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.removed[uid] = now
	if old := x.names[name]; old != nil && old.obj.UID == uid {
		return x.drop(old)
	}
	return usage{}
}

// forgetRemoved drops the memory of objects that were removed before a time.
func (x *index) forgetRemoved(before time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for uid, at := range x.removed {
		if at.Before(before) {
			delete(x.removed, uid)
		}
	}
}

// drop takes an entry out and returns the change of usage. The caller holds mu.
func (x *index) drop(old *entry) usage {
	if old == nil {
		return usage{}
	}
	delete(x.names, old.obj.Name)
	if old.searchable() {
		x.types[old.obj.Spec.Type].remove(old)
	}
	x.used.records--
	x.used.bytes -= old.size
	return usage{records: -1, bytes: -old.size}
}
