package searchcost

import (
	"cmp"
	"flag"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

var (
	patients = flag.Int("patients", 5000, "how many Patients there are")
	queries  = flag.Int("queries", 400, "how many queries to ask")
	seed     = flag.Uint64("seed", 1, "what records and queries are made from")
)

// cost is what a query came to.
type cost struct {
	query   Query
	pages   int
	records int
	took    time.Duration
}

// ask asks a query and returns its cost.
func (p *practice) ask(t *testing.T, q Query) cost {
	t.Helper()
	asked, err := q.Parse(p.generator.ended)
	if err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	search := func(site *postgres.Store) int {
		found, err := site.Search(t.Context(), asked)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		return len(found.Records)
	}
	for range 2 { // the first time finds the lists that are too long, and prepares the statements
		p.pages.reset()
		search(p.site)
	}
	search(p.plain)
	began := time.Now()
	records := search(p.plain)
	return cost{q, p.pages.count, records, time.Since(began)}
}

// class is what the queries of an exception came to.
type class struct{ queries, beyond, worst int }

// minWithinBound is the share of all queries that touch no more pages than a query without an
// exception may.
const minWithinBound = 0.6

// TestCosts bounds the pages that generated queries touch.
func TestCosts(t *testing.T) {
	p := newPractice(t)
	var costs []cost
	classes := map[string]*class{}
	within := 0
	for range *queries {
		q := p.generator.Query()
		c := p.ask(t, q)
		costs = append(costs, c)
		if most := q.most(*patients, c.records); c.pages > most {
			t.Errorf("%d pages for %d records, at most %d wanted: %s", c.pages, c.records, most, q)
		}
		name := cmp.Or(q.Exception(), "none")
		if classes[name] == nil {
			classes[name] = &class{}
		}
		of := classes[name]
		of.queries++
		of.worst = max(of.worst, c.pages)
		if isWithinBound(c.pages, c.records) {
			within++
		} else {
			of.beyond++
		}
	}
	if share := float64(within) / float64(*queries); share < minWithinBound {
		t.Errorf("%.2f of the queries are within the bound of queries without an exception, want %.2f", share, minWithinBound)
	}
	for name, of := range classes {
		t.Logf("%s: %d queries, %d beyond the bound, worst %d pages, %.2f for each Patient", name, of.queries, of.beyond, of.worst, float64(of.worst)/float64(*patients))
	}
	slices.SortFunc(costs, func(a, b cost) int { return cmp.Compare(b.pages, a.pages) })
	for _, c := range costs[:min(20, len(costs))] {
		t.Logf("%7d pages, %3d records, %6.1f ms: %s", c.pages, c.records, c.took.Seconds()*1000, c.query)
	}
	t.Logf("%d queries, %d Patients, %d within the bound", len(costs), *patients, within)
	slices.SortFunc(costs, func(a, b cost) int { return cmp.Compare(a.took, b.took) })
	for _, total := range []string{"", "none", "estimate", "accurate"} {
		some := slices.DeleteFunc(slices.Clone(costs), func(c cost) bool { return total != "" && c.query.values.Get("_total") != total })
		at := func(share float64) time.Duration { return some[int(share*float64(len(some)-1))].took }
		t.Logf("%d queries with _total=%s: p50 %s, p90 %s, p95 %s, p99 %s, worst %s", len(some), total, at(.5), at(.9), at(.95), at(.99), at(1))
	}
	p.plantSlowQuery(t)
}

// plantSlowQuery shows that the bound catches a search whose access path is gone.
func (p *practice) plantSlowQuery(t *testing.T) {
	t.Helper()
	q := Query{"Patient", url.Values{"identifier": {"https://clinic.example.org/patients|patients-0000777"}, "_total": {"none"}}}
	if c := p.ask(t, q); c.records != 1 || c.pages > q.most(*patients, c.records) {
		t.Errorf("%d pages for %d records: %s", c.pages, c.records, q)
	}
	p.execute(t, "ALTER TABLE ix_code DROP CONSTRAINT ix_code_pkey")
	if c := p.ask(t, q); c.records != 1 || c.pages <= q.most(*patients, c.records) {
		t.Errorf("%d pages for %d records without an index, which the bound does not catch: %s", c.pages, c.records, q)
	}
}

// TestExceptions shows that each exception has a row in the documentation.
func TestExceptions(t *testing.T) {
	text, err := os.ReadFile("../../../docs/decisions/search-access-paths.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range exceptions {
		if row := fmt.Sprintf("| %s | %g |", e.name, e.pagesPerPatient); !strings.Contains(string(text), row) {
			t.Errorf("docs/decisions/search-access-paths.md has no row %q", row)
		}
	}
}
