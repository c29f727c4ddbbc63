package cluster

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/extraction"
	"github.com/paddock-health/paddock/apiserver/store"
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

// cost returns the processor time of a search, the least of three times, and the number of records on
// its page. It is that of the calling thread, so other work on the machine hardly changes it.
func (s *costSite) cost(t *testing.T, query store.Query) (took time.Duration, records int) {
	t.Helper()
	took = time.Hour
	for range 3 { // the collector may work in one of them
		began := threadTime(t)
		page, err := s.Search(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		took, records = min(took, threadTime(t)-began), len(page.Records)
	}
	return took, records
}

// threadTime returns the processor time of the calling thread.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
		t.Fatal(err)
	}
	return time.Duration(at.Nano())
}

// The bounds of the processor time of a search are in passes. A pass is the time of a search that
// tests each Patient for an identifier. A search may take passesPerSearch, and passesOfClass in addition.
const passesPerSearch = 0.25

// passesOfClass are the exceptions. search-access-paths.md has their reasons.
var passesOfClass = map[string]float64{
	"total": 8, "`:contains`": 6, "`:missing`": 6, "chain, `_has`": 2, "sorted": 8, "several filters": 6,
}

// TestSearchCosts bounds the processor time of generated queries.
func TestSearchCosts(t *testing.T) {
	site := newCostSite(t, *costPatients)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	code := "patients-0000777"
	identifier := store.Query{Types: []string{"Patient"}, Count: 20, Total: store.TotalNone, Where: store.TokenIs{Param: "identifier", Code: &code}}
	slow := identifier
	slow.Where = store.Not{Condition: store.Not{Condition: identifier.Where}} // no list has the records that meet it
	pass, found := site.cost(t, slow)
	if found != 1 {
		t.Fatalf("%d records have the identifier, want 1", found)
	}
	if took, _ := site.cost(t, identifier); took.Seconds() > passesPerSearch*pass.Seconds() {
		t.Errorf("a search by identifier takes %s, so the bound would not find one that tests each of %d records in %s", took, site.records, pass)
	}
	type cost struct {
		query, class string
		took         time.Duration
		passes       float64
		found        int
	}
	var costs []cost
	for range *costQueries {
		q := site.queries.Query()
		query, err := q.Parse(site.ended)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		c := cost{query: q.String(), class: q.Exception()}
		c.took, c.found = site.cost(t, query)
		c.passes = c.took.Seconds() / pass.Seconds()
		if most := passesPerSearch + passesOfClass[c.class]; c.passes > most {
			t.Errorf("%.2f passes, at most %.2f wanted: %s", c.passes, most, q)
		}
		costs = append(costs, c)
	}
	slices.SortFunc(costs, func(a, b cost) int { return cmp.Compare(b.took, a.took) })
	for _, c := range costs[:20] {
		t.Logf("%8s, %6.2f passes, %3d records: %s", c.took.Round(time.Microsecond), c.passes, c.found, c.query)
	}
	for class := range passesOfClass {
		of := slices.DeleteFunc(slices.Clone(costs), func(c cost) bool { return c.class != class })
		if len(of) > 0 {
			t.Logf("%s: %d queries, %.2f passes at worst", class, len(of), of[0].passes)
		}
	}
	at := func(share float64) time.Duration { return costs[int((1-share)*float64(len(costs)-1))].took }
	t.Logf("%d records, a pass takes %s: p50 %s, p95 %s, p99 %s, worst %s", site.records, pass, at(.5), at(.95), at(.99), at(1))
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
