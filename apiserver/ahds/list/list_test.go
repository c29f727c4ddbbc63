package list

import (
	"errors"
	"net/url"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
)

var options = Options[bool]{
	SortBy: []string{"createdAt", "name"}, Default: "name",
	Filters: []Filter[bool]{{Name: "isActive", Parse: Bool}},
}

func TestParse(t *testing.T) {
	tests := map[string]struct {
		query string
		want  Request[bool]
		errs  []string
	}{
		"nothing":           {"", Request[bool]{PageSize: 10, SortBy: "name"}, nil},
		"all":               {"page=3&pageSize=7&sortBy=createdAt&sortOrder=desc&isActive=true", Request[bool]{3, 7, "createdAt", true, []bool{true}}, nil},
		"the least":         {"page=0&pageSize=1&sortOrder=asc", Request[bool]{PageSize: 1, SortBy: "name"}, nil},
		"the most":          {"pageSize=100", Request[bool]{PageSize: 100, SortBy: "name"}, nil},
		"a page past all":   {"page=99999999999999999999999&pageSize=100", Request[bool]{Page: maxPage, PageSize: 100, SortBy: "name"}, nil},
		"the largest page":  {"page=9007199254740993", Request[bool]{Page: maxPage, PageSize: 10, SortBy: "name"}, nil},
		"page below":        {"page=-1", Request[bool]{}, []string{"page out_of_range"}},
		"sizes beyond":      {"pageSize=0", Request[bool]{}, []string{"pageSize out_of_range"}},
		"size above":        {"pageSize=101", Request[bool]{}, []string{"pageSize out_of_range"}},
		"size far above":    {"pageSize=99999999999999999999999", Request[bool]{}, []string{"pageSize out_of_range"}},
		"no whole number":   {"page=1.0", Request[bool]{}, []string{"page out_of_range"}},
		"signs":             {"page=%2B1", Request[bool]{}, []string{"page out_of_range"}},
		"nothing in it":     {"page=&pageSize=&sortBy=&sortOrder=&isActive=", Request[bool]{}, []string{"isActive invalid_value", "page out_of_range", "pageSize out_of_range", "sortBy invalid_value", "sortOrder invalid_value"}},
		"other digits":      {"page=%D9%A1", Request[bool]{}, []string{"page out_of_range"}},
		"unknown":           {"isactive=true&_count=3", Request[bool]{}, []string{"_count unknown_parameter", "isactive unknown_parameter"}},
		"repeated":          {"page=1&page=1&isActive=true&isActive=false", Request[bool]{}, []string{"isActive repeated_parameter", "page repeated_parameter"}},
		"another boolean":   {"isActive=TRUE", Request[bool]{}, []string{"isActive invalid_value"}},
		"a boolean number":  {"isActive=1", Request[bool]{}, []string{"isActive invalid_value"}},
		"order in capitals": {"sortOrder=DESC&sortBy=Name", Request[bool]{}, []string{"sortBy invalid_value", "sortOrder invalid_value"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			query, err := url.ParseQuery(test.query)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Parse(query, options)
			var errs fielderror.Errors
			var told []string
			if errors.As(err, &errs) {
				for _, f := range errs {
					told = append(told, f.At+" "+f.Code)
				}
			}
			if diff := cmp.Diff(test.errs, told); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, got); diff != "" && test.errs == nil {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Skip() < 0 {
				t.Errorf("skip %d", got.Skip())
			}
		})
	}
}

func TestEnvelope(t *testing.T) {
	for total, want := range map[int64]string{
		0:  `{"data":[],"meta":{"page":2,"pageSize":10,"total":0,"totalPages":0}}`,
		10: `{"data":[],"meta":{"page":2,"pageSize":10,"total":10,"totalPages":1}}`,
		11: `{"data":[],"meta":{"page":2,"pageSize":10,"total":11,"totalPages":2}}`,
	} {
		if got := (Request[bool]{Page: 2, PageSize: 10}).Envelope(nil, total); string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	got := (Request[bool]{PageSize: 2}).Envelope([]jsontext.Value{jsontext.Value(`{"a":1}`), jsontext.Value(`{"b" : 2}`)}, 37)
	if want := `{"data":[{"a":1},{"b" : 2}],"meta":{"page":0,"pageSize":2,"total":37,"totalPages":19}}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestInstantOfAQuery(t *testing.T) {
	for _, text := range []string{"2026-03-01T09:30:00+05:45", "2026-03-01T09:30:00 05:45", "2026-03-01T03:45:00Z"} {
		at, problem := Instant(text)
		if problem != "" || at.Unix() != 1772336700 {
			t.Errorf("%s: got %d, %s", text, at.Unix(), problem)
		}
	}
	for _, text := range []string{"2026-03-01 09:30:00Z", "2026-03-01T09:30:00  05:45", "2026-03-01T09:30:00", "now"} {
		if at, problem := Instant(text); problem == "" {
			t.Errorf("%s: got %v", text, at)
		}
	}
}

func TestFold(t *testing.T) {
	for text, same := range map[string]string{"STRASSE": "straße", "Rex": "rEX", "E\u0301": "\u00e9", "ΣΊΣΥΦΟΣ": "σίσυφος"} {
		if Fold(text) != Fold(same) {
			t.Errorf("%s and %s: %q, %q", text, same, Fold(text), Fold(same))
		}
	}
	if Fold("é") == Fold("e") {
		t.Error("accents count")
	}
}

func TestFixedLists(t *testing.T) {
	fixed := Options[bool]{Fixed: true}
	for _, name := range []string{"sortBy", "sortOrder"} {
		_, err := Parse(url.Values{name: {"asc"}}, fixed)
		var errs fielderror.Errors
		if !errors.As(err, &errs) || len(errs) != 1 || errs[0].At != name || errs[0].Code != fielderror.CodeUnknownParameter {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Parse(url.Values{"page": {"1"}, "pageSize": {"5"}}, fixed); err != nil {
		t.Error(err)
	}
}
