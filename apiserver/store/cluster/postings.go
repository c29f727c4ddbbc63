package cluster

import (
	"iter"
	"slices"
	"sort"

	"github.com/tidwall/btree"

	"github.com/paddock-health/paddock/apiserver/store"
)

// postings lists the entries of one type by their values. Each list is in the order
// of creation.
type postings struct {
	tokens map[tokenPosting][]*entry
	refs   map[refPosting][]*entry
	// texts and periods are ordered by value, for prefixes, ranges and sorting.
	texts   map[string]*btree.BTreeG[textPosting]
	periods map[string]*btree.BTreeG[periodPosting]
}

// tokenPosting names a list of tokens: those with a code or, where that is empty,
// those with a system.
type tokenPosting struct{ param, system, code string }

// refPosting names a list of references by one parameter or, where that is empty, by
// any.
type refPosting struct {
	param string
	to    store.Reference
}

type textPosting struct {
	text string
	e    *entry
}

type periodPosting struct {
	from int64
	e    *entry
}

func newPostings() postings {
	return postings{
		tokens:  map[tokenPosting][]*entry{},
		refs:    map[refPosting][]*entry{},
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

// add lists an entry. It keeps the trees of a value in step: a nil tree is made.
func (p *postings) add(e *entry) {
	for _, value := range e.entries {
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

func (p *postings) remove(e *entry) {
	for _, value := range e.entries {
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

// place is where an entry is, or would be, in a list.
func place(list []*entry, e *entry) int {
	return sort.Search(len(list), func(i int) bool { return !byCreated(list[i], e) })
}

// insert puts an entry into a list, once: values may repeat a part, as the system of
// two identifiers.
func insert(list []*entry, e *entry) []*entry {
	i := place(list, e)
	if i < len(list) && list[i] == e {
		return list
	}
	return slices.Insert(list, i, e)
}

func removeFrom[K comparable](lists map[K][]*entry, name K, e *entry) {
	list := lists[name]
	i := place(list, e)
	if i == len(list) || list[i] != e {
		return
	}
	if list = slices.Delete(list, i, i+1); len(list) == 0 {
		delete(lists, name)
		return
	}
	lists[name] = list
}

// startingWith yields the entries with a text that begins with a prefix, some more
// than once.
func (p *postings) startingWith(param, prefix string) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		tree := p.texts[param]
		if tree == nil {
			return
		}
		tree.Ascend(textPosting{prefix, firstEntry}, func(at textPosting) bool {
			return len(at.text) >= len(prefix) && at.text[:len(prefix)] == prefix && yield(at.e)
		})
	}
}

// beginning yields the entries with a period that begins within bounds, some more
// than once.
func (p *postings) beginning(param string, within store.Bounds) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		tree := p.periods[param]
		if tree == nil {
			return
		}
		tree.Ascend(periodPosting{within.Least, firstEntry}, func(at periodPosting) bool {
			return at.from <= within.Most && yield(at.e)
		})
	}
}
