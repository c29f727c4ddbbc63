package sqlplan

import (
	"strings"
	"testing"

	"github.com/paddock-health/paddock/apiserver/store"
)

// A count has only as many candidates as its limits allow. An exact count intersects lists.
func TestCounts(t *testing.T) {
	const bounded, intersected, excepted = "FROM scanned", " INTERSECT ", " EXCEPT "
	limits := CountLimits{Matches: 1001, Candidates: 5000}
	female, exactly := code("gender", "female"), store.TextIs{Param: "family", Match: store.Exactly, Text: "Smith"}
	common := code("gender", "common")
	for _, c := range []struct {
		name         string
		where        store.Condition
		limits       CountLimits
		records      float64
		has, without []string
	}{
		{name: "all records", limits: limits, without: []string{bounded}},
		{name: "a code", where: code("identifier", "1"), limits: limits, without: []string{bounded}},
		{name: "a prefix", where: smith, limits: limits, has: []string{bounded, "LIMIT 5000 + 1"}},
		{name: "presence", where: store.Present{Param: "family"}, limits: limits, has: []string{bounded}},
		{name: "a common code", where: common, without: []string{bounded, intersected, "few", "CROSS JOIN"}},
		{name: "a common code, not exactly", where: common, limits: limits, without: []string{bounded, "few", "CROSS JOIN"}},
		{name: "a common code, presence and absence", where: store.All{common, store.Present{Param: "phone"}, store.Not{Condition: store.Present{Param: "birthdate"}}}, without: []string{bounded, intersected, "few", "CROSS JOIN"}},
		{name: "a common code and a list", where: store.All{common, smith}, has: []string{intersected, "x.present"}},
		{name: "exact", where: store.Present{Param: "family"}, without: []string{bounded, intersected}},
		{name: "two lists", where: store.All{smith, female}, has: []string{intersected}, without: []string{bounded, excepted}},
		{name: "a list and the opposite of one", where: store.All{smith, store.Not{Condition: female}}, has: []string{excepted}, without: []string{intersected}},
		{name: "two opposites", where: store.All{store.Not{Condition: smith}, store.Not{Condition: female}}, has: []string{excepted, "NOT x.deleted"}, without: []string{intersected}},
		{name: "a list of candidates", where: store.All{female, exactly}, has: []string{intersected, "r.vals LIKE"}},
		{name: "the opposite of a list of candidates", where: store.All{female, smith, store.Not{Condition: exactly}}, has: []string{intersected}, without: []string{excepted}},
		{name: "a list and a test", where: store.All{smith, store.Present{Param: "given"}}, without: []string{intersected, excepted}},
		{name: "two lists of many records", where: store.All{smith, female}, records: maxIntersected + 1, without: []string{intersected}},
	} {
		t.Run(c.name, func(t *testing.T) {
			sql, args, err := searchOf(t, testIndex(t, &database{records: c.records}), store.Query{Where: c.where}).Count(patient, c.limits)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range c.has {
				if !strings.Contains(sql, text) {
					t.Errorf("no %q in %s", text, sql)
				}
			}
			for _, text := range c.without {
				if strings.Contains(sql, text) {
					t.Errorf("%q in %s", text, sql)
				}
			}
			if n := strings.Count(sql, "$"); n < len(args) {
				t.Errorf("%d arguments for %s", len(args), sql)
			}
		})
	}
}
