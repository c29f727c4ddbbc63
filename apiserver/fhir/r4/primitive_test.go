package r4

import (
	"bytes"
	"encoding/base64"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// patterns are R4's own, from the definitions of its primitive types.
var patterns = map[typeIndex]*regexp.Regexp{
	typeBase64Binary: regexp.MustCompile(`^(\s*([0-9a-zA-Z\+/=]){4}\s*)+$`),
	typeCanonical:    regexp.MustCompile(`^\S*$`),
	typeCode:         regexp.MustCompile(`^[^\s]+(\s[^\s]+)*$`),
	typeDate:         regexp.MustCompile(`^([0-9]([0-9]([0-9][1-9]|[1-9]0)|[1-9]00)|[1-9]000)(-(0[1-9]|1[0-2])(-(0[1-9]|[1-2][0-9]|3[0-1]))?)?$`),
	typeDateTime:     regexp.MustCompile(`^([0-9]([0-9]([0-9][1-9]|[1-9]0)|[1-9]00)|[1-9]000)(-(0[1-9]|1[0-2])(-(0[1-9]|[1-2][0-9]|3[0-1])(T([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?(Z|(\+|-)((0[0-9]|1[0-3]):[0-5][0-9]|14:00)))?)?)?$`),
	typeID:           regexp.MustCompile(`^[A-Za-z0-9\-\.]{1,64}$`),
	typeInstant:      regexp.MustCompile(`^([0-9]([0-9]([0-9][1-9]|[1-9]0)|[1-9]00)|[1-9]000)-(0[1-9]|1[0-2])-(0[1-9]|[1-2][0-9]|3[0-1])T([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?(Z|(\+|-)((0[0-9]|1[0-3]):[0-5][0-9]|14:00))$`),
	typeInteger:      regexp.MustCompile(`^-?([0]|([1-9][0-9]*))$`),
	typeMarkdown:     regexp.MustCompile(`^[ \r\n\t\S]+$`),
	typeOID:          regexp.MustCompile(`^urn:oid:[0-2](\.(0|[1-9][0-9]*))+$`),
	typePositiveInt:  regexp.MustCompile(`^[1-9][0-9]*$`),
	typeString:       regexp.MustCompile(`^[ \r\n\t\S]+$`),
	typeTime:         regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?$`),
	typeUnsignedInt:  regexp.MustCompile(`^([0]|([1-9][0-9]*))$`),
	typeURI:          regexp.MustCompile(`^\S*$`),
	typeURL:          regexp.MustCompile(`^\S*$`),
	typeUUID:         regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`),
}

// isStricter says in what a matcher may refuse what the pattern allows.
func isStricter(typ typeIndex, text string) bool {
	control := strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\n\r", r) })
	switch typ {
	case typeDate, typeDateTime, typeInstant:
		_, err := time.Parse(time.DateOnly, text[:min(len(text), 10)])
		return err != nil // no such day
	case typeBase64Binary:
		_, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
		return err != nil // padding that is none, or bits that nothing needs
	case typeCode:
		return control || strings.ContainsAny(text, "\t\n\r")
	case typeInteger, typePositiveInt, typeUnsignedInt:
		n, ok := new(big.Int).SetString(text, 10)
		return text == "-0" || ok && n.Cmp(big.NewInt(maxInteger)) > 0 || ok && n.Cmp(big.NewInt(minInteger)) < 0
	case typeString, typeMarkdown:
		return control || utf8.RuneCountInString(text) > maxString
	default:
		return control || text == ""
	}
}

// FuzzPrimitives compares the matchers with R4's patterns.
func FuzzPrimitives(f *testing.F) {
	for _, seed := range []string{
		"", " ", "a", "2020", "2020-02-30", "2020-02-29T10:00:00.5+14:00", "1900-02-29", "23:59:60", "urn:oid:1.2.3", "AAAA QQ==",
		"urn:uuid:c757873d-ec9a-4326-a141-556f43239520", "two words", "-0", "2147483648", "1.50", "\x00", "é",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		for typ, pattern := range patterns {
			ours, theirs := primitives[typ].valid([]byte(text)), pattern.MatchString(text)
			if typ == typeBase64Binary && ours != theirs && ours {
				theirs = pattern.MatchString(strings.Join(strings.Fields(text), "")) // white space within a group
			}
			if ours && !theirs {
				t.Errorf("%s takes %q", types[typ].name, text)
			}
			if theirs && !ours && !isStricter(typ, text) {
				t.Errorf("%s does not take %q", types[typ].name, text)
			}
		}
	})
}

// FuzzDecimal compares the comparison of decimals with exact arithmetic.
func FuzzDecimal(f *testing.F) {
	f.Add("1.0", "1")
	f.Add("-1e3", "-999.9e-1")
	f.Add("0", "-0.00e5")
	number := regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$`)
	f.Fuzz(func(t *testing.T, a, b string) {
		if !number.MatchString(a) || !number.MatchString(b) {
			return
		}
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		if got, want := parseDecimal([]byte(a)).compare(parseDecimal([]byte(b))), x.Cmp(y); got != want {
			t.Errorf("%s and %s compare as %d, want %d", a, b, got, want)
		}
		if got, want := parseDecimal([]byte(a)).isWhole(), x.IsInt(); got != want {
			t.Errorf("%s is whole: %v, want %v", a, got, want)
		}
	})
}

func TestSurelyAfter(t *testing.T) {
	tests := map[[2]string]bool{
		{"2021", "2020"}:                                      true,
		{"2020", "2020"}:                                      false,
		{"2020-02", "2020"}:                                   false,
		{"2020-02", "2020-01-31"}:                             true,
		{"2020-01-02", "2020-01-01T23:59:59Z"}:                false, // in another zone
		{"2020-01-03", "2020-01-01T00:00:00Z"}:                true,
		{"2020-01-01T10:00:00Z", "2020-01-01T11:00:00+01:00"}: false,
		{"2020-01-01T10:00:01Z", "2020-01-01T11:00:00+01:00"}: true,
		{"2020-01-01T10:00:00.5Z", "2020-01-01T10:00:00Z"}:    true,
		{"2020-01-01T00:00:00Z", "2020-01-01"}:                false,
		{"0001", "9999"}:                                      false,
	}
	for pair, want := range tests {
		a, _ := parseMoment([]byte(pair[0]))
		b, _ := parseMoment([]byte(pair[1]))
		if got := a.surelyAfter(b); got != want {
			t.Errorf("%s after %s: %v", pair[0], pair[1], got)
		}
	}
}

func TestLongStrings(t *testing.T) {
	if !isString(bytes.Repeat([]byte("é"), maxString)) || isString(bytes.Repeat([]byte("é"), maxString+1)) {
		t.Error("strings are bounded by characters")
	}
}
