package search

import (
	"testing"

	"github.com/paddock-health/paddock/apiserver/store"
)

func TestMatches(t *testing.T) {
	entries := []store.IndexValue{
		{Param: "identifier", Value: store.Token{System: "s", Code: "1"}},
		{Param: "identifier", Value: store.Token{Code: "2"}},
		{Param: "name", Value: store.Text{Folded: "rex", Original: "Rex"}},
		{Param: "gender"},
		{Param: "organization", Value: store.Reference{Base: "https://h.example/fhir", Type: "Organization", ID: "o"}},
		{Param: "birthdate", Value: store.Period{From: 0, Until: 86400e6}},
	}
	for criteria, want := range map[string]bool{
		"identifier=1":                            true,
		"identifier=s|1":                          true,
		"identifier=s|":                           true,
		"identifier=|2":                           true,
		"identifier=|1":                           false,
		"identifier=s|2":                          false,
		"identifier=3,1":                          true,
		"identifier=1&identifier=2":               true,
		"identifier=1&identifier=3":               false,
		"identifier=1&_id=x":                      false,
		"identifier=1&_id:not=x":                  false,
		"identifier=1&_lastUpdated=gt2020":        false,
		"identifier=1&_lastUpdated=gt2020,lt2030": false,
		"_id=x":                                    false,
		"identifier=t|1,|2&identifier=s|2":         false,
		"identifier:not=3":                         true,
		"identifier:not=1":                         false,
		"name=re":                                  true,
		"name:exact=rex":                           false,
		"name:contains=E":                          true,
		"gender:missing=false":                     true,
		"family:missing=true":                      true,
		"gender=male":                              false,
		"organization=o":                           true,
		"organization=Organization/O":              true,
		"organization=other":                       false,
		"organization.name=x":                      false,
		"_has:Group:member:code:not=x":             false,
		"birthdate=1970":                           true,
		"birthdate=ne1970":                         false,
		"general-practitioner=o,o2&identifier=1":   false,
		"_id:missing=false&identifier=1":           true,
		"_id:missing=true&identifier=1":            false,
		"identifier=1&organization.name:missing=f": false,
	} {
		query, err := ParseCriteria(values(t, criteria), Options{Type: "Patient", Bases: []string{"https://h.example/fhir"}})
		if err != nil {
			if want {
				t.Errorf("%s: %v", criteria, err)
			}
			continue
		}
		if got := query.Matches(entries); got != want {
			t.Errorf("%s: got %t, want %t", criteria, got, want)
		}
	}
}

func TestCriteriaTakeFiltersOnly(t *testing.T) {
	for _, criteria := range []string{
		"_count=1", "_sort=_id", "", "identifier=", "nme=x", "_page_token=x", "_include=*", "_elements=name", "_type=Patient", "_format=json", "identifier=1&_total=none",
	} {
		if _, err := ParseCriteria(values(t, criteria), Options{Type: "Patient", Lenient: true}); err == nil {
			t.Errorf("criteria %q were taken", criteria)
		}
	}
}

// TestCriteriaAreCanonical shows that queries have the same canonical form exactly if they mean the
// same.
func TestCriteriaAreCanonical(t *testing.T) {
	form := func(query string) string {
		t.Helper()
		q, err := ParseCriteria(values(t, query), Options{Type: "Patient", Now: now})
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return q.Criteria()
	}
	same := [][]string{
		{"identifier=urn:x|A,b&name=Jos%C3%A9", "name=JOSE&identifier=B,urn:x|a", "name=jose&name=jose&identifier=b,b,urn:x|a"},
		{"_id=A,b", "_id=b,a"},
		{"_has=Group:member:code=A,b", "_has:Group:member:code=b,a"},
		{"birthdate=2020-01", "birthdate=eq2020-01"},
		{"organization=Organization/A", "organization=organization/a"},
		{"organization.name=b,A", "organization:Organization.name=a,b"},
		{"gender:not=male,Female", "gender:not=female,male"},
	}
	for _, queries := range same {
		for _, query := range queries[1:] {
			if got, want := form(query), form(queries[0]); got != want {
				t.Errorf("%s is %s; %s is %s", query, got, queries[0], want)
			}
		}
	}
	seen := map[string]string{}
	for _, query := range []string{
		"identifier=a", "identifier=|a", "identifier=a|", "identifier=a|b", "identifier=b", "identifier=a,b", "identifier=a&identifier=b", "identifier:not=a", "identifier=*",
		"name=a", "name:exact=a", "name:contains=a", "name:missing=true", "name:missing=false", "birthdate=2020", "birthdate=gt2020", "_lastUpdated=2020", "_lastUpdated=gt2020",
		"organization=a", "organization.name=a", "_id=a", "_id:not=a", "_has:Group:member:identifier=a", "_has:Group:patient:identifier=a", `identifier=a"|"b`, "organization:identifier=a",
		"_profile=a", "_profile:below=a", "identifier=a&name=a", "identifier=a,b&name=a",
	} {
		if other, twice := seen[form(query)]; twice {
			t.Errorf("%s and %s are both %s", query, other, form(query))
		}
		seen[form(query)] = query
	}
}

func TestParametersOf(t *testing.T) {
	kinds := map[string]int{}
	for _, typeName := range namesOfTypes() {
		for _, p := range ParametersOf(typeName) {
			kinds[p.Type]++
			if _, err := Parse(values(t, p.Name+"="), Options{Type: typeName}); err != nil {
				t.Errorf("%s.%s is listed and not known: %v", typeName, p.Name, err)
			}
		}
	}
	if kinds[""] != 0 || kinds["token"] == 0 || kinds["composite"] != 1 || kinds["special"] != 1 {
		t.Errorf("the kinds are %v", kinds)
	}
	includes, revIncludes := IncludesOf("Organization")
	if len(includes) == 0 || len(revIncludes) == 0 {
		t.Errorf("includes %v, revIncludes %v", includes, revIncludes)
	}
}
