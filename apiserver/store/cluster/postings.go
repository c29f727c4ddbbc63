package cluster

import (
	"iter"
	"slices"
	"sort"

	"github.com/tidwall/btree"

	"github.com/paddock-health/paddock/apiserver/store"
)

// postings map the values of the records of one type to the records. Each list of records is in the
// order of creation.
type postings struct {
	tokens map[tokenPosting][]*indexedRecord
	refs   map[refPosting][]*indexedRecord
	// texts and periods are sorted by value, for prefixes, ranges and sorted searches.
	texts   map[string]*btree.BTreeG[textPosting]
	periods map[string]*btree.BTreeG[periodPosting]
}

// tokenPosting is the key of the list of records with a token. The list is that of a code or, if
// code is empty, that of a system.
type tokenPosting struct{ param, system, code string }

// refPosting is the key of the list of records with a reference, by a parameter or, if param is
// empty, by any parameter.
type refPosting struct {
	param string
	to    store.Reference
}

type textPosting struct {
	text string
	e    *indexedRecord
}

type periodPosting struct {
	from int64
	e    *indexedRecord
}

func newPostings() postings {
	return postings{
		tokens:  map[tokenPosting][]*indexedRecord{},
		refs:    map[refPosting][]*indexedRecord{},
		texts:   map[string]*btree.BTreeG[textPosting]{},
		periods: map[string]*btree.BTreeG[periodPosting]{},
	}
}

func byText(a, b textPosting) bool {
	if a.text != b.text {
		return a.text < b.text
	}
	return byCreated(a.e, b.e)
}

func byFrom(a, b periodPosting) bool {
	if a.from != b.from {
		return a.from < b.from
	}
	return byCreated(a.e, b.e)
}

func (p *postings) add(e *indexedRecord) {
	for _, value := range e.values {
		switch v := value.Value.(type) {
		case store.Token:
			for _, name := range tokenPostings(value.Param, v) {
				p.tokens[name] = insert(p.tokens[name], e)
			}
		case store.Reference:
			for _, name := range refPostings(value.Param, v) {
				p.refs[name] = insert(p.refs[name], e)
			}
		case store.Text:
			treeOf(p.texts, value.Param, byText).Set(textPosting{v.Folded, e})
		case store.Period:
			treeOf(p.periods, value.Param, byFrom).Set(periodPosting{v.From, e})
		}
	}
}

func (p *postings) remove(e *indexedRecord) {
	for _, value := range e.values {
		switch v := value.Value.(type) {
		case store.Token:
			for _, name := range tokenPostings(value.Param, v) {
				removeFrom(p.tokens, name, e)
			}
		case store.Reference:
			for _, name := range refPostings(value.Param, v) {
				removeFrom(p.refs, name, e)
			}
		case store.Text:
			treeOf(p.texts, value.Param, byText).Delete(textPosting{v.Folded, e})
		case store.Period:
			treeOf(p.periods, value.Param, byFrom).Delete(periodPosting{v.From, e})
		}
	}
}

func tokenPostings(param string, t store.Token) []tokenPosting {
	var names []tokenPosting
	if t.Code != "" {
		names = append(names, tokenPosting{param: param, code: t.Code})
	}
	if t.System != "" {
		names = append(names, tokenPosting{param: param, system: t.System})
	}
	return names
}

func refPostings(param string, r store.Reference) [2]refPosting {
	return [2]refPosting{{param, r}, {"", r}}
}

func treeOf[T any](trees map[string]*btree.BTreeG[T], param string, less func(a, b T) bool) *btree.BTreeG[T] {
	tree := trees[param]
	if tree == nil {
		tree = btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
		trees[param] = tree
	}
	return tree
}

// searchList returns the index at which a record is in a list, or would be inserted.
func searchList(list []*indexedRecord, e *indexedRecord) int {
	return sort.Search(len(list), func(i int) bool { return !byCreated(list[i], e) })
}

// insert adds a record to a list, unless the list has the record already. That is so if two values of
// the record share a key, such as the system of two identifiers.
func insert(list []*indexedRecord, e *indexedRecord) []*indexedRecord {
	i := searchList(list, e)
	if i < len(list) && list[i] == e {
		return list
	}
	return slices.Insert(list, i, e)
}

func removeFrom[K comparable](lists map[K][]*indexedRecord, name K, e *indexedRecord) {
	list := lists[name]
	i := searchList(list, e)
	if i == len(list) || list[i] != e {
		return
	}
	if list = slices.Delete(list, i, i+1); len(list) == 0 {
		delete(lists, name)
		return
	}
	lists[name] = list
}

// startingWith yields the records with a folded text that starts with a prefix. A record with
// several such texts is yielded several times.
func (p *postings) startingWith(param, prefix string) iter.Seq[*indexedRecord] {
	return func(yield func(*indexedRecord) bool) {
		tree := p.texts[param]
		if tree == nil {
			return
		}
		tree.Ascend(textPosting{prefix, beforeAll}, func(at textPosting) bool {
			return len(at.text) >= len(prefix) && at.text[:len(prefix)] == prefix && yield(at.e)
		})
	}
}

// startingWithin yields the records with a period that starts within bounds. A record with several
// such periods is yielded several times.
func (p *postings) startingWithin(param string, within store.Bounds) iter.Seq[*indexedRecord] {
	return func(yield func(*indexedRecord) bool) {
		tree := p.periods[param]
		if tree == nil {
			return
		}
		tree.Ascend(periodPosting{within.Least, beforeAll}, func(at periodPosting) bool {
			return at.from <= within.Most && yield(at.e)
		})
	}
}
