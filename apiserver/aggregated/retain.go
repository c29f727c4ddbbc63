package aggregated

import (
	"bytes"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// kubectl and server-side apply decode numbers: 18.50 comes back as 18.5, and of a long
// decimal only what a float64 has. In FHIR the digits tell how exact a value is. So what
// has the same value as what is stored stays as it is stored.

// retain puts the stored text of a value in the place of what was sent, wherever the two
// have the same value. Same reports whether they do as a whole. Both are valid JSON.
func retain(stored, sent jsontext.Value) (text jsontext.Value, same bool) {
	if bytes.Equal(stored, sent) {
		return stored, true
	}
	kind := sent.Kind()
	if stored.Kind() != kind {
		return sent, false
	}
	switch kind {
	case jsontext.KindBeginObject:
		return retainMembers(stored, sent)
	case jsontext.KindBeginArray:
		return retainItems(stored, sent)
	case jsontext.KindNumber:
		same = sameNumber(string(stored), string(sent))
	case jsontext.KindString:
		same = unquote(stored) == unquote(sent)
	}
	if same {
		return stored, true
	}
	return sent, false
}

func retainMembers(stored, sent jsontext.Value) (jsontext.Value, bool) {
	before, sentMembers := members(stored), members(sent)
	same := len(before) == len(sentMembers)
	text := jsontext.Value{'{'}
	for i, m := range sentMembers {
		value, unchanged := m.value, false
		if at := slices.IndexFunc(before, func(b member) bool { return b.key() == m.key() }); at >= 0 {
			value, unchanged = retain(before[at].value, m.value)
		}
		same = same && unchanged
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(append(text, m.name...), ':'), value...)
	}
	if same {
		return stored, true
	}
	return append(text, '}'), false
}

// mostCompared bounds how many pairs of items are compared to find those that moved.
const mostCompared = 10_000

func retainItems(stored, sent jsontext.Value) (jsontext.Value, bool) {
	before, sentItems := items(stored), items(sent)
	same := len(before) == len(sentItems)
	moved := len(before)*len(sentItems) <= mostCompared
	text := jsontext.Value{'['}
	for i, item := range sentItems {
		value, unchanged := item, false
		if i < len(before) {
			value, unchanged = retain(before[i], item)
		}
		same = same && unchanged
		for j := 0; moved && !unchanged && j < len(before); j++ {
			if found, equal := retain(before[j], item); equal {
				value, unchanged = found, true
			}
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, value...)
	}
	if same {
		return stored, true
	}
	return append(text, ']'), false
}

// member is a member of an object; name is in quotes.
type member struct{ name, value jsontext.Value }

func (m member) key() string { return unquote(m.name) }

func members(object jsontext.Value) []member {
	var all []member
	each(object, func(d *jsontext.Decoder) error {
		name, err := d.ReadValue()
		if err != nil {
			return err
		}
		m := member{name: name.Clone()}
		value, err := d.ReadValue()
		m.value = value.Clone()
		all = append(all, m)
		return err
	})
	return all
}

func items(array jsontext.Value) []jsontext.Value {
	var all []jsontext.Value
	each(array, func(d *jsontext.Decoder) error {
		value, err := d.ReadValue()
		all = append(all, value.Clone())
		return err
	})
	return all
}

// each reads what is in an object or array, up to the first fault: a text that is not
// valid is for the reader of resources to tell of.
func each(text jsontext.Value, read func(*jsontext.Decoder) error) {
	decoder := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	if _, err := decoder.ReadToken(); err != nil {
		return
	}
	for {
		if kind := decoder.PeekKind(); kind == jsontext.KindEndObject || kind == jsontext.KindEndArray || kind == jsontext.KindInvalid {
			return
		}
		if err := read(decoder); err != nil {
			return
		}
	}
}

func unquote(text jsontext.Value) string {
	value, _ := jsontext.AppendUnquote(nil, text)
	return string(value)
}

// roundTripDigits are the most digits with which a float64 is written.
const roundTripDigits = 17

// sameNumber reports whether a number is the stored one: by its value, or as a float64 is
// written that was read from it.
func sameNumber(stored, sent string) bool {
	a, errA := strconv.ParseFloat(stored, 64)
	b, errB := strconv.ParseFloat(sent, 64)
	if errA != nil || errB != nil || a != b {
		return false
	}
	return digits(sent) <= roundTripDigits || exactly(stored, sent)
}

// digits counts the significant digits of a number.
func digits(number string) int {
	mantissa, _, _ := strings.Cut(strings.ToLower(number), "e")
	mantissa = strings.Replace(strings.TrimPrefix(mantissa, "-"), ".", "", 1)
	return len(strings.Trim(mantissa, "0"))
}

// exactly compares decimals that float64 does not tell apart: their powers of ten are
// those of a float64, so that writing them out is cheap.
func exactly(a, b string) bool {
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	return okX && okY && x.Cmp(y) == 0
}
