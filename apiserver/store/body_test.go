package store

import (
	"strings"
	"testing"
)

func TestSameValue(t *testing.T) {
	for name, test := range map[string]struct {
		a, b string
		same bool
	}{
		"the same bytes":                     {`{"a":1}`, `{"a":1}`, true},
		"white space":                        {`{"a":[1,{"b":"c d"}]}`, " {\n\"a\" : [ 1,\t{ \"b\":\"c d\" } ]\r}", true},
		"order of members":                   {`{"a":1,"b":{"c":2,"d":3}}`, `{"b":{"d":3,"c":2},"a":1}`, true},
		"escapes":                            {`{"a":"Zoë/"}`, `{"a":"Zo\u00EB\/"}`, true},
		"escapes in names":                   {`{"ab":1}`, `{"\u0061b":1}`, true},
		"an escaped pair":                    {`"😀"`, `"\ud83d\ude00"`, true},
		"order of items":                     {`[1,2]`, `[2,1]`, false},
		"digits":                             {`{"a":1.50}`, `{"a":1.5}`, false},
		"forms of one number":                {`[100]`, `[1e2]`, false},
		"signed zero":                        {`[0]`, `[-0]`, false},
		"white space in a string":            {`{"a":"b c"}`, `{"a":"bc"}`, false},
		"characters in another order":        {`{"a":"bc"}`, `{"a":"cb"}`, false},
		"characters swapped between members": {`{"a":"b","c":"d"}`, `{"a":"d","c":"b"}`, false},
		"an extra member":                    {`{"a":1}`, `{"a":1,"b":null}`, false},
		"a string and a number":              {`{"a":"1"}`, `{"a":1}`, false},
		"a combining character":              {`"e\u0301"`, `"\u00e9"`, false},
		"neither is JSON":                    {`{"a":`, ` {"a":`, false},
		"deep objects, reordered":            {strings.Repeat(`{"x":1,"y":`, 50) + `0` + strings.Repeat(`}`, 50), strings.Repeat(`{"y":`, 50) + `0` + strings.Repeat(`,"x":1}`, 50), true},
		"names that sort otherwise":          {`{"é":1,"z":2,"\u20ac":3}`, `{"\u20ac":3,"z":2,"é":1}`, true},
	} {
		a, b := Body{JSON: []byte(test.a)}, Body{JSON: []byte(test.b)}
		if got := a.SameValue(b); got != test.same {
			t.Errorf("%s: SameValue of %s and %s = %t, want %t", name, test.a, test.b, got, test.same)
		}
		if got := b.SameValue(a); got != test.same {
			t.Errorf("%s: SameValue of %s and %s = %t, want %t", name, test.b, test.a, got, test.same)
		}
	}
}
