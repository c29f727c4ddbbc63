package aggregated

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestKeepNumbers(t *testing.T) {
	tests := map[string]struct {
		stored, sent, want string
		same               bool
	}{
		"the same bytes":                    {`{"a":1}`, `{"a":1}`, `{"a":1}`, true},
		"another order, other spaces":       {`{ "a": 1, "b":"\u00fc" }`, `{"b":"ü","a":1}`, `{ "a": 1, "b":"\u00fc" }`, true},
		"a decimal with fewer zeros":        {`[18.50]`, `[18.5]`, `[18.50]`, true},
		"an exponent":                       {`1e2`, `100`, `1e2`, true},
		"a float64 of a long decimal":       {`0.12345678901234567890`, `0.12345678901234568`, `0.12345678901234567890`, true},
		"another long decimal":              {`0.12345678901234567890`, `0.12345678901234567891`, `0.12345678901234567891`, false},
		"a long decimal with an exponent":   {`[120.345678901234567890, -0.0]`, `[12.0345678901234567890e+1, 0]`, `[120.345678901234567890, -0.0]`, true},
		"a long decimal of the other sign":  {`0.12345678901234567890`, `-0.12345678901234567890`, `-0.12345678901234567890`, false},
		"a float64 in 17 digits":            {`0.1`, `0.10000000000000001`, `0.1`, true},
		"another number, one float64":       {`9007199254740992`, `9007199254740993`, `9007199254740993`, false},
		"more digits, one float64":          {`0.3`, `0.30000000000000001`, `0.30000000000000001`, false},
		"no float64 but 0":                  {`0.0`, `123456789012345678e-999970`, `123456789012345678e-999970`, false},
		"an exponent beyond an int":         {`0.0`, `123456789012345678e-99999999999999999999`, `123456789012345678e-99999999999999999999`, false},
		"zero in many digits":               {`0.0`, `0.00000000000000000000e-5`, `0.0`, true},
		"another number":                    {`18.50`, `18.51`, `18.51`, false},
		"another kind":                      {`"1"`, `1`, `1`, false},
		"a member more":                     {`{"a":1.0}`, `{"a":1,"b":2}`, `{"a":1.0,"b":2}`, false},
		"a member less":                     {`{"a":1.0,"b":2}`, `{"a":1}`, `{"a":1.0}`, false},
		"a change beside what stays":        {`{"a":{"w":1.50},"b":[{"w":2.0},true]}`, `{"a":{"w":1.5},"b":[{"w":2},false]}`, `{"a":{"w":1.50},"b":[{"w":2.0},false]}`, false},
		"an item before the others":         {`[{"w":1.50},{"w":2.50}]`, `[{"w":7},{"w":1.5},{"w":2.5}]`, `[{"w":7},{"w":1.50},{"w":2.50}]`, false},
		"an item less":                      {`[1.50,2.50]`, `[2.5]`, `[2.50]`, false},
		"other items of the same length":    {`[true]`, `[false]`, `[false]`, false},
		"null and nothing are not one":      {`{"a":null}`, `{}`, `{}`, false},
		"numbers that no float64 can be":    {`1e999`, `1e998`, `1e998`, false},
		"a lone surrogate":                  {`{"a":"x","b":1.0}`, `{"a":"\ud83d","b":1}`, `{"a":"\ud83d","b":1}`, false},
		"invalid UTF-8 in an item":          {`{"a":["x",1.0]}`, "{\"a\":[\"\xff\",1]}", "{\"a\":[\"\xff\",1]}", false},
		"a name twice":                      {`{"a":1.0}`, `{"a":1,"a":1}`, `{"a":1,"a":1}`, false},
		"a name twice instead of another":   {`[{"a":1.0,"b":2.0}]`, `[{"a":1,"\u0061":1}]`, `[{"a":1,"\u0061":1}]`, false},
		"items in another order":            {`[{"w":[1.50]},{"w":[2.50]}]`, `[{"w":[2.5]},{"w":[1.5]}]`, `[{"w":[2.50]},{"w":[1.50]}]`, false},
		"a name that is written in escapes": {`{"\u0061":1.0,"b":1}`, `{"a":1,"b":2}`, `{"a":1.0,"b":2}`, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, same := keepNumbers([]byte(test.stored), []byte(test.sent))
			if string(got) != test.want || same != test.same {
				t.Errorf("keepNumbers(%s, %s): got %s, %t, want %s, %t", test.stored, test.sent, got, same, test.want, test.same)
			}
		})
	}
}

// processorTime returns the processor time that this process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// TestKeepNumbersIsFast compares values that would take minutes if each number were a fraction, or if
// each item were compared with all others at each level. The limit is a hundred times what decoding
// 200,000 items takes here; the slowest of the values takes less than twenty times that.
func TestKeepNumbersIsFast(t *testing.T) {
	nested := func(levels int, inside string) string {
		return strings.Repeat(`[{"extension":`, levels) + inside + strings.Repeat(`}]`, levels)
	}
	list := func(n int, item string) string { return "[" + strings.Repeat(item+",", n-1) + item + "]" }
	object := func(n int, prefix string) string {
		var members []string
		for i := range n {
			members = append(members, fmt.Sprintf(`"%s%d":1`, prefix, i))
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	before := processorTime(t)
	var decoded []any
	if err := json.Unmarshal([]byte(list(200_000, `{"w":1}`)), &decoded); err != nil {
		t.Fatal(err)
	}
	decoding := processorTime(t) - before
	for name, test := range map[string]struct{ stored, sent string }{
		"exact values of a million digits": {list(100, "0"), list(100, "123456789012345678e-999970")},
		"many levels":                      {nested(31, "1"), nested(31, "2")},
		"many levels of several items":     {list(3, list(3, list(3, list(3, list(3, nested(20, "1")))))), list(3, list(3, list(3, list(3, list(3, nested(20, "2"))))))},
		"many items":                       {list(100_000, `{"w":1}`), list(100_000, `{"w":2}`)},
		"many members":                     {object(100_000, "a"), object(100_000, "b")},
	} {
		t.Run(name, func(t *testing.T) {
			before := processorTime(t)
			if text, same := keepNumbers([]byte(test.stored), []byte(test.sent)); same || string(text) != test.sent {
				t.Error("got the stored numbers")
			}
			if took := processorTime(t) - before; took > 100*decoding {
				t.Errorf("the comparison took %v of processor time, decoding %v", took, decoding)
			}
		})
	}
}
