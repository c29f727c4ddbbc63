package cluster

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/extraction"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/order"
	"github.com/paddock-health/paddock/hack/test/searchcost"
)

var (
	costPatients = flag.Int("patients", 3000, "how many Patients the queries of TestSearchCosts search")
	costQueries  = flag.Int("queries", 500, "how many queries TestSearchCosts sends")
)

// costSite is a site with the records of a practice in its index, and queries for them.
type costSite struct {
	*Store
	queries *searchcost.Generator
	ended   time.Time
	records int
}

func newCostSite(t *testing.T, patients int) *costSite {
	t.Helper()
	engine := &Cluster{synced: make(chan struct{}), queryTimeout: time.Minute, now: time.Now}
	close(engine.synced)
	site := &costSite{Store: &Store{engine: engine, index: newIndex(extraction.Extractor{})}, ended: time.Now().UTC()}
	began := site.ended.Add(-2 * time.Duration(patients) * time.Second)
	site.queries = searchcost.NewGenerator(1, began, site.ended)
	err := searchcost.Records(1, patients, func(ops []store.Op) error {
		site.queries.Sample(ops)
		for _, op := range ops {
			site.records++
			obj := &recordsv1.Record{ObjectMeta: metav1.ObjectMeta{Name: recordName(op.Key), UID: types.UID(recordName(op.Key)), ResourceVersion: strconv.Itoa(site.records)}}
			obj.Spec = recordsv1.RecordSpec{Type: op.Key.Type, ID: op.Key.ID, Created: metav1.NewMicroTime(began.Add(time.Duration(site.records) * time.Second)), Body: string(op.Body.JSON)}
			obj.Spec.Updated = obj.Spec.Created
			site.index.apply(obj)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return site
}

// cost is what a search has cost.
type cost struct {
	query string
	class string
	// passes is the number of records and values that the search visited, divided by the number of Patients.
	passes float64
	// took is the least of three times. Other work on the machine changes it, so it has no bound.
	took  time.Duration
	found int
}

func (s *costSite) cost(t *testing.T, query store.Query) cost {
	t.Helper()
	c := cost{took: time.Hour}
	for range 3 { // the collector may work in one of them
		began := time.Now()
		budget := newQueryBudget(t.Context(), time.Minute)
		page, err := s.index.search(query, order.Of(query), nil, budget)
		if err != nil {
			t.Fatal(err)
		}
		c.took, c.found = min(c.took, time.Since(began)), len(page.Records)
		c.passes = float64(budget.steps) / float64(*costPatients)
	}
	return c
}

// The bounds of a search are in passes: each Patient visited once is a pass. A search may take
// passesPerSearch, and passesOfClass in addition.
const passesPerSearch = 0.25

// passesOfClass are the exceptions. search-access-paths.md has their reasons.
var passesOfClass = map[string]float64{
	"total": 4, "`:contains`": 2.5, "`:missing`": 2.5, "chain, `_has`": 2, "sorted": 2.5, "several filters": 2,
}

// TestSearchCosts bounds how many records and values generated queries visit.
func TestSearchCosts(t *testing.T) {
	site := newCostSite(t, *costPatients)
	code := "patients-0000777"
	identifier := store.Query{Types: []string{"Patient"}, Count: 20, Total: store.TotalNone, Where: store.TokenIs{Param: "identifier", Code: &code}}
	if c := site.cost(t, identifier); c.found != 1 || c.passes > passesPerSearch {
		t.Errorf("a search by identifier finds %d records in %.2f passes, want 1 in at most %.2f", c.found, c.passes, passesPerSearch)
	}
	slow := identifier
	slow.Where = store.Not{Condition: store.Not{Condition: identifier.Where}} // no list has the records that meet it
	if c := site.cost(t, slow); c.found != 1 || c.passes < 1 {
		t.Errorf("a search that tests each Patient finds %d records in %.2f passes, want 1 in at least one pass", c.found, c.passes)
	}
	var costs []cost
	for range *costQueries {
		q := site.queries.Query()
		query, err := q.Parse(site.ended)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		c := site.cost(t, query)
		c.query, c.class = q.String(), q.Exception()
		if most := passesPerSearch + passesOfClass[c.class]; c.passes > most {
			t.Errorf("%.2f passes, at most %.2f wanted: %s", c.passes, most, q)
		}
		costs = append(costs, c)
	}
	slices.SortFunc(costs, func(a, b cost) int { return cmp.Compare(b.passes, a.passes) })
	for _, c := range costs[:20] {
		t.Logf("%8s, %6.2f passes, %3d records: %s", c.took.Round(time.Microsecond), c.passes, c.found, c.query)
	}
	for class := range passesOfClass {
		of := slices.DeleteFunc(slices.Clone(costs), func(c cost) bool { return c.class != class })
		if len(of) > 0 {
			t.Logf("%s: %d queries, %.2f passes at worst", class, len(of), of[0].passes)
		}
	}
	slices.SortFunc(costs, func(a, b cost) int { return cmp.Compare(b.took, a.took) })
	at := func(share float64) time.Duration { return costs[int((1-share)*float64(len(costs)-1))].took }
	t.Logf("%d records: p50 %s, p95 %s, p99 %s, worst %s", site.records, at(.5), at(.95), at(.99), at(1))
}

// TestSearchCostClasses shows that each class has a row in the documentation.
func TestSearchCostClasses(t *testing.T) {
	text, err := os.ReadFile("../../../docs/decisions/search-access-paths.md")
	if err != nil {
		t.Fatal(err)
	}
	for class, passes := range passesOfClass {
		if row := fmt.Sprintf("| %s | %g passes |", class, passes); !strings.Contains(string(text), row) {
			t.Errorf("docs/decisions/search-access-paths.md has no row %q", row)
		}
	}
}
