package r4

import "bytes"

// The functions of this file require valid JSON numbers. FHIR's integers have no fraction, no
// exponent, and no minus before a zero.

const (
	maxInteger = 1<<31 - 1
	minInteger = -1 << 31
)

func isInteger(text []byte) bool {
	n, ok := parseInteger(text)
	return ok && minInteger <= n && n <= maxInteger
}

func isUnsignedInt(text []byte) bool {
	n, ok := parseInteger(text)
	return ok && text[0] != '-' && n <= maxInteger
}

func isPositiveInt(text []byte) bool {
	return isUnsignedInt(text) && text[0] != '0'
}

func parseInteger(text []byte) (int64, bool) {
	digits := bytes.TrimPrefix(text, []byte{'-'})
	negative := len(digits) < len(text)
	if len(digits) == 0 || len(digits) > 10 || digits[0] == '0' && (negative || len(digits) > 1) {
		return 0, false
	}
	var n int64
	for _, c := range digits {
		if !isDigit(c) {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}

// decimal is a parsed JSON number: 0.digits times 10 to the exponent. The digits are not expanded,
// so that 1e999999999 needs little memory.
type decimal struct {
	negative bool
	digits   []byte // without leading and trailing zeros; empty for zero
	exponent int
}

// maxExponent is the magnitude at which parsing of an exponent stops. Different numbers with larger
// exponents may compare as equal.
const maxExponent = 1 << 40

func parseDecimal(text []byte) decimal {
	var d decimal
	rest, negative := bytes.CutPrefix(text, []byte{'-'})
	d.negative = negative
	mantissa, exponent := rest, []byte(nil)
	if e := bytes.IndexAny(rest, "eE"); e >= 0 {
		mantissa, exponent = rest[:e], rest[e+1:]
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte{'.'})
	d.exponent = len(whole) + parseExponent(exponent)
	d.digits = append(bytes.Clone(whole), fraction...)
	for len(d.digits) > 0 && d.digits[0] == '0' {
		d.digits = d.digits[1:]
		d.exponent--
	}
	d.digits = bytes.TrimRight(d.digits, "0")
	if len(d.digits) == 0 {
		return decimal{}
	}
	return d
}

func parseExponent(text []byte) int {
	digits := bytes.TrimLeft(text, "+-")
	n := 0
	for _, c := range digits {
		if n < maxExponent {
			n = n*10 + int(c-'0')
		}
	}
	if len(text) > 0 && text[0] == '-' {
		return -n
	}
	return n
}

// compare returns -1, 0 or 1, as d is less than, equal to or greater than other.
func (d decimal) compare(other decimal) int {
	if d.sign() != other.sign() {
		if d.sign() < other.sign() {
			return -1
		}
		return 1
	}
	order := bytes.Compare(d.digits, other.digits)
	switch {
	case d.exponent < other.exponent:
		order = -1
	case d.exponent > other.exponent:
		order = 1
	}
	return order * d.sign()
}

func (d decimal) sign() int {
	switch {
	case len(d.digits) == 0:
		return 0
	case d.negative:
		return -1
	default:
		return 1
	}
}

// isWhole reports whether the number is an integer, in any notation.
func (d decimal) isWhole() bool { return len(d.digits) <= d.exponent || len(d.digits) == 0 }
