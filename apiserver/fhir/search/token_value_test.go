package search

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

func TestIdentifier(t *testing.T) {
	is := func(text string) *string { return &text }
	for name, test := range map[string]struct {
		values []string
		want   []TokenCondition
		err    string
	}{
		"code":            {values: []string{"1"}, want: []TokenCondition{{"identifier", []TokenMatch{{nil, is("1")}}}}},
		"system and code": {values: []string{"urn:x|1"}, want: []TokenCondition{{"identifier", []TokenMatch{{is("urn:x"), is("1")}}}}},
		"no system":       {values: []string{"|1"}, want: []TokenCondition{{"identifier", []TokenMatch{{is(""), is("1")}}}}},
		"any code":        {values: []string{"urn:x|"}, want: []TokenCondition{{"identifier", []TokenMatch{{is("urn:x"), nil}}}}},
		"or":              {values: []string{"1,urn:x|2"}, want: []TokenCondition{{"identifier", []TokenMatch{{nil, is("1")}, {is("urn:x"), is("2")}}}}},
		"and":             {values: []string{"1", "2"}, want: []TokenCondition{{"identifier", []TokenMatch{{nil, is("1")}}}, {"identifier", []TokenMatch{{nil, is("2")}}}}},
		"escapes":         {values: []string{`a\,b\|c\\d\$`}, want: []TokenCondition{{"identifier", []TokenMatch{{nil, is(`a,b|c\d$`)}}}}},
		"empty item":      {values: []string{"1,"}, err: "is no token"},
		"bar alone":       {values: []string{"|"}, err: "is no token"},
		"three parts":     {values: []string{"a|b|c"}, err: "more than one |"},
		"odd backslash":   {values: []string{`a\b`}, err: "escapes nothing"},
		"last backslash":  {values: []string{`a\`}, err: "escapes nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			query, err := Parse(url.Values{"identifier": test.values}, Options{Type: "Patient"})
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("error %v, want one with %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, query.Tokens); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHoldsFor(t *testing.T) {
	tokens := []r4.Token{{Param: "identifier", System: "s", Code: "1"}, {Param: "identifier", Code: "2"}}
	for criteria, want := range map[string]bool{
		"identifier=1":                     true,
		"identifier=s|1":                   true,
		"identifier=s|":                    true,
		"identifier=|2":                    true,
		"identifier=|1":                    false,
		"identifier=s|2":                   false,
		"identifier=3,1":                   true,
		"identifier=1&identifier=2":        true,
		"identifier=1&identifier=3":        false,
		"identifier=1&_id=x":               false,
		"identifier=1&_lastUpdated=gt2020": false,
		"_id=x":                            false,
		"identifier=t|1,|2&identifier=s|2": false,
	} {
		values, err := url.ParseQuery(criteria)
		if err != nil {
			t.Fatal(err)
		}
		query, err := ParseCriteria(values, Options{Type: "Patient"})
		if err != nil {
			t.Fatal(err)
		}
		if got := query.HoldsFor(tokens); got != want {
			t.Errorf("%s: got %t, want %t", criteria, got, want)
		}
	}
}

func TestCriteriaTakeFiltersOnly(t *testing.T) {
	for _, criteria := range []string{"_count=1", "_sort=_id", "", "identifier=", "name=x", "_page_token=x"} {
		values, err := url.ParseQuery(criteria)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseCriteria(values, Options{Type: "Patient", Lenient: true}); err == nil {
			t.Errorf("criteria %q were taken", criteria)
		}
	}
}
