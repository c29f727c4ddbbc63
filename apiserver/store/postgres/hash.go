package postgres

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/dchest/siphash"

	"github.com/paddock-health/paddock/apiserver/store"
)

const hashKeySize = 16

// hasher makes the numbers that index rows hold instead of names: SipHash of 64 bits under
// a key that the database holds, so that nobody outside can choose values that collide. By
// chance, two of a million different values of a site do with odds of 1 in 37 million, and
// only together with the system does that show: matches are not compared once more.
type hasher struct{ k0, k1 uint64 }

func newHasher(key []byte) (hasher, error) {
	if len(key) != hashKeySize {
		return hasher{}, fmt.Errorf("read the site's hash key: it has %d bytes, not %d", len(key), hashKeySize)
	}
	return hasher{binary.LittleEndian.Uint64(key), binary.LittleEndian.Uint64(key[8:])}, nil
}

// of hashes parts, so that no two lists of parts read the same.
func (h hasher) of(kind byte, parts ...string) int64 {
	var buffer [256]byte
	text := append(buffer[:0], kind)
	for _, part := range parts {
		text = binary.AppendUvarint(text, uint64(len(part)))
		text = append(text, part...)
	}
	return int64(siphash.Hash(h.k0, h.k1, text))
}

// param is the key of a parameter of a type.
func (h hasher) param(typeName, param string) int64 { return h.of('k', typeName, param) }

func (h hasher) code(code string) int64 { return h.of('c', code) }

func (h hasher) system(system string) int64 { return h.of('s', system) }

// systemMark is what a record is marked with that has tokens of the system.
func (h hasher) systemMark(key int64, system string) int64 {
	return h.of('y', string(binary.LittleEndian.AppendUint64(nil, uint64(key))), system)
}

// facetMark is what a record is marked with that has a code of a facet.
func (h hasher) facetMark(key int64, is store.TokenIs) int64 {
	key8 := string(binary.LittleEndian.AppendUint64(nil, uint64(key)))
	if is.System == nil {
		return h.of('f', key8, *is.Code)
	}
	return h.of('g', key8, *is.System, *is.Code)
}

// self is what refers to a record of the site.
func (h hasher) self(typeName, id string) int64 { return h.of('r', typeName, strings.ToLower(id)) }

func (h hasher) line(line string) int64 { return h.of('l', line) }

// base is 0 for this site.
func (h hasher) base(base string) int64 {
	if base == "" {
		return 0
	}
	return h.of('b', base)
}

// target is what a reference leads to, and from which base. One without a type is to
// whatever its URL names, never to a record of this site.
func (h hasher) target(r store.Reference) (target, base int64) {
	if r.Type == "" {
		return h.of('u', r.Base, r.ID), h.of('v', r.Base)
	}
	return h.self(r.Type, r.ID), h.base(r.Base)
}

// pairs of a token condition or a token: which of its parts count, and those.
func form(is store.TokenIs) (mask, system, code string) {
	if is.System != nil {
		mask, system = "s", *is.System
	}
	if is.Code != nil {
		mask, code = mask+"c", *is.Code
	}
	return mask, system, code
}

// pair is the code of a pair condition.
func (h hasher) pair(is store.PairIs) int64 {
	mask1, system1, code1 := form(is.First)
	mask2, system2, code2 := form(is.Second)
	return h.of('p', mask1, system1, code1, mask2, system2, code2)
}

// pairForms are the codes of all conditions that a pair meets.
func (h hasher) pairForms(p store.Pair) []int64 {
	var forms []int64
	for _, first := range tokenForms(p.First) {
		for _, second := range tokenForms(p.Second) {
			forms = append(forms, h.pair(store.PairIs{First: first, Second: second}))
		}
	}
	return forms
}

func tokenForms(t store.Token) []store.TokenIs {
	return []store.TokenIs{{}, {System: &t.System}, {Code: &t.Code}, {System: &t.System, Code: &t.Code}}
}
