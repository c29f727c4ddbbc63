// Package indexrow computes the rows that a record has in the index tables, and the hashes that
// these rows have instead of names. It also writes the SQL that inserts and deletes the rows. It
// runs no statements.
package indexrow

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"strconv"

	"github.com/paddock-health/paddock/apiserver/store"
)

// MaxIndexedBytes is the maximum length in bytes of the indexed prefix of a folded text, because
// Postgres limits the size of an index row. Texts with the same prefix sort as equal. Searches compare
// the whole texts.
const MaxIndexedBytes = 1024

// The rows of the index tables. of is the number of the row's record in a Batch, and 0 elsewhere.
type (
	tokenRow struct {
		sys       int64
		key, code int64
		of        int32
		// isEarlier reports whether only earlier releases search for the row, which is in ix_tok only.
		isEarlier bool
	}
	referenceRow struct {
		key, tgt, base int64
		of             int32
	}
	// textRow is a row of ix_str, in which earlier releases search for texts.
	textRow struct {
		key int64
		val string
		// whole is the complete folded text, which is stored if it differs from val. orig is the original
		// text, which is stored if it differs from the folded one. more is the hash of both and
		// distinguishes rows with the same val. It is 0 if neither is stored.
		whole, orig       string
		hasWhole, hasOrig bool
		more, facets      int64
		of                int32
	}
	// indexedTextRow is a row of ix_text.
	indexedTextRow struct {
		key    int32
		val    string
		facets int64
		of     int32
	}
	periodRow struct {
		key, lo, hi, facets int64
		of                  int32
	}
	pointRow struct {
		key      int64
		lat, lon float64
		of       int32
	}
	// ReferencePath is a search parameter Param by which records of type Type refer to records of type
	// Target.
	ReferencePath struct{ Type, Param, Target string }
)

// Rows are the index rows of one record, each kind sorted and without duplicates.
type Rows struct {
	tokens     []tokenRow
	references []referenceRow
	texts      []textRow
	indexed    []indexedTextRow
	periods    []periodRow
	points     []pointRow
	// Marks is the column marks: the system marks and facet marks of the record, and the keys of its
	// parameters. A parameter with a bit in Present has its key there only if earlier releases may read it.
	Marks []int64
	// keys are the keys of the parameters of the record that are not in Marks. Sum covers both.
	keys []int64
	// Vals is the column vals: all texts of the record.
	Vals []byte
	// Signature is the columns sig, sig2 and sig3: the signatures of all texts and facets.
	Signature Signature
	// Present is the column present: the PresenceBit of each parameter of the record, the CommonBit of
	// each common code, and HasCommonBits.
	Present int64
	earlier Earlier
	// Paths are the reference paths of the record.
	Paths []ReferencePath
	// Labels has the hash of each label of the record. Links has LinkWidth elements for each link of
	// the record, one link after the other. They are the values of the columns labels and links.
	Labels, Links []int64
	// facets has the bits of all facet marks (FacetBit), and textFacets those for ix_text
	// (TextFacetBit). They are copied into the rows of texts and periods, so that scans of these rows
	// can test facets.
	facets, textFacets int64
}

// The bits of the column facets. The lower bits are those of facets (FacetBit). leastValue and
// greatestValue mark, for each parameter, the text or period of a record by which the record is
// sorted in ascending and in descending order.
const (
	facetBits     = 61
	leastValue    = int64(1) << 61
	greatestValue = int64(1) << 62
)

// The bits of the column facets of ix_text. leastValue and greatestValue are as above, for parameters
// that are not unions. leastOfUnion and greatestOfUnion mark the texts by which a record is sorted if
// the sort parameter is a union.
const (
	textFacetBits         = 60
	leastOfUnion          = int64(1) << 60
	greatestOfUnion int64 = math.MinInt64
)

// TextFacetBit is like FacetBit, but for the rows of ix_text.
func TextFacetBit(mark int64) int64 { return 1 << (uint64(mark) % textFacetBits) }

// TextEndMark is like EndMark, but for the rows of ix_text. isUnion reports whether the parameter has
// parts.
func TextEndMark(isUnion, descending bool) int64 {
	switch {
	case !isUnion:
		return EndMark(descending)
	case descending:
		return greatestOfUnion
	default:
		return leastOfUnion
	}
}

// FacetBit returns the bit of a facet mark in the column facets. Several marks have the same bit,
// so a row with the bit need not have the facet.
func FacetBit(mark int64) int64 { return 1 << (uint64(mark) % facetBits) }

// EndMark returns the bit in the column facets that marks one text or period of a record: the one
// by which the record is sorted in this direction.
func EndMark(descending bool) int64 {
	if descending {
		return greatestValue
	}
	return leastValue
}

// Indexer computes the index rows of records. Hash and Extractor are required.
type Indexer struct {
	Hash      Hasher
	Extractor store.Extractor
	// Earlier returns the tables of earlier releases that the database has. If Earlier is nil, it has none.
	Earlier func() Earlier
}

// Rows returns the index rows of a record of a type.
func (x *Indexer) Rows(typeName string, body store.Body) Rows {
	return x.RowsOf(typeName, x.Extractor.Extract(typeName, body.JSON))
}

// RowsOf is like Rows, but for a record whose index values are known, in the order of the Extractor.
func (x *Indexer) RowsOf(typeName string, values []store.IndexValue) Rows {
	r := Rows{Present: HasCommonBits}
	r.Labels, r.Links = x.Labels(typeName, values)
	texts := r.reserve(values)
	if x.Earlier != nil {
		r.earlier = x.Earlier()
	}
	var param string
	var parts []string
	var key int64
	var hasTokens bool // whether the parameter had a token so far
	var unions [][]int64
	for _, entry := range values {
		if mention, ok := entry.Value.(store.Mention); ok {
			x.addMention(&r, typeName, mention)
			continue
		}
		if param == "" || entry.Param != param { // the values of a parameter follow each other
			param, key = entry.Param, x.Hash.Param(typeName, entry.Param)
			parts = x.Extractor.Parts(typeName, param)
			hasTokens = false
			r.addParam(key, PresenceBit(x.Extractor.Ordinal(typeName, param)))
		}
		switch v := entry.Value.(type) {
		case store.Token:
			if len(parts) > 0 && !hasTokens {
				unions = append(unions, x.Hash.Params(typeName, param, parts))
			}
			hasTokens = true
			x.addToken(&r, key, typeName, entry.Param, v)
		case store.Pair:
			for _, code := range x.Hash.pairForms(v) {
				r.tokens = append(r.tokens, tokenRow{key: key, code: code})
			}
		case store.Text:
			r.texts = append(r.texts, x.textRow(key, v))
			texts.add(param, parts, v)
		case store.Reference:
			target, base := x.Hash.Target(v)
			r.references = append(r.references, referenceRow{key: key, tgt: target, base: base})
			if v.Type != "" {
				r.Paths = append(r.Paths, ReferencePath{typeName, entry.Param, v.Type})
			}
		case store.Period:
			r.periods = append(r.periods, periodRow{key: key, lo: v.From, hi: v.Until})
		case store.Point:
			r.points = append(r.points, pointRow{key: key, lat: v.Latitude, lon: v.Longitude})
		}
	}
	for i := range r.texts {
		r.texts[i].facets = r.facets
	}
	for i := range r.periods {
		r.periods[i].facets = r.facets
	}
	r.addTexts(typeName, &texts)
	r.sortUnique()
	r.markTokensOfParts(unions)
	markEnds(r.texts, func(t *textRow) (int64, *int64) { return t.key, &t.facets })
	markEnds(r.periods, func(p *periodRow) (int64, *int64) { return p.key, &p.facets })
	return r
}

// reserve allocates the rows of values at once, and the memory for their texts.
func (r *Rows) reserve(values []store.IndexValue) textsOfParams {
	var tokens, texts, params int // params is the number of parameters with texts
	var param string
	for _, entry := range values {
		switch entry.Value.(type) {
		case store.Token:
			tokens++
		case store.Text:
			texts++
			if texts == 1 || entry.Param != param {
				params++
			}
			param = entry.Param
		}
	}
	r.tokens, r.texts = make([]tokenRow, 0, tokens), make([]textRow, 0, texts)
	r.Marks, r.keys = make([]int64, 0, len(values)+2*tokens), make([]int64, 0, len(values))
	return newTextsOfParams(params, texts)
}

// addParam adds a parameter of the record. bit is its PresenceBit.
func (r *Rows) addParam(key, bit int64) {
	r.Present |= bit
	if bit != 0 && !r.earlier.WideTexts {
		r.keys = append(r.keys, key)
		return
	}
	r.Marks = append(r.Marks, key)
}

func (x *Indexer) addToken(r *Rows, key int64, typeName, param string, t store.Token) {
	row := tokenRow{sys: x.Hash.System(t.System), key: key, code: x.Hash.Code(t.Code)}
	r.Marks = append(r.Marks, x.Hash.SystemMark(key, t.System))
	if x.Extractor.IsFacet(param) {
		common := CommonBit(x.Extractor.CommonCodes(typeName), store.TokenIs{Param: param, System: &t.System, Code: &t.Code})
		row.isEarlier = common != 0
		r.Present |= common
		ofAnySystem := x.Hash.FacetMark(key, store.TokenIs{Code: &t.Code})
		r.Signature = r.Signature.With(facetSignature(ofAnySystem))
		for _, mark := range []int64{ofAnySystem, x.Hash.FacetMark(key, store.TokenIs{System: &t.System, Code: &t.Code})} {
			r.Marks = append(r.Marks, mark)
			r.facets |= FacetBit(mark)
			r.textFacets |= TextFacetBit(mark)
		}
	}
	r.tokens = append(r.tokens, row)
}

// markTokensOfParts sets isEarlier in the tokens of a union that a part of it has. unions are the keys of
// the unions, each followed by those of its parts. The tokens are sorted.
func (r *Rows) markTokensOfParts(unions [][]int64) {
	for _, keys := range unions {
		for i := range r.tokens {
			token := &r.tokens[i]
			token.isEarlier = token.isEarlier || token.key == keys[0] && slices.ContainsFunc(r.tokens, func(of tokenRow) bool {
				return of.code == token.code && of.sys == token.sys && slices.Contains(keys[1:], of.key)
			})
		}
	}
}

// addMention adds the index row of a Mention. Searches do not use the row, because its key belongs to
// no parameter. addMention adds no mark and no reference path.
func (x *Indexer) addMention(r *Rows, typeName string, mention store.Mention) {
	target, base := x.Hash.Target(store.Reference(mention))
	r.references = append(r.references, referenceRow{key: x.Hash.mentions(typeName), tgt: target, base: base})
}

func (x *Indexer) textRow(key int64, text store.Text) textRow {
	row := textRow{key: key, val: text.Folded}
	if len(text.Folded) > MaxIndexedBytes {
		row.val, row.whole, row.hasWhole = text.Folded[:MaxIndexedBytes], text.Folded, true
	}
	if text.Original != text.Folded {
		row.orig, row.hasOrig = text.Original, true
	}
	if row.hasWhole || row.hasOrig {
		row.more = x.Hash.Of('t', row.whole, row.orig)
	}
	return row
}

func (r *Rows) sortUnique() {
	slices.Sort(r.Marks) // faster than with a comparison
	r.Marks = slices.Compact(r.Marks)
	sortUnique(&r.tokens, compareTokens)
	sortUnique(&r.references, compareReferences)
	sortUnique(&r.texts, compareTextRows)
	slices.SortFunc(r.indexed, compareIndexedTexts)
	sortUnique(&r.periods, comparePeriods)
	sortUnique(&r.points, comparePoints)
	sortUnique(&r.Paths, comparePaths)
}

// sortUnique sorts rows and removes duplicates.
func sortUnique[T comparable](rows *[]T, compare func(a, b T) int) {
	slices.SortFunc(*rows, compare)
	*rows = slices.Compact(*rows)
}

// markEnds sets the EndMark bits in rows that are sorted by key and value.
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

// UniquePaths sorts paths and removes duplicates.
func UniquePaths(paths []ReferencePath) []ReferencePath {
	sortUnique(&paths, comparePaths)
	return paths
}

// Sum returns the checksum of the rows. If it differs from the stored one (column ixsum), a release
// with another extraction wrote the record's rows. An update must then remove all rows of the
// record, because those that it computes from the old body are not the stored ones. The checksum is
// the same as that of releases without ix_text, so it does not cover how unions are stored. A release
// must therefore not change the parts of a parameter (store.Extractor.Parts) whose texts remain.
func (r *Rows) Sum() int64 {
	sum := fnv.New64a()
	buffer := make([]byte, 8)
	number := func(numbers ...int64) {
		for _, n := range numbers {
			binary.LittleEndian.PutUint64(buffer, uint64(n))
			_, _ = sum.Write(buffer)
		}
	}
	marks := slices.Concat(r.Marks, r.keys)
	slices.Sort(marks)
	number(slices.Compact(marks)...)
	for _, t := range r.tokens {
		number(1, t.sys, t.key, t.code)
	}
	for _, t := range r.references {
		number(2, t.key, t.tgt, t.base)
	}
	var text []byte
	for _, t := range r.texts {
		number(3, t.key, t.more, t.facets, int64(len(t.val)))
		text = append(text[:0], t.val...)
		_, _ = sum.Write(text)
	}
	for _, t := range r.periods {
		number(4, t.key, t.lo, t.hi, t.facets)
	}
	for _, t := range r.points {
		number(5, t.key)
		_, _ = sum.Write([]byte(strconv.FormatFloat(t.lat, 'g', -1, 64) + strconv.FormatFloat(t.lon, 'g', -1, 64)))
	}
	number(6, int64(len(r.Labels)))
	number(r.Labels...)
	number(r.Links...)
	return int64(sum.Sum64())
}

// Without returns the rows of the index tables that other does not have. The result has no Marks,
// Vals, Signature, Present, Paths, Labels or Links, and no rows of ix_str if the database does not have
// that table.
func (r *Rows) Without(other *Rows) Rows {
	missing := Rows{
		tokens:     without(r.tokens, other.tokens, compareTokens),
		references: without(r.references, other.references, compareReferences),
		indexed:    without(r.indexed, other.indexed, compareIndexedTexts),
		earlier:    r.earlier,
		periods:    without(r.periods, other.periods, comparePeriods),
		points:     without(r.points, other.points, comparePoints),
	}
	if r.earlier.WideTexts {
		missing.texts = without(r.texts, other.texts, compareTextRows)
	}
	return missing
}

// WithoutIndexedTexts returns the rows without those of ix_text. These are the stored rows of a
// record whose texts are not in vals and ix_text yet. Vals and Signature are unchanged.
func (r *Rows) WithoutIndexedTexts() Rows {
	rows := *r
	rows.indexed = nil
	return rows
}

// without returns the rows that are not among those in except. Both slices must be sorted by compare, and no
// two rows of a slice may compare as equal. Two rows of different slices that do may still differ in fields
// that compare ignores.
func without[T comparable](rows, except []T, compare func(a, b T) int) []T {
	var missing []T
	for _, row := range rows {
		for len(except) > 0 && compare(except[0], row) < 0 {
			except = except[1:]
		}
		if len(except) == 0 || except[0] != row {
			missing = append(missing, row)
		}
	}
	return missing
}
