package move

import (
	"context"
	"slices"

	"github.com/paddock-health/paddock/apiserver/store"
)

// heads reads the newest versions of all records of a storage, in the order of a dump.
type heads struct {
	storage Storage
	page    []store.Dumped
	after   store.Key
	more    bool
}

func newHeads(storage Storage) *heads { return &heads{storage: storage, more: true} }

// peek returns the next head, or nil if there is none.
func (h *heads) peek(ctx context.Context) (*store.Record, error) {
	for len(h.page) == 0 && h.more {
		page, err := h.storage.Dump(ctx, store.DumpQuery{Heads: true, After: h.after, MaxRecords: headPage, MaxBytes: batchBytes})
		if err != nil {
			return nil, err
		}
		h.page, h.more = page.Records, page.More && len(page.Records) > 0
		if h.more {
			h.after = page.Records[len(page.Records)-1].Key
		}
	}
	if len(h.page) == 0 {
		return nil, nil
	}
	return h.page[0].Newest(), nil
}

// next moves to the head after the one that peek returned.
func (h *heads) next() { h.page = h.page[1:] }

// sorted returns the keys in the order of a dump, each once.
func sorted(keys []store.Key) []store.Key {
	keys = slices.Clone(keys)
	slices.SortFunc(keys, store.Key.Compare)
	return slices.Compact(keys)
}
