package cluster

import (
	"cmp"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/extraction"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/hack/test/searchcost"
)

// costSite returns a site with the records of a practice in its index, and queries for them.
func costSite(t *testing.T, patients int) (site *Store, queries *searchcost.Generator, ended time.Time, records int) {
	t.Helper()
	engine := &Cluster{synced: make(chan struct{}), queryTimeout: time.Minute, now: time.Now}
	close(engine.synced)
	site = &Store{engine: engine, index: newIndex(extraction.Extractor{})}
	ended = time.Now().UTC()
	began := ended.Add(-2 * time.Duration(patients) * time.Second)
	queries = searchcost.NewGenerator(1, began, ended)
	err := searchcost.Records(1, patients, func(ops []store.Op) error {
		queries.Sample(ops)
		for _, op := range ops {
			records++
			obj := &recordsv1.Record{ObjectMeta: metav1.ObjectMeta{Name: recordName(op.Key), UID: types.UID(recordName(op.Key)), ResourceVersion: strconv.Itoa(records)}}
			obj.Spec = recordsv1.RecordSpec{Type: op.Key.Type, ID: op.Key.ID, Created: metav1.NewMicroTime(began.Add(time.Duration(records) * time.Second)), Body: string(op.Body.JSON)}
			obj.Spec.Updated = obj.Spec.Created
			site.index.apply(obj)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return site, queries, ended, records
}

// threadTime returns the processor time of the calling thread.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	const ofThread = 1 // RUSAGE_THREAD
	var u syscall.Rusage
	if err := syscall.Getrusage(ofThread, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// The processor time of a search: some for the page, and some for each record of the site, because
// the worst search tests all of them.
const (
	timePerSearch = 10 * time.Millisecond
	timePerRecord = 10 * time.Microsecond
)

// TestSearchCosts bounds the processor time of generated queries. It is that of the thread, so other
// work on the machine hardly changes it. PADDOCK_COST_PATIENTS sets the number of Patients.
func TestSearchCosts(t *testing.T) {
	patients, err := strconv.Atoi(cmp.Or(os.Getenv("PADDOCK_COST_PATIENTS"), "3000"))
	if err != nil {
		t.Fatal(err)
	}
	site, queries, ended, records := costSite(t, patients)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	type cost struct {
		query string
		took  time.Duration
		found int
	}
	var costs []cost
	bound := timePerSearch + time.Duration(records)*timePerRecord
	for range 500 {
		q := queries.Query()
		query, err := q.Parse(ended)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		c := cost{query: q.String(), took: time.Hour}
		for range 2 { // the collector may work in one of them
			began := threadTime(t)
			page, err := site.Search(t.Context(), query)
			if err != nil {
				t.Fatalf("%s: %v", q, err)
			}
			c.took, c.found = min(c.took, threadTime(t)-began), len(page.Records)
		}
		if costs = append(costs, c); c.took > bound {
			t.Errorf("%s of the processor, at most %s wanted: %s", c.took, bound, q)
		}
	}
	slices.SortFunc(costs, func(a, b cost) int { return cmp.Compare(b.took, a.took) })
	for _, c := range costs[:20] {
		t.Logf("%8s, %3d records: %s", c.took.Round(time.Microsecond), c.found, c.query)
	}
	at := func(share float64) time.Duration { return costs[int((1-share)*float64(len(costs)-1))].took }
	t.Logf("%d records: p50 %s, p95 %s, p99 %s, worst %s", records, at(.5), at(.95), at(.99), at(1))
}
