package aggregated

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/jsonwalk"
)

// kubectl and server-side apply decode numbers: they send 18.50 back as 18.5, and a long decimal
// with the precision of a float64. In FHIR the digits of a decimal state its precision (R4
// datatypes.html#decimal). A value that equals the stored one therefore keeps the stored text.

// keepNumbers returns the sent text, with the stored text for each part that has the same value.
// same reports whether the whole values are equal. Both texts must be valid JSON.
func keepNumbers(stored, sent jsontext.Value) (text jsontext.Value, same bool) {
	if bytes.Equal(stored, sent) {
		return stored, true
	}
	kind := sent.Kind()
	if stored.Kind() != kind {
		return sent, false
	}
	switch kind {
	case jsontext.KindBeginObject:
		return keepInMembers(stored, sent)
	case jsontext.KindBeginArray:
		return keepInItems(stored, sent)
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

func keepInMembers(stored, sent jsontext.Value) (jsontext.Value, bool) {
	before, sentMembers := members(stored), members(sent)
	same := len(before) == len(sentMembers)
	text := jsontext.Value{'{'}
	for i, m := range sentMembers {
		value, unchanged := m.Value, false
		if at := slices.IndexFunc(before, func(b jsonwalk.Member) bool { return b.Name == m.Name }); at >= 0 {
			value, unchanged = keepNumbers(before[at].Value, m.Value)
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

// maxCompared is how many pairs of items of two arrays are compared to find those that moved. In
// longer arrays no items that moved are found.
const maxCompared = 10_000

func keepInItems(stored, sent jsontext.Value) (jsontext.Value, bool) {
	before, sentItems := items(stored), items(sent)
	same := len(before) == len(sentItems)
	moved := len(before)*len(sentItems) <= maxCompared
	text := jsontext.Value{'['}
	for i, item := range sentItems {
		value, unchanged := item, false
		if i < len(before) {
			value, unchanged = keepNumbers(before[i], item)
		}
		same = same && unchanged
		for j := 0; moved && !unchanged && j < len(before); j++ {
			if found, equal := keepNumbers(before[j], item); equal {
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

// members returns the members of an object, up to the first syntax error, which the parser of
// resources reports.
func members(object jsontext.Value) []jsonwalk.Member {
	var all []jsonwalk.Member
	for m, err := range jsonwalk.Members(object, jsontext.AllowDuplicateNames(true)) {
		if err == nil {
			all = append(all, m)
		}
	}
	return all
}

// items returns the items of an array, up to the first syntax error.
func items(array jsontext.Value) []jsontext.Value {
	var all []jsontext.Value
	for item, err := range jsonwalk.Elements(array, jsontext.AllowDuplicateNames(true)) {
		if err == nil {
			all = append(all, item)
		}
	}
	return all
}

func unquote(text jsontext.Value) string {
	value, _ := jsontext.AppendUnquote(nil, text)
	return string(value)
}

// roundTripDigits is the maximum number of digits with which a float64 is written.
const roundTripDigits = 17

// sameNumber reports whether a number equals the stored one, or is the stored one rounded to a
// float64.
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
