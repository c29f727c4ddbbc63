package aggregated

import (
	"strings"
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

// TestKeepNumbersIsFast compares many numbers whose exact value as a fraction has a million digits.
func TestKeepNumbersIsFast(t *testing.T) {
	stored := "[" + strings.Repeat("0,", 99) + "0]"
	sent := "[" + strings.Repeat("123456789012345678e-999970,", 99) + "123456789012345678e-999970]"
	began := time.Now()
	if _, same := keepNumbers([]byte(stored), []byte(sent)); same {
		t.Error("got the same numbers")
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the comparison took %v", took)
	}
}
