package indexrow

import (
	"math"

	"github.com/paddock-health/paddock/apiserver/store"
)

// HasCommonBits is the bit of the column present that shows that the column has the bits of common
// codes. It lacks the bit in tombstones, and in rows that releases before server level 3 wrote.
const HasCommonBits int64 = math.MinInt64

// maxCommonCodes is the maximum number of common codes of a type. Their bits in the column present are
// the highest ones below HasCommonBits.
const maxCommonCodes = 5

// CommonBit returns the bit that the column present of a record has if the record meets a condition on a
// common code. It returns 0 for other conditions. codes are the common codes of the record's type.
func CommonBit(codes []store.CommonCode, is store.TokenIs) int64 {
	for n, c := range codes {
		if is.Param == c.Param && is.Code != nil && *is.Code == c.Token.Code && (is.System == nil || *is.System == c.Token.System) {
			return 1 << (62 - n)
		}
	}
	return 0
}

// CommonMark is the mark and the bit of a common code in rows of res of a type.
type CommonMark struct {
	Type      string
	Mark, Bit int64
}

// CommonMarks returns those of all common codes of some types.
func (x *Indexer) CommonMarks(types []string) (all []CommonMark) {
	for _, typeName := range types {
		codes := x.Extractor.CommonCodes(typeName)
		for _, c := range codes {
			is := store.TokenIs{Param: c.Param, System: &c.Token.System, Code: &c.Token.Code}
			all = append(all, CommonMark{typeName, x.Hash.FacetMark(x.Hash.Param(typeName, c.Param), is), CommonBit(codes, is)})
		}
	}
	return all
}
