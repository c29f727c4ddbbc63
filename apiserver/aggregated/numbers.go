package aggregated

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/jsonwalk"
)

// kubectl and server-side apply decode numbers: they send 18.50 back as 18.5, and a long decimal
// with the precision of a float64. In FHIR the digits of a decimal state its precision (R4
// datatypes.html#decimal). A value that equals the stored value therefore keeps the stored text.

// keepNumbers returns the sent text, with the stored text for each part that has the same value.
// same reports whether the whole values are equal. Objects and arrays of the sent text that are
// invalid or have a name twice are returned as they are, for the parser of resources to refuse.
func keepNumbers(stored, sent jsontext.Value) (text jsontext.Value, same bool) {
	k := keeper{left: maxSearched}
	return k.keep(stored, sent)
}

// maxSearched is how many bytes of items keepNumbers compares, for one written object, to find
// items that moved within an array. The comparisons take up to a second. At the limit, items that
// have not been found keep the text that was sent.
const maxSearched = 8 << 20

// keeper keeps the stored text in one value. left is how many bytes the keeper may still compare to
// find items that moved.
type keeper struct{ left int }

// keep is keepNumbers for a part of the value.
func (k *keeper) keep(stored, sent jsontext.Value) (text jsontext.Value, same bool) {
	if bytes.Equal(stored, sent) {
		return stored, true
	}
	kind := sent.Kind()
	if stored.Kind() != kind {
		return sent, false
	}
	switch kind {
	case jsontext.KindBeginObject:
		return k.keepInMembers(stored, sent)
	case jsontext.KindBeginArray:
		return k.keepInItems(stored, sent)
	default:
		if sameScalar(stored, sent) {
			return stored, true
		}
		return sent, false
	}
}

func (k *keeper) keepInMembers(stored, sent jsontext.Value) (jsontext.Value, bool) {
	before, beforeByName, errStored := namedMembers(stored)
	sentMembers, _, errSent := namedMembers(sent)
	if errStored != nil || errSent != nil {
		return sent, false
	}
	same := len(before) == len(sentMembers)
	text := jsontext.Value{'{'}
	for i, m := range sentMembers {
		value, unchanged := m.Value, false
		if old, known := beforeByName[m.Name]; known {
			value, unchanged = k.keep(old, m.Value)
		}
		same = same && unchanged
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(append(text, m.RawName...), ':'), value...)
	}
	if same {
		return stored, true
	}
	return append(text, '}'), false
}

func (k *keeper) keepInItems(stored, sent jsontext.Value) (jsontext.Value, bool) {
	before, errStored := items(stored)
	sentItems, errSent := items(sent)
	if errStored != nil || errSent != nil {
		return sent, false
	}
	same := len(before) == len(sentItems)
	text := jsontext.Value{'['}
	for i, item := range sentItems {
		value, unchanged := item, false
		if i < len(before) {
			value, unchanged = k.keep(before[i], item)
		}
		same = same && unchanged
		for j := 0; !unchanged && j < len(before) && k.left > 0; j++ {
			if j != i && k.equal(before[j], item) {
				value, unchanged = before[j], true
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

// equal reports whether a stored and a sent value are equal. It returns false if it must compare
// more bytes than are left.
func (k *keeper) equal(stored, sent jsontext.Value) bool {
	if k.left -= len(stored) + len(sent); k.left < 0 {
		return false
	}
	kind := sent.Kind()
	switch {
	case bytes.Equal(stored, sent):
		return true
	case stored.Kind() != kind:
		return false
	case kind == jsontext.KindBeginObject:
		before, beforeByName, errStored := namedMembers(stored)
		sentMembers, _, errSent := namedMembers(sent)
		if errStored != nil || errSent != nil || len(before) != len(sentMembers) {
			return false
		}
		for _, m := range sentMembers {
			if old, known := beforeByName[m.Name]; !known || !k.equal(old, m.Value) {
				return false
			}
		}
		return true
	case kind == jsontext.KindBeginArray:
		before, errStored := items(stored)
		sentItems, errSent := items(sent)
		return errStored == nil && errSent == nil && slices.EqualFunc(before, sentItems, k.equal)
	default:
		return sameScalar(stored, sent)
	}
}

// sameScalar reports whether two values of the same kind, which are not objects or arrays, are equal.
func sameScalar(stored, sent jsontext.Value) bool {
	switch sent.Kind() {
	case jsontext.KindNumber:
		return sameNumber(string(stored), string(sent))
	case jsontext.KindString:
		return unquote(stored) == unquote(sent)
	default:
		return true // null, true or false
	}
}

var errRepeated = errors.New("the object has two members with the same name")

// namedMembers returns the members of an object, and their values by name.
func namedMembers(object jsontext.Value) ([]jsonwalk.Member, map[string]jsontext.Value, error) {
	all, err := members(object)
	byName := make(map[string]jsontext.Value, len(all))
	for _, m := range all {
		byName[m.Name] = m.Value
	}
	if err == nil && len(byName) < len(all) {
		err = errRepeated
	}
	return all, byName, err
}

// members returns the members of an object, up to the first syntax error. Two members can have the
// same name.
func members(object jsontext.Value) ([]jsonwalk.Member, error) {
	var all []jsonwalk.Member
	for m, err := range jsonwalk.Members(object, jsontext.AllowDuplicateNames(true)) {
		if err != nil {
			return all, err
		}
		all = append(all, m)
	}
	return all, nil
}

// items returns the items of an array.
func items(array jsontext.Value) ([]jsontext.Value, error) {
	var all []jsontext.Value
	for item, err := range jsonwalk.Elements(array, jsontext.AllowDuplicateNames(true)) {
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}

func unquote(text jsontext.Value) string {
	value, _ := jsontext.AppendUnquote(nil, text)
	return string(value)
}

// roundTrip are the precisions with which clients write a float64: the fewest digits that identify
// it, and 17 digits, which always do.
var roundTrip = []int{-1, 16}

// sameNumber reports whether the sent number equals the stored number, or is the stored number
// rounded to a float64.
func sameNumber(stored, sent string) bool {
	if exactly(stored, sent) {
		return true
	}
	rounded, err := strconv.ParseFloat(stored, 64)
	return err == nil && slices.ContainsFunc(roundTrip, func(precision int) bool {
		return exactly(strconv.FormatFloat(rounded, 'e', precision, 64), sent)
	})
}

// exactly reports whether two decimals are equal. Its cost does not depend on their exponents.
func exactly(a, b string) bool {
	x, okX := parseDecimal(a)
	y, okY := parseDecimal(b)
	return okX && okY && x == y
}

// decimal is the number 0.digits × 10^exponent. Equal numbers have equal fields: digits neither begins
// nor ends with 0, and is empty only for the number 0, whose other fields have their zero values.
type decimal struct {
	negative bool
	digits   string
	exponent int64
}

// parseDecimal returns the value of a number in JSON. It reports false if the exponent is too large.
func parseDecimal(number string) (decimal, bool) {
	mantissa, exponentText, hasExponent := strings.Cut(strings.ToLower(number), "e")
	var exponent int64
	if hasExponent {
		var err error
		if exponent, err = strconv.ParseInt(exponentText, 10, 32); err != nil {
			return decimal{}, false
		}
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	integer, fraction, _ := strings.Cut(mantissa, ".")
	all := integer + fraction
	significant := strings.TrimLeft(all, "0")
	if significant == "" {
		return decimal{}, true
	}
	leadingZeros := len(all) - len(significant)
	return decimal{negative, strings.TrimRight(significant, "0"), exponent + int64(len(integer)-leadingZeros)}, true
}
