package jsonpatch

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// equal compares two values as RFC 6902 §4.6 has it: strings by their characters,
// numbers by their value, objects without regard to order.
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
		return number(string(a.text)) == number(string(b.text))
	case jsontext.KindBeginObject, jsontext.KindBeginArray:
		a.open()
		b.open()
		if len(a.parts) != len(b.parts) {
			return false
		}
		if kind == jsontext.KindBeginObject {
			return equalMembers(a.parts, b.parts)
		}
		for i := range a.parts {
			if !equal(a.parts[i].value, b.parts[i].value) {
				return false
			}
		}
	}
	return true // of null, true and false there is one each
}

// equalMembers compares as many members as there are in either object; names are
// unique in valid JSON.
func equalMembers(a, b []part) bool {
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

// number writes a JSON number in a way that equal numbers share: digits without
// zeros at either end, and a power of ten. Numbers with a power beyond int64, which
// no program means, are left as they are.
func number(text string) string {
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
