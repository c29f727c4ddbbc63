package postgres

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/paddock-health/paddock/apiserver/store"
)

// This file and layout.go are all that know the layout of the index tables: which rows a
// record has here, and which statements write and read them there.

// longestValue is how much of a folded text is indexed, in bytes: rows of an index have a
// largest size. Texts that differ only behind it are found as they are, and sort as equal.
const longestValue = 1024

type (
	tokenRow struct {
		sys       int64
		key, code int64
	}
	referenceRow struct{ key, tgt, base int64 }
	textRow      struct {
		key int64
		val string
		// whole and orig are stored where they differ from val; more is their hash, which
		// tells rows with the same val apart.
		whole, orig       string
		hasWhole, hasOrig bool
		more, facets      int64
	}
	periodRow struct{ key, lo, hi, facets int64 }
	pointRow  struct {
		key      int64
		lat, lon float64
	}
	// path is a way that references lead.
	path struct{ typ, param, target string }
)

// rows are the index rows of one record, each kind sorted and without duplicates.
type rows struct {
	tokens     []tokenRow
	references []referenceRow
	texts      []textRow
	periods    []periodRow
	points     []pointRow
	marks      []int64
	paths      []path
	// facets has a bit for each facet mark. It is in the rows that a facet chooses from.
	facets int64
}

// The bits above those of facets mark, of each parameter's texts or periods of a record, the
// one that comes first in an ascending order and the one that does in a descending order.
const (
	facetBits     = 61
	leastValue    = int64(1) << 61
	greatestValue = int64(1) << 62
)

// facetBit is the bit of a facet mark. Several share it: what has it may have the facet.
func facetBit(mark int64) int64 { return 1 << (uint64(mark) % facetBits) }

// endMark marks the values that an order goes by.
func endMark(descending bool) int64 {
	if descending {
		return greatestValue
	}
	return leastValue
}

// indexer makes the index rows of records.
type indexer struct {
	hash    hasher
	extract store.Extract
	// references finds the references among what extract finds.
	references store.Extract
	facet      func(param string) bool
	// fold is how original texts are folded; nil where it is not known.
	fold func(string) string
}

func (x *indexer) rows(typeName string, body store.Body) rows {
	var r rows
	for _, entry := range x.extract(typeName, body.JSON) {
		if mention, ok := entry.Value.(store.Mention); ok {
			x.addMention(&r, typeName, mention)
			continue
		}
		key := x.hash.param(typeName, entry.Param)
		r.marks = append(r.marks, key)
		switch v := entry.Value.(type) {
		case store.Token:
			x.addToken(&r, key, entry.Param, v)
		case store.Pair:
			for _, code := range x.hash.pairForms(v) {
				r.tokens = append(r.tokens, tokenRow{key: key, code: code})
			}
		case store.Text:
			r.texts = append(r.texts, x.textRow(key, v))
		case store.Reference:
			target, base := x.hash.target(v)
			r.references = append(r.references, referenceRow{key, target, base})
			if v.Type != "" {
				r.paths = append(r.paths, path{typeName, entry.Param, v.Type})
			}
		case store.Period:
			r.periods = append(r.periods, periodRow{key: key, lo: v.From, hi: v.Until})
		case store.Point:
			r.points = append(r.points, pointRow{key, v.Latitude, v.Longitude})
		}
	}
	for i := range r.texts {
		r.texts[i].facets = r.facets
	}
	for i := range r.periods {
		r.periods[i].facets = r.facets
	}
	r.tidy()
	markEnds(r.texts, func(t *textRow) (int64, *int64) { return t.key, &t.facets })
	markEnds(r.periods, func(p *periodRow) (int64, *int64) { return p.key, &p.facets })
	return r
}

func (x *indexer) addToken(r *rows, key int64, param string, t store.Token) {
	r.tokens = append(r.tokens, tokenRow{x.hash.system(t.System), key, x.hash.code(t.Code)})
	r.marks = append(r.marks, x.hash.systemMark(key, t.System))
	if x.facet(param) {
		for _, mark := range []int64{
			x.hash.facetMark(key, store.TokenIs{Code: &t.Code}), x.hash.facetMark(key, store.TokenIs{System: &t.System, Code: &t.Code}),
		} {
			r.marks = append(r.marks, mark)
			r.facets |= facetBit(mark)
		}
	}
}

func (x *indexer) textRow(key int64, text store.Text) textRow {
	row := textRow{key: key, val: text.Folded}
	if len(text.Folded) > longestValue {
		row.val, row.whole, row.hasWhole = text.Folded[:longestValue], text.Folded, true
	}
	if text.Original != text.Folded {
		row.orig, row.hasOrig = text.Original, true
	}
	if row.hasWhole || row.hasOrig {
		row.more = x.hash.of('t', row.whole, row.orig)
	}
	return row
}

func (r *rows) tidy() {
	tidy(&r.marks, cmp.Compare)
	tidy(&r.tokens, func(a, b tokenRow) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.code, b.code), cmp.Compare(a.sys, b.sys))
	})
	tidy(&r.references, func(a, b referenceRow) int {
		return cmp.Or(cmp.Compare(a.tgt, b.tgt), cmp.Compare(a.key, b.key), cmp.Compare(a.base, b.base))
	})
	tidy(&r.texts, func(a, b textRow) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.val, b.val), cmp.Compare(a.more, b.more))
	})
	tidy(&r.periods, func(a, b periodRow) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.lo, b.lo), cmp.Compare(a.hi, b.hi))
	})
	tidy(&r.points, func(a, b pointRow) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.lat, b.lat), cmp.Compare(a.lon, b.lon))
	})
	tidy(&r.paths, comparePaths)
}

// tidy sorts rows and leaves each once.
func tidy[T comparable](rows *[]T, compare func(a, b T) int) {
	slices.SortFunc(*rows, compare)
	*rows = slices.Compact(*rows)
}

// markEnds marks the values that orders go by, in rows that are tidy.
func markEnds[T any](rows []T, fields func(*T) (key int64, facets *int64)) {
	for i := range rows {
		key, facets := fields(&rows[i])
		before, after := key+1, key+1
		if i > 0 {
			before, _ = fields(&rows[i-1])
		}
		if i+1 < len(rows) {
			after, _ = fields(&rows[i+1])
		}
		if before != key {
			*facets |= leastValue
		}
		if after != key {
			*facets |= greatestValue
		}
	}
}

func comparePaths(a, b path) int {
	return cmp.Or(cmp.Compare(a.typ, b.typ), cmp.Compare(a.param, b.param), cmp.Compare(a.target, b.target))
}

// sum tells whether a record's rows are those that its body gives today: an update takes
// away the rows that the body before it gave, unless another extractor wrote them.
func (r *rows) sum() int64 {
	sum := fnv.New64a()
	number := func(numbers ...int64) {
		for _, n := range numbers {
			_, _ = sum.Write(binary.LittleEndian.AppendUint64(nil, uint64(n)))
		}
	}
	number(r.marks...)
	for _, t := range r.tokens {
		number(1, t.sys, t.key, t.code)
	}
	for _, t := range r.references {
		number(2, t.key, t.tgt, t.base)
	}
	for _, t := range r.texts {
		number(3, t.key, t.more, t.facets, int64(len(t.val)))
		_, _ = sum.Write([]byte(t.val))
	}
	for _, t := range r.periods {
		number(4, t.key, t.lo, t.hi, t.facets)
	}
	for _, t := range r.points {
		number(5, t.key)
		_, _ = sum.Write([]byte(strconv.FormatFloat(t.lat, 'g', -1, 64) + strconv.FormatFloat(t.lon, 'g', -1, 64)))
	}
	return int64(sum.Sum64())
}

// without are the rows that other does not have.
func (r *rows) without(other *rows) rows {
	return rows{
		tokens:     missing(r.tokens, other.tokens),
		references: missing(r.references, other.references),
		texts:      missing(r.texts, other.texts),
		periods:    missing(r.periods, other.periods),
		points:     missing(r.points, other.points),
	}
}

func missing[T comparable](from, in []T) []T {
	known := make(map[T]struct{}, len(in))
	for _, row := range in {
		known[row] = struct{}{}
	}
	var gone []T
	for _, row := range from {
		if _, kept := known[row]; !kept {
			gone = append(gone, row)
		}
	}
	return gone
}

// after is the least value that no value with the prefix reaches; nil when there is none.
func after(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}
