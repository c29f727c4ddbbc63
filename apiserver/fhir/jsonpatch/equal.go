package jsonpatch

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// equal reports whether two values are equal: strings by their characters, numbers by their value,
// objects without regard to the order of members. RFC 6902 §4.6.
func equal(a, b *node) bool {
	if a.text != nil && bytes.Equal(a.text, b.text) {
		return true
	}
	kind := a.kind()
	if kind != b.kind() {
		return false
	}
	switch kind {
	case jsontext.KindString:
		return unquote(a.text) == unquote(b.text)
	case jsontext.KindNumber:
		return canonicalNumber(string(a.text)) == canonicalNumber(string(b.text))
	case jsontext.KindBeginObject, jsontext.KindBeginArray:
		a.expand()
		b.expand()
		if len(a.children) != len(b.children) {
			return false
		}
		if kind == jsontext.KindBeginObject {
			return equalMembers(a.children, b.children)
		}
		for i := range a.children {
			if !equal(a.children[i].value, b.children[i].value) {
				return false
			}
		}
	}
	return true // null, true and false have no content
}

// equalMembers compares objects with the same number of members. Names are unique in valid JSON.
func equalMembers(a, b []child) bool {
	byName := make(map[string]*node, len(a))
	for _, p := range a {
		byName[p.name] = p.value
	}
	for _, p := range b {
		if other := byName[p.name]; other == nil || !equal(other, p.value) {
			return false
		}
	}
	return true
}

func unquote(text []byte) string {
	value, _ := jsontext.AppendUnquote(nil, text) // the text is valid
	return string(value)
}

// canonicalNumber returns the same text for equal JSON numbers: digits without zeros at either end,
// and a power of ten. A number whose power overflows is returned unchanged.
func canonicalNumber(text string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	unsigned := strings.TrimPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(unsigned, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0"
	}
	var power int64
	if exponent != "" {
		var err error
		if power, err = strconv.ParseInt(exponent, 10, 64); err != nil || power < math.MinInt64/2 || power > math.MaxInt64/2 {
			return text
		}
	}
	kept := strings.TrimRight(digits, "0")
	power += int64(len(digits) - len(kept) - len(fraction))
	return mantissa[:len(mantissa)-len(unsigned)] + kept + "e" + strconv.FormatInt(power, 10)
}
