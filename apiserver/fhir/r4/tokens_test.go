package r4

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTokens(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want []Token
	}{
		"none":      {`{"resourceType":"Patient"}`, nil},
		"two":       {`{"identifier":[{"system":"s","value":"1"},{"value":"2","use":"old"}]}`, []Token{{"identifier", "s", "1"}, {"identifier", "", "2"}}},
		"no value":  {`{"identifier":[{"system":"s"},{"use":"usual"}]}`, []Token{{"identifier", "s", ""}}},
		"nested":    {`{"contact":[{"identifier":[{"value":"x"}]}],"identifier":[{"assigner":{"identifier":{"value":"y"}},"value":"1"}]}`, []Token{{"identifier", "", "1"}}},
		"escaped":   {`{"\u0069dentifier":[{"value":"a\u0062\n"}]}`, []Token{{"identifier", "", "ab\n"}}},
		"one alone": {`{"identifier":{"value":"1"}}`, []Token{{"identifier", "", "1"}}},
		"odd kinds": {`{"identifier":[1,null,"x",{"value":7}],"id":"z"}`, nil},
		"truncated": {`{"identifier":[{"value":"1"}`, []Token{{"identifier", "", "1"}}},
		"no object": {`[]`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Tokens([]byte(test.body))); diff != "" {
				t.Errorf("tokens (-want +got):\n%s", diff)
			}
		})
	}
}
