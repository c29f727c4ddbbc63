package indexrow

import "github.com/paddock-health/paddock/apiserver/store"

// Signature is a Bloom filter of a record: the columns sig, sig2 and sig3. It has the bits of the
// beginning of each text and those of each facet. If a record meets a condition, its signature has
// all bits of the signature of that condition. The reverse need not be so. The columns are in the
// index of res in the order of creation. So a scan reads only the rows of records that likely
// match. Rows.Sum does not cover signatures: a release that computes them in another way must
// reindex all records.
type Signature [3]int64

// signatureBits is the number of bits of a signature.
const signatureBits = 192

// With returns a signature with the bits of s and of other.
func (s Signature) With(other Signature) Signature {
	return Signature{s[0] | other[0], s[1] | other[1], s[2] | other[2]}
}

// at returns a signature with one bit. hash decides which bit.
func at(hash uint64) (s Signature) {
	bit := hash % signatureBits
	s[bit/64] = 1 << (bit % 64)
	return s
}

// TextSignature returns the signature of the texts of a key that begin with a prefix. It has three bits
// for the first byte and one for the first two bytes. It is empty for the empty prefix.
func TextSignature(key int32, prefix string) (s Signature) {
	prefix = validText(prefix)
	if prefix == "" {
		return s
	}
	first := spread(uint64(key)<<8 | uint64(prefix[0]))
	s = at(first).With(at(first >> 20)).With(at(first >> 40))
	if len(prefix) > 1 {
		s = s.With(at(spread(uint64(key)<<16 | uint64(prefix[0])<<8 | uint64(prefix[1]) | 1<<63)))
	}
	return s
}

// FacetSignature returns the signature of records with a code of a facet, of any system. key is the
// key (Param) of the search parameter.
func (h Hasher) FacetSignature(key int64, code string) Signature {
	return facetSignature(h.FacetMark(key, store.TokenIs{Code: &code}))
}

// facetSignature returns the signature of records with a facet mark, which is that of a code of any system.
func facetSignature(mark int64) Signature {
	return at(uint64(mark)).With(at(uint64(mark) >> 32))
}

// PresenceBit returns the bit of a parameter in the column present, which is in the same index as the
// signature, or 0 if the parameter has none. ordinal is that of store.Extractor. Unlike signatures,
// each bit is exact. Rows.Sum does not cover them either.
func PresenceBit(ordinal int) int64 {
	if ordinal < 0 || ordinal >= 63-maxCommonCodes {
		return 0
	}
	return 1 << ordinal
}

// spread returns a hash of a number in which each bit depends on all bits of the number. It is the
// last step of SplitMix64 (Steele, Lea and Flood, 2014).
func spread(n uint64) uint64 {
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}
