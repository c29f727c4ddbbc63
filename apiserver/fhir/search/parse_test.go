package search

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/hack/dev/module"
	"github.com/paddock-health/paddock/hack/test/searchtruth"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var newest = []store.Sort{{Field: store.SortCreated, Descending: true}}

// ignoreHow ignores the fields of a Query that do not affect the result.
var ignoreHow = cmp.Options{cmpopts.IgnoreUnexported(Query{}), cmpopts.EquateEmpty()}

func TestParse(t *testing.T) {
	march := store.TimeRange{From: firstOf(2026, 3), Until: firstOf(2026, 4)}
	by := func(field store.SortField, descending bool) []store.Sort {
		return []store.Sort{{Field: field, Descending: descending}}
	}
	tests := map[string]struct {
		query string
		opts  Options
		want  Query
	}{
		"nothing":                    {"", Options{}, Query{Sort: newest, Count: 20}},
		"empty values are ignored":   {"_id=&_count=&_lastUpdated=&_sort=&name=", Options{}, Query{Sort: newest, Count: 20}},
		"ids are alternatives":       {"_id=A,b-1.c", Options{}, Query{Where: store.All{store.IDIn{"a", "b-1.c"}}, Sort: newest, Count: 20}},
		"ids given twice must agree": {"_id=a,B&_id=b", Options{}, Query{Where: store.All{store.IDIn{"a", "b"}, store.IDIn{"b"}}, Sort: newest, Count: 20}},
		"all ids but some":           {"_id:not=a,b", Options{}, Query{Where: store.All{store.Not{Condition: store.IDIn{"a", "b"}}}, Sort: newest, Count: 20}},
		"dates are alternatives": {
			"_lastUpdated=2026-03,ge2027",
			Options{},
			Query{Where: store.All{store.Any{store.UpdatedIn(march), store.UpdatedIn{From: firstOf(2027, 1)}}}, Sort: newest, Count: 20},
		},
		"dates given twice both hold": {
			"_lastUpdated=ge2026-03&_lastUpdated=lt2026-04",
			Options{},
			Query{Where: store.All{store.UpdatedIn(march)}, Sort: newest, Count: 20},
		},
		"all have an id":                {"_id:missing=false", Options{}, Query{Where: store.All{store.All{}}, Sort: newest, Count: 20}},
		"none is without":               {"_lastUpdated:missing=true", Options{}, Query{Where: store.All{store.Any{}}, Sort: newest, Count: 20}},
		"sort by lastUpdated":           {"_sort=-_lastUpdated", Options{}, Query{Sort: by(store.SortUpdated, true), Count: 20}},
		"sort by id":                    {"_sort=_id", Options{}, Query{Sort: by(store.SortID, false), Count: 20}},
		"sort by date, by the contract": {"_sort=-date", Options{SortByDate: true}, Query{Sort: by(store.SortUpdated, true), Count: 20}},
		"sort by many, each once": {"_sort=family,-birthdate,-family,_id", Options{}, Query{Count: 20, Sort: []store.Sort{
			{Field: store.SortText, Param: "family"}, {Field: store.SortPeriod, Param: "birthdate", Descending: true}, {Field: store.SortID},
		}}},
		"count":                   {"_count=7", Options{}, Query{Sort: newest, Count: 7}},
		"count is clamped":        {"_count=99999999999999999999", Options{}, Query{Sort: newest, Count: MaxCount, CountReduced: true}},
		"count, at a limit":       {"_count=100", Options{MaxCount: 100}, Query{Sort: newest, Count: 100}},
		"count, above a limit":    {"_count=101", Options{MaxCount: 100}, Query{Sort: newest, Count: 100, CountReduced: true}},
		"count 0 wants the total": {"_count=0&_total=none", Options{}, Query{Sort: newest, Total: store.TotalAccurate}},
		"summary count":           {"_summary=count&_count=5", Options{}, Query{Sort: newest, Total: store.TotalAccurate}},
		"summary false":           {"_summary=false", Options{}, Query{Sort: newest, Count: 20}},
		"summary text":            {"_summary=text", Options{}, Query{Sort: newest, Count: 20, Summary: SummaryText}},
		"total accurate":          {"_total=accurate", Options{}, Query{Sort: newest, Count: 20, Total: store.TotalAccurate}},
		"total none":              {"_total=none", Options{}, Query{Sort: newest, Count: 20, Total: store.TotalNone}},
		"total estimate":          {"_total=estimate", Options{}, Query{Sort: newest, Count: 20}},
		"elements":                {"_elements=name,Patient.birthDate", Options{}, Query{Sort: newest, Count: 20, Elements: []Element{{"", "name"}, {"Patient", "birthDate"}}}},
		"page token":              {"_page_token=abc", Options{}, Query{Sort: newest, Count: 20, PageToken: "abc"}},
		"lenient": {
			"nme=x&_count=3&a:b=c&organization.nme=x&_has:Group:member:nme=x&_filter=x",
			Options{Lenient: true},
			Query{Sort: newest, Count: 3, Ignored: []string{"_filter", "_has:Group:member:nme", "a:b", "nme", "organization.nme"}},
		},
		"format and pretty": {"_format=json&_pretty=true", Options{}, Query{Sort: newest, Count: 20}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(values(t, test.query), options(test.opts))
			if err != nil {
				t.Fatal(err)
			}
			test.want.Types = []string{"Patient"}
			if diff := cmp.Diff(test.want, got, ignoreHow); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	known, sortKeys := patientParameters(t)
	tests := map[string]struct {
		query string
		opts  Options
		want  []Error
	}{
		"unknown":                      {"nme=x", Options{}, []Error{{"nme", `"nme" is not known for Patient; did you mean name?`}}},
		"not supported":                {"_text=x", Options{}, []Error{{"_text", `"_text" is not known for Patient; supported parameters: ` + known}}},
		"modifier":                     {"_id:exact=x", Options{}, []Error{{"_id:exact", `the modifier "exact" is not supported for _id, a token parameter; supported modifiers: missing, not`}}},
		"modifier, leniently":          {"_id:exact=x", Options{Lenient: true}, []Error{{"_id:exact", `the modifier "exact" is not supported for _id, a token parameter; supported modifiers: missing, not`}}},
		"no modifier":                  {"_id:=x", Options{}, []Error{{"_id:", `the modifier "" is not supported for _id, a token parameter; supported modifiers: missing, not`}}},
		"modifier of a control":        {"_count:exact=1", Options{}, []Error{{"_count:exact", `the modifier "exact" is not supported; supported modifiers: none`}}},
		"type in the path and besides": {"_type=Patient", Options{}, []Error{{"_type", "the parameter is only supported in a search without a type in the path; omit it"}}},
		"count":                        {"_count=-1", Options{MaxCount: 100}, []Error{{"_count", `"-1" is not a number of items; give 0 to 100`}}},
		"id":                           {"_id=Patient/1", Options{}, []Error{{"_id", `"Patient/1" is not an id; give 1 to 64 of the characters A-Z, a-z, 0-9, '-' and '.'`}}},
		"the second id":                {"_id=1,Patient/1", Options{}, []Error{{"_id", `value 2 of 2: "Patient/1" is not an id; give 1 to 64 of the characters A-Z, a-z, 0-9, '-' and '.'`}}},
		"the second time":              {"_id=1&_id=2,3,_", Options{}, []Error{{"_id", `repetition 2 of 2: value 3 of 3: "_" is not an id; give 1 to 64 of the characters A-Z, a-z, 0-9, '-' and '.'`}}},
		"empty item":                   {"_id=a,,b", Options{}, []Error{{"_id", `"a,,b" has an empty item; separate values by single commas`}}},
		"only a comma":                 {"_id=,", Options{}, []Error{{"_id", `"," has an empty item; separate values by single commas`}}},
		"Latin-1":                      {"identifier=a&identifier=M%FCller", Options{Lenient: true}, []Error{{"identifier", `repetition 2 of 2: "M\xfcller" is not valid UTF-8; percent-encode the text in UTF-8`}}},
		"sort":                         {"_sort=gender", Options{}, []Error{{"_sort", `"gender" is not a sort key of Patient; give one of ` + sortKeys}}},
		"sort by date, by FHIR":        {"_sort=_id,-date", Options{}, []Error{{"_sort", `key 2 of 2: "-date" is not a sort key of Patient; give one of ` + sortKeys}}},
		"too many sort keys":           {"_sort=a,b,c,d,e,f,g,h,i,j,k", Options{}, []Error{{"_sort", "there are 11 sort keys; give at most 10"}}},
		"negative count":               {"_count=-1", Options{}, []Error{{"_count", `"-1" is not a number of items; give 0 to 1000`}}},
		"count in words":               {"_count=ten", Options{}, []Error{{"_count", `"ten" is not a number of items; give 0 to 1000`}}},
		"two counts":                   {"_count=1&_count=2", Options{}, []Error{{"_count", "the parameter is given more than once; give it once"}}},
		"total":                        {"_total=yes", Options{}, []Error{{"_total", `"yes" is not a kind of total; give one of accurate, estimate, none`}}},
		"summary":                      {"_summary=yes", Options{}, []Error{{"_summary", `"yes" is not a supported summary; give one of true, text, data, count, false`}}},
		"summary and elements":         {"_summary=text&_elements=name", Options{}, []Error{{"_elements", `the parameter cannot be combined with _summary=text; give one of the two`}}},
		"elements below the top":       {"_elements=name.family", Options{}, []Error{{"_elements", `"name.family" is not a top-level element of Patient; give names such as identifier,name`}}},
		"elements of another type":     {"_elements=Person.name", Options{}, []Error{{"_elements", `"Person.name" is not a top-level element of Patient; give names such as identifier,name`}}},
		"page token":                   {"_page_token=" + strings.Repeat("a", maxTokenSize+1), Options{}, []Error{{"_page_token", "the value is longer than any page token; follow the next link unchanged, or start again without it"}}},
		"date":                         {"_lastUpdated=2026-13", Options{}, []Error{{"_lastUpdated", `"2026-13" is not a date: there is no month 13; correct the month`}}},
		"everything at once, in order": {"_total=x&_count=x", Options{}, []Error{{"_count", `"x" is not a number of items; give 0 to 1000`}, {"_total", `"x" is not a kind of total; give one of accurate, estimate, none`}}},
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

// patientParameters returns the parameters of a search for Patients and its sort keys, as messages
// list them. They come from HL7's definitions and the additions, not from the tables.
func patientParameters(t *testing.T) (known, sortKeys string) {
	t.Helper()
	bin, err := module.Bin()
	if err != nil {
		t.Fatal(err)
	}
	defined, err := searchtruth.Parameters(t.Context(), bin)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"_count", "_elements", "_format", "_has", "_id", "_include", "_lastUpdated", "_page_token", "_pretty", "_revinclude", "_sort", "_summary", "_total", "telecom"}
	keys := []string{"_id", "_lastUpdated"}
	for name, p := range defined["Patient"] {
		names = append(names, name)
		if p.Kind == "string" || p.Kind == "date" {
			keys = append(keys, name)
		}
	}
	slices.Sort(names)
	slices.Sort(keys)
	return strings.Join(slices.Compact(names), ", "), strings.Join(keys, ", ") + ", with a leading - for descending order"
}

// TestParseBounds exceeds the limits of parameters, values and depth. The query is rejected with an error that names the limit.
func TestParseBounds(t *testing.T) {
	many := func(n int, value string) string { return strings.TrimSuffix(strings.Repeat(value+",", n), ",") }
	tests := map[string]struct{ query, want string }{
		"parameters":       {strings.Repeat("name=a&", maxParameters+1), "give at most 100"},
		"alternatives":     {"identifier=" + many(maxValues+1, "a"), "more than 1000 values"},
		"ids":              {"_id=" + many(maxValues+1, "a"), "more than 1000 values"},
		"together":         {"identifier=" + many(maxValues/2, "a") + "&name=" + many(maxValues/2+1, "a"), "more than 1000 values"},
		"by many chains":   {"link.link.link.link.identifier=" + many(600, "a"), "more than 1000 values"},
		"by value sets":    {"language:in=" + many(4, "http://hl7.org/fhir/ValueSet/spdx-license"), "more than 1000 values"},
		"slashes":          {"_source:above=" + strings.Repeat("/", maxItemSize), "more than 1000 values"},
		"a long value":     {"identifier=" + strings.Repeat("a,", maxValueSize), "longer than 64 KiB"},
		"a long item":      {"identifier=" + strings.Repeat("a", maxItemSize+1), "give at most 2048 in each"},
		"a deep chain":     {strings.Repeat("link:Patient.", maxDepth+1) + "name=a", "more than 5 links"},
		"a deep _has":      {strings.Repeat("_has:Patient:link:", maxDepth+1) + "name=a", "nested more than 5 levels deep"},
		"a deep _has=":     {"_has=" + strings.Repeat("Patient:link:_has:", maxDepth) + "Patient:link:name=a", "nested more than 5 levels deep"},
		"words that sound": {"phonetic=" + strings.Repeat("smith ", 300) + "," + strings.Repeat("smith ", 300), "more than 1000 values"},
		"links and _has, both deep": {
			strings.Repeat("link:Patient.", maxDepth) + strings.Repeat("_has:Patient:link:", maxDepth) + "link.name=a", "more than 5 links",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(values(t, test.query), options(Options{}))
			if wrong := (Errors{}); !errors.As(err, &wrong) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %.300v, want %s", err, test.want)
			}
		})
	}
	for _, query := range []string{
		"identifier=" + many(maxValues, "a"), strings.Repeat("name=a&", maxParameters), "identifier=" + strings.Repeat("a", maxItemSize),
		strings.Repeat("link:Patient.", maxDepth) + "name=a", strings.Repeat("_has:Patient:link:", maxDepth) + "name=a",
	} {
		if _, err := Parse(values(t, query), options(Options{})); err != nil {
			t.Errorf("at the bound: %.300v", err)
		}
	}
}

func TestParseBoundsErrors(t *testing.T) {
	query := url.Values{}
	for range maxParameters {
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
	if _, err := ParseHistory(values(t, "_type=Patient"), Options{}); err == nil {
		t.Error("a history has no _type")
	}
	if _, err := ParseRead(values(t, "_elements=name&_format=json&_pretty=true"), options(Options{})); err != nil {
		t.Error(err)
	}
	for _, query := range []string{"_count=1", "_summary=count", "name=x"} {
		if _, err := ParseRead(values(t, query), options(Options{})); err == nil {
			t.Errorf("a read has no %s", query)
		}
	}
}

// TestParseHistoryAndReadStrictly shows that a history and a read reject unknown parameters even if
// Lenient is set, because they cannot report them.
func TestParseHistoryAndReadStrictly(t *testing.T) {
	for name, parse := range map[string]func(url.Values, Options) (Query, error){"history": ParseHistory, "read": ParseRead} {
		_, err := parse(values(t, "nme=x&_format=json&name="), options(Options{Lenient: true}))
		if wrong := (Errors{}); !errors.As(err, &wrong) || len(wrong) != 1 || wrong[0].Parameter != "nme" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestParseHistoryByTime(t *testing.T) {
	march := store.TimeRange{From: firstOf(2026, 3), Until: firstOf(2026, 4)}
	tests := map[string]struct {
		query   string
		want    Query
		refused bool
	}{
		"since an instant":                    {"_since=2026-03-01T00:00:00%2B00:00", Query{Since: march.From}, false},
		"a + that is a space":                 {"_since=2026-03-01T02:00:00+02:00", Query{Since: march.From}, false},
		"since a month":                       {"_since=2026-03", Query{Since: march.From}, false},
		"at a month":                          {"_at=2026-03", Query{At: []store.TimeRange{march}}, false},
		"at any time until":                   {"_at=lt2026-03", Query{At: []store.TimeRange{{Until: march.From}}}, false},
		"at either of two":                    {"_at=2026-03,ge2027", Query{At: []store.TimeRange{march, {From: firstOf(2027, 1)}}}, false},
		"both":                                {"_at=2026-03&_since=2026-04", Query{Since: march.Until, At: []store.TimeRange{march}}, false},
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
			test.want.Sort, test.want.Count, test.want.Types = newest, DefaultCount, []string{"Patient"}
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
			if diff := cmp.Diff(test.want, got, ignoreHow); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEncode(t *testing.T) {
	q, err := Parse(values(t, "_pretty=true&_id=b&_id=a%2Cb&_count=5000&_sort=&_lastUpdated=ge2026-01-01T00:00:00+01:00&_page_token=p&unknown=x&_format=application/fhir%2Bjson"),
		options(Options{Lenient: true}))
	if err != nil {
		t.Fatal(err)
	}
	const filters = "_count=1000&_id=b&_id=a%2Cb&_lastUpdated=ge2026-01-01T00%3A00%3A00+01%3A00"
	const withFormat = "_count=1000&_format=application%2Ffhir%2Bjson&_id=b&_id=a%2Cb&_lastUpdated=ge2026-01-01T00%3A00%3A00+01%3A00"
	if got, want := q.Canonical(), filters; got != want {
		t.Errorf("canonical\ngot  %s\nwant %s", got, want)
	}
	if got, want := q.Encode(""), withFormat+"&_pretty=true"; got != want {
		t.Errorf("without token\ngot  %s\nwant %s", got, want)
	}
	if got, want := q.Encode("t"), withFormat+"&_pretty=true&_page_token=t"; got != want {
		t.Errorf("with token\ngot  %s\nwant %s", got, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "_id=a,b&_id=c", "_lastUpdated=ge2020-01-01T00:00:00+02:00,ap2021&_sort=-_lastUpdated,name,-birthdate",
		"_count=-1&_total=accurate&_summary=count", "a:b:c=%00&_elements=x,y", "_lastUpdated=ne0001-01-01T00:00Z",
		`name=a\,b,c&name:exact=D&name:contains=%C3%A9&phonetic=Smith`, "gender:not=male,female&gender:in=http://hl7.org/fhir/ValueSet/administrative-gender",
		"identifier:of-type=http://a|MR|1&identifier=a|,|b,c&identifier:text=x", "birthdate=ge2020,lt2019&death-date:missing=true",
		"general-practitioner:Practitioner.name=x&organization.partof:below=1", "_has:Group:member:_has:Group:member:code=a|b", "_has=Group:member:code=x",
		"_include=*&_include:iterate=Patient:link:Patient&_revinclude=Group:member", "patient=Patient/1&link=https://h.example/fhir/patient/1&link:identifier=a|b",
		"_profile:below=http://a/b&_source:above=urn:x", "near=1|2|3|km&characteristic-value=a|b$c",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		query, err := url.ParseQuery(raw)
		if err != nil {
			return
		}
		for _, opts := range []Options{{Type: "Patient"}, {Type: "Location", Lenient: true, SortByDate: true}, {Type: "Group"}, {Lenient: true}} {
			opts.Now, opts.Bases = now, []string{"https://h.example/fhir"}
			got, err := Parse(query, opts)
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
			opts.Lenient = false
			again, err := Parse(links, opts)
			if err != nil {
				t.Fatalf("the link of a query is refused: %v", err)
			}
			got.Ignored = nil
			if diff := cmp.Diff(got, again, ignoreHow); diff != "" {
				t.Fatal(diff)
			}
			if got.Criteria() != again.Criteria() {
				t.Fatalf("the criteria are %s, and then %s", got.Criteria(), again.Criteria())
			}
			got.Matches([]store.IndexValue{{Param: "name"}, {Param: "identifier", Value: store.Token{Code: "a"}}})
		}
	})
}

func options(opts Options) Options {
	opts.Type, opts.Now = "Patient", now
	return opts
}

func values(t testing.TB, query string) url.Values {
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
