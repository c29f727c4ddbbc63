package search

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestParse(t *testing.T) {
	newest := Sort{Field: SortCreated, Descending: true}
	march := Range{From: firstOf(2026, 3), Until: firstOf(2026, 4)}
	tests := map[string]struct {
		query string
		opts  Options
		want  Query
	}{
		"nothing":                       {"", Options{}, Query{Sort: newest, Count: 20}},
		"empty values are ignored":      {"_id=&_count=&_lastUpdated=&_sort=&name=", Options{}, Query{Sort: newest, Count: 20}},
		"ids are alternatives":          {"_id=A,b-1.c", Options{}, Query{IDs: []string{"a", "b-1.c"}, Sort: newest, Count: 20}},
		"ids given twice must agree":    {"_id=a,B,c&_id=b,C,d", Options{}, Query{IDs: []string{"b", "c"}, Sort: newest, Count: 20}},
		"ids that never agree":          {"_id=a&_id=b", Options{}, Query{IDs: []string{}, Sort: newest, Count: 20}},
		"dates are alternatives":        {"_lastUpdated=2026-03,ge2027", Options{}, Query{Updated: [][]Range{{march, {From: firstOf(2027, 1)}}}, Sort: newest, Count: 20}},
		"dates given twice both hold":   {"_lastUpdated=ge2026-03&_lastUpdated=lt2026-04", Options{}, Query{Updated: [][]Range{{{From: march.From}}, {{Until: march.Until}}}, Sort: newest, Count: 20}},
		"sort by lastUpdated":           {"_sort=-_lastUpdated", Options{}, Query{Sort: Sort{SortUpdated, true}, Count: 20}},
		"sort by id":                    {"_sort=_id", Options{}, Query{Sort: Sort{SortID, false}, Count: 20}},
		"sort by date, by the contract": {"_sort=-date", Options{SortByDate: true}, Query{Sort: Sort{SortUpdated, true}, Count: 20}},
		"count":                         {"_count=7", Options{}, Query{Sort: newest, Count: 7}},
		"count is clamped":              {"_count=99999999999999999999", Options{}, Query{Sort: newest, Count: MaxCount}},
		"count 0 wants the total":       {"_count=0&_total=none", Options{}, Query{Sort: newest, Total: TotalAccurate}},
		"summary count":                 {"_summary=count&_count=5", Options{}, Query{Sort: newest, Total: TotalAccurate}},
		"summary false":                 {"_summary=false", Options{}, Query{Sort: newest, Count: 20}},
		"total accurate":                {"_total=accurate", Options{}, Query{Sort: newest, Count: 20, Total: TotalAccurate}},
		"total none":                    {"_total=none", Options{}, Query{Sort: newest, Count: 20, Total: TotalNone}},
		"total estimate":                {"_total=estimate", Options{}, Query{Sort: newest, Count: 20}},
		"elements":                      {"_elements=name,Patient.birthDate", Options{}, Query{Sort: newest, Count: 20, Elements: []string{"name", "birthDate"}}},
		"page token":                    {"_page_token=abc", Options{}, Query{Sort: newest, Count: 20, PageToken: "abc"}},
		"lenient":                       {"nme=x&_count=3&a:b=c", Options{Lenient: true}, Query{Sort: newest, Count: 3, Ignored: []string{"a:b", "nme"}}},
		"format and pretty":             {"_format=json&_pretty=true", Options{}, Query{Sort: newest, Count: 20}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(values(t, test.query), options(test.opts))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreUnexported(Query{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	const known = "_count, _elements, _format, _id, _lastUpdated, _page_token, _pretty, _sort, _summary, _total, identifier"
	tests := map[string]struct {
		query string
		opts  Options
		want  []Error
	}{
		"unknown":                        {"nme=x", Options{}, []Error{{"nme", "is not known for Patient; known are " + known}}},
		"modifier":                       {"_id:exact=x", Options{}, []Error{{"_id:exact", `the modifier "exact" is not supported; _id takes none`}}},
		"modifier, leniently":            {"_id:exact=x", Options{Lenient: true}, []Error{{"_id:exact", `the modifier "exact" is not supported; _id takes none`}}},
		"id":                             {"_id=Patient/1", Options{}, []Error{{"_id", `"Patient/1" is not an id: 1 to 64 of the characters A-Z, a-z, 0-9, '-' and '.'`}}},
		"empty item":                     {"_id=a,,b", Options{}, []Error{{"_id", `"a,,b" has an empty item; separate values by single commas`}}},
		"only a comma":                   {"_id=,", Options{}, []Error{{"_id", `"," has an empty item; separate values by single commas`}}},
		"sort":                           {"_sort=name", Options{}, []Error{{"_sort", `"name" is not a sort key of Patient; give one of _id, _lastUpdated, with a leading - for descending order`}}},
		"sort by date, by FHIR":          {"_sort=-date", Options{}, []Error{{"_sort", `"-date" is not a sort key of Patient; give one of _id, _lastUpdated, with a leading - for descending order`}}},
		"two sort keys":                  {"_sort=_id,_lastUpdated", Options{}, []Error{{"_sort", `"_id,_lastUpdated" is not a sort key of Patient; give one of _id, _lastUpdated, with a leading - for descending order`}}},
		"negative count":                 {"_count=-1", Options{}, []Error{{"_count", `"-1" is not a number of items; give 0 to 1000`}}},
		"count in words":                 {"_count=ten", Options{}, []Error{{"_count", `"ten" is not a number of items; give 0 to 1000`}}},
		"two counts":                     {"_count=1&_count=2", Options{}, []Error{{"_count", "is given more than once"}}},
		"total":                          {"_total=yes", Options{}, []Error{{"_total", `"yes" is not a kind of total; give one of accurate, estimate, none`}}},
		"summary":                        {"_summary=text", Options{}, []Error{{"_summary", `"text" is not supported; give count or false`}}},
		"elements below the top":         {"_elements=name.family", Options{}, []Error{{"_elements", `"name.family" is not an element at the top of Patient`}}},
		"elements of another type":       {"_elements=Person.name", Options{}, []Error{{"_elements", `"Person.name" is not an element at the top of Patient`}}},
		"page token":                     {"_page_token=" + strings.Repeat("a", maxToken+1), Options{}, []Error{{"_page_token", "is longer than any page token of this server"}}},
		"date":                           {"_lastUpdated=2026-13", Options{}, []Error{{"_lastUpdated", `"2026-13" is not a date: month 13`}}},
		"everything at once, in order":   {"_sort=x&_count=x", Options{}, []Error{{"_count", `"x" is not a number of items; give 0 to 1000`}, {"_sort", `"x" is not a sort key of Patient; give one of _id, _lastUpdated, with a leading - for descending order`}}},
		"what comes with the next steps": {"telecom=a|b", Options{}, []Error{{"telecom", "is not known for Patient; known are " + known}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(values(t, test.query), options(test.opts))
			var got Errors
			if !errors.As(err, &got) {
				t.Fatalf("got %v, want Errors", err)
			}
			if diff := cmp.Diff(test.want, []Error(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseBoundsErrors(t *testing.T) {
	query := url.Values{}
	for range 200 {
		query.Set(strings.Repeat("x", len(query)+1), strings.Repeat("y", 10_000))
	}
	_, err := Parse(query, options(Options{}))
	var got Errors
	if !errors.As(err, &got) || len(got) != maxErrors {
		t.Errorf("got %d errors, want %d", len(got), maxErrors)
	}
}

func TestParseHistoryAndRead(t *testing.T) {
	if _, err := ParseHistory(values(t, "_count=3&_page_token=x&_format=json&_pretty=true"), options(Options{})); err != nil {
		t.Error(err)
	}
	if _, err := ParseHistory(values(t, "_id=1"), options(Options{})); err == nil {
		t.Error("a history has no _id")
	}
	if _, err := ParseRead(values(t, "_elements=name&_format=json&_pretty=true"), options(Options{})); err != nil {
		t.Error(err)
	}
	if _, err := ParseRead(values(t, "_count=1"), options(Options{})); err == nil {
		t.Error("a read has no _count")
	}
}

func TestParseHistoryByTime(t *testing.T) {
	march := Range{From: firstOf(2026, 3), Until: firstOf(2026, 4)}
	tests := map[string]struct {
		query   string
		want    Query
		refused bool
	}{
		"since an instant":                    {"_since=2026-03-01T00:00:00%2B00:00", Query{Since: march.From}, false},
		"a + that is a space":                 {"_since=2026-03-01T02:00:00+02:00", Query{Since: march.From}, false},
		"since a month":                       {"_since=2026-03", Query{Since: march.From}, false},
		"at a month":                          {"_at=2026-03", Query{At: []Range{march}}, false},
		"at any time until":                   {"_at=lt2026-03", Query{At: []Range{{Until: march.From}}}, false},
		"at either of two":                    {"_at=2026-03,ge2027", Query{At: []Range{march, {From: firstOf(2027, 1)}}}, false},
		"both":                                {"_at=2026-03&_since=2026-04", Query{Since: march.Until, At: []Range{march}}, false},
		"since a prefix":                      {"_since=gt2026", Query{}, true},
		"since no date":                       {"_since=yesterday", Query{}, true},
		"since twice":                         {"_since=2026&_since=2027", Query{}, true},
		"at no date":                          {"_at=now", Query{}, true},
		"at twice":                            {"_at=2026&_at=2027", Query{}, true},
		"at an empty item":                    {"_at=2026,", Query{}, true},
		"a list":                              {"_list=List/1", Query{}, true},
		"a sort, as histories have one order": {"_sort=_id", Query{}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.want.Sort, test.want.Count = Sort{Field: SortCreated, Descending: true}, DefaultCount
			got, err := ParseHistory(values(t, test.query), options(Options{}))
			if test.refused {
				if wrong := (Errors{}); !errors.As(err, &wrong) {
					t.Errorf("got %v, %v", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreUnexported(Query{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParametersOf(t *testing.T) {
	for _, parameter := range ParametersOf("Patient") {
		if _, known := criteriaParameters[parameter.Name]; !known {
			t.Errorf("%s is listed and not known", parameter.Name)
		}
	}
	if got, want := len(ParametersOf("Patient")), len(criteriaParameters); got != want {
		t.Errorf("%d parameters are listed, %d are known", got, want)
	}
}

func TestEncode(t *testing.T) {
	q, err := Parse(values(t, "_pretty=true&_id=b&_id=a%2Cb&_count=5000&_sort=&_lastUpdated=ge2026-01-01T00:00:00+01:00&_page_token=p&unknown=x&_format=application/fhir%2Bjson"),
		options(Options{Lenient: true}))
	if err != nil {
		t.Fatal(err)
	}
	const filters = "_count=1000&_id=b&_id=a%2Cb&_lastUpdated=ge2026-01-01T00%3A00%3A00%2B01%3A00"
	const withFormat = "_count=1000&_format=application%2Ffhir%2Bjson&_id=b&_id=a%2Cb&_lastUpdated=ge2026-01-01T00%3A00%3A00%2B01%3A00"
	if got, want := q.Canonical(), filters; got != want {
		t.Errorf("canonical\ngot  %s\nwant %s", got, want)
	}
	if got, want := q.Encode(""), withFormat+"&_pretty=true"; got != want {
		t.Errorf("without token\ngot  %s\nwant %s", got, want)
	}
	if got, want := q.Encode("t"), withFormat+"&_page_token=t&_pretty=true"; got != want {
		t.Errorf("with token\ngot  %s\nwant %s", got, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "_id=a,b&_id=c", "_lastUpdated=ge2020-01-01T00:00:00+02:00,ap2021&_sort=-_lastUpdated",
		"_count=-1&_total=accurate&_summary=count", "a:b:c=%00&_elements=x,y", "_lastUpdated=ne0001-01-01T00:00Z",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		query, err := url.ParseQuery(raw)
		if err != nil {
			return
		}
		for _, lenient := range []bool{false, true} {
			got, err := Parse(query, options(Options{Lenient: lenient, SortByDate: lenient}))
			if err != nil {
				continue
			}
			if got.Count < 0 || got.Count > MaxCount {
				t.Fatalf("count %d", got.Count)
			}
			links, err := url.ParseQuery(got.Encode(got.PageToken))
			if err != nil {
				t.Fatal(err)
			}
			again, err := Parse(links, options(Options{SortByDate: lenient}))
			if err != nil {
				t.Fatalf("the link of a query is refused: %v", err)
			}
			got.Ignored = nil
			if diff := cmp.Diff(got, again, cmpopts.IgnoreUnexported(Query{}), cmpopts.EquateEmpty()); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

func options(opts Options) Options {
	opts.Type, opts.Now = "Patient", now
	return opts
}

func values(t *testing.T, query string) url.Values {
	t.Helper()
	v, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func firstOf(year int, month time.Month) time.Time {
	return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
}
