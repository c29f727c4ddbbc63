package move

import (
	"context"
	"slices"

	"github.com/paddock-health/paddock/apiserver/store"
)

// heads reads the newest versions of the records of a storage, in the order of a dump.
type heads struct {
	storage Storage
	// keys are the keys of the records still to read, if byKeys is true. Otherwise all records are read.
	keys   []store.Key
	byKeys bool
	page   []store.Dumped
	after  store.Key
	more   bool
}

// newHeads returns the heads of all records.
func newHeads(storage Storage) *heads { return &heads{storage: storage, more: true} }

// newHeadsOf returns the heads of the records with keys. The keys must be in the order of a dump.
func newHeadsOf(storage Storage, keys []store.Key) *heads {
	return &heads{storage: storage, keys: keys, byKeys: true, more: true}
}

// peek returns the next head, or nil if there is none.
func (h *heads) peek(ctx context.Context) (*store.Dumped, error) {
	for len(h.page) == 0 && h.more {
		if err := h.read(ctx); err != nil {
			return nil, err
		}
	}
	if len(h.page) == 0 {
		return nil, nil
	}
	return &h.page[0], nil
}

// read reads the next page, which may be empty.
func (h *heads) read(ctx context.Context) error {
	query := store.DumpQuery{Heads: true, After: h.after, MaxRecords: headPage, MaxBytes: batchBytes}
	if h.byKeys {
		n := min(len(h.keys), headPage)
		query.Keys, h.keys = h.keys[:n:n], h.keys[n:]
		if h.more = len(h.keys) > 0; n == 0 {
			return nil
		}
	}
	page, err := h.storage.Dump(ctx, query)
	if err != nil {
		return err
	}
	h.page = page.Records
	if !h.byKeys {
		if h.more = page.More && len(page.Records) > 0; h.more {
			h.after = page.Records[len(page.Records)-1].Key
		}
	}
	return nil
}

// next moves to the head after the one that peek returned.
func (h *heads) next() { h.page = h.page[1:] }

// difference is a record that is not the same in both storages.
type difference struct {
	key store.Key
	// oldest is the number of the oldest version to copy: the newest one that the target has, or 0 for all.
	oldest int64
}

// sorted returns the differences in the order of a dump, each record once.
func sorted(differences []difference) []difference {
	differences = slices.Clone(differences)
	slices.SortStableFunc(differences, func(a, b difference) int { return a.key.Compare(b.key) })
	return slices.CompactFunc(differences, func(a, b difference) bool { return a.key.Compare(b.key) == 0 })
}

// versionsOf returns the query of the versions to copy, which may need several pages.
func versionsOf(differences []difference) store.DumpQuery {
	q := store.DumpQuery{Oldest: make([]int64, 0, len(differences)), MaxRecords: len(differences), MaxBytes: batchBytes}
	for _, d := range differences {
		q.Keys, q.Oldest = append(q.Keys, d.key), append(q.Oldest, d.oldest)
	}
	return q
}
