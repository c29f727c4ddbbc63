package indexrow

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/dchest/siphash"

	"github.com/paddock-health/paddock/apiserver/store"
)

// HashKeySize is the length of the secret key of a Hasher in bytes.
const HashKeySize = 16

// Hasher computes the numbers that index rows have instead of names and codes. They are 64-bit
// SipHash values with a secret key, which is stored in the database, so that clients cannot choose
// values that collide. The odds that any two of a million values of a site collide are 1 in 37
// million. Searches do not compare the original values, so a collision adds a wrong match. In a
// search with code and system, both hashes must collide.
type Hasher struct{ k0, k1 uint64 }

// NewHasher returns the Hasher of a site. key is the secret key of the site. It returns an error if
// key does not have HashKeySize bytes.
func NewHasher(key []byte) (Hasher, error) {
	if len(key) != HashKeySize {
		return Hasher{}, fmt.Errorf("read hash key of site: the key has %d bytes; it must have %d", len(key), HashKeySize)
	}
	return Hasher{binary.LittleEndian.Uint64(key), binary.LittleEndian.Uint64(key[8:])}, nil
}

// Of returns the hash of a list of parts. kind separates hashes of different purposes. Each part is
// preceded by its length, so that lists with different boundaries between parts have different
// hashes.
func (h Hasher) Of(kind byte, parts ...string) int64 {
	var buffer [256]byte
	text := append(buffer[:0], kind)
	for _, part := range parts {
		text = binary.AppendUvarint(text, uint64(len(part)))
		text = append(text, part...)
	}
	return int64(siphash.Hash(h.k0, h.k1, text))
}

// Param returns the hash of a record type and a search parameter, which is the column key.
func (h Hasher) Param(typeName, param string) int64 { return h.Of('k', typeName, param) }

// Params returns the column key of a search parameter, and those of its parts (store.Extractor.Parts).
func (h Hasher) Params(typeName, param string, parts []string) []int64 {
	keys := []int64{h.Param(typeName, param)}
	for _, part := range parts {
		keys = append(keys, h.Param(typeName, part))
	}
	return keys
}

// Code returns the hash of a token's code.
func (h Hasher) Code(code string) int64 { return h.Of('c', code) }

// System returns the hash of a token's system.
func (h Hasher) System(system string) int64 { return h.Of('s', system) }

// SystemMark returns the mark (column marks) of records with a token of a system. key is the key
// (Param) of the search parameter.
func (h Hasher) SystemMark(key int64, system string) int64 {
	return h.Of('y', string(binary.LittleEndian.AppendUint64(nil, uint64(key))), system)
}

// FacetMark returns the mark (column marks) of records with a code of a facet, of any system if is.System
// is nil. key is the key (Param) of the search parameter. is.Code must not be nil.
func (h Hasher) FacetMark(key int64, is store.TokenIs) int64 {
	key8 := string(binary.LittleEndian.AppendUint64(nil, uint64(key)))
	if is.System == nil {
		return h.Of('f', key8, *is.Code)
	}
	return h.Of('g', key8, *is.System, *is.Code)
}

// Label returns the hash of a label.
func (h Hasher) Label(name string) int64 { return h.Of('m', name) }

// Self returns the hash of type and id of a record of the site, which identifies it in the columns
// self and tgt.
func (h Hasher) Self(typeName, id string) int64 { return h.Of('r', typeName, strings.ToLower(id)) }

// Line returns the hash of a line that records claim.
func (h Hasher) Line(line string) int64 { return h.Of('l', line) }

// Base returns the hash of a base URL, or 0 for the empty URL, which stands for this site.
func (h Hasher) Base(base string) int64 {
	if base == "" {
		return 0
	}
	return h.Of('b', base)
}

// Target returns the columns tgt and base of a reference: the hash of the record to which it
// refers, and the hash of its base URL. A reference without a type is to a URL, not to a record of
// this site.
func (h Hasher) Target(r store.Reference) (target, base int64) {
	if r.Type == "" {
		return h.Of('u', r.Base, r.ID), h.Of('v', r.Base)
	}
	return h.Self(r.Type, r.ID), h.Base(r.Base)
}

// mentions returns the key of references in records of a type that belong to no parameter.
func (h Hasher) mentions(typeName string) int64 { return h.Of('m', typeName) }

// tokenForm returns which of system and code a token condition has, as text, and their values.
func tokenForm(is store.TokenIs) (mask, system, code string) {
	if is.System != nil {
		mask, system = "s", *is.System
	}
	if is.Code != nil {
		mask, code = mask+"c", *is.Code
	}
	return mask, system, code
}

// Pair returns the hash of a condition on pairs. The index rows of pairs that meet the condition
// have it in the column code.
func (h Hasher) Pair(is store.PairIs) int64 {
	mask1, system1, code1 := tokenForm(is.First)
	mask2, system2, code2 := tokenForm(is.Second)
	return h.Of('p', mask1, system1, code1, mask2, system2, code2)
}

// pairForms returns the hashes (Pair) of all conditions that a pair meets.
func (h Hasher) pairForms(p store.Pair) []int64 {
	var forms []int64
	for _, first := range tokenForms(p.First) {
		for _, second := range tokenForms(p.Second) {
			forms = append(forms, h.Pair(store.PairIs{First: first, Second: second}))
		}
	}
	return forms
}

func tokenForms(t store.Token) []store.TokenIs {
	return []store.TokenIs{{}, {System: &t.System}, {Code: &t.Code}, {System: &t.System, Code: &t.Code}}
}
