// Package storetest is the suite that every storage engine passes unchanged. It
// owns the scenarios; an engine's package owns how to open and break its stores.
package storetest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Open opens two replicas of one site that holds nothing yet. Their records are
// indexed by Extract.
type Open func(t *testing.T) (first, second store.Store)

// Run runs the suite.
func Run(t *testing.T, open Open) {
	for name, test := range map[string]func(*testing.T, Open){
		"create, update and delete":       testLifecycle,
		"recreate":                        testRecreate,
		"purge":                           testPurge,
		"preconditions":                   testPreconditions,
		"put what is stored":              testUnchanged,
		"put the same JSON value":         testSameValue,
		"ids":                             testIDs,
		"bytes":                           testBytes,
		"times rise":                      testTimesRise,
		"history":                         testHistory,
		"history by time":                 testHistoryPeriods,
		"history of a type and a site":    testHistoryOfMany,
		"history refuses other positions": testHistoryPositions,
		"history pages under writes":      testHistoryPagingUnderWrites,
		"several records in one write":    testSeveral,
		"metadata":                        testMetadata,
		"metadata is guarded":             testMetadataGuards,
		"metadata races with bodies":      testMetadataRace,
		"claims of a name":                testNameClaims,
		"claims of an interval":           testIntervalClaims,
		"claims that expire":              testClaimExpiry,
		"claims move":                     testClaimMove,
		"search orders and pages":         testSearchPages,
		"search truth":                    testSearchTruth,
		"search ranges":                   testSearchRanges,
		"search includes":                 testSearchIncludes,
		"search access":                   testSearchAccess,
		"search in hierarchies":           testHierarchies,
		"ambiguous references":            testAmbiguousReferences,
		"search skips":                    testSearchSkips,
		"search totals":                   testSearchTotals,
		"search in a room":                testSearchRooms,
		"search refuses other positions":  testSearchPositions,
		"paging under writes":             testPagingUnderWrites,
		"replicas":                        testReplicas,
		"polling loses nothing":           testPolling,
		"one winner by version":           testOneWinnerByVersion,
		"one winner of creation":          testOneWinnerOfCreation,
		"one winner of an interval":       testOneWinnerOfInterval,
		"no update lost":                  testNoUpdateLost,
		"every write is one version":      testEveryWriteIsOneVersion,
		"concurrent delete, put and read": testDeletePutRead,
		"required records":                testRequired,
		"removal of what is referred to":  testUnreferenced,
		"what refers and what is not":     testMentions,
		"several records that refer":      testReferencesInOneWrite,
		"references race with removals":   testReferencesRace,
		"references race in circles":      testCircleRace,
	} {
		t.Run(name, func(t *testing.T) { test(t, open) })
	}
}

const patient = "Patient"

var patients = []string{patient}

func key(id string) store.Key { return store.Key{Type: patient, ID: id} }

// body is a JSON text with a counter in it and the holes that a facade leaves.
func body(n int) store.Body {
	return text(fmt.Sprintf(`{"resourceType":"Patient","id":"","meta":{},"multipleBirthInteger":%d}`, n))
}

func text(content string) store.Body {
	return store.Body{JSON: []byte(content), IDOffset: 30, MetaOffset: 41}
}

// counter reads back what body wrote.
func counter(t *testing.T, r store.Record) int {
	t.Helper()
	const before = len(`{"resourceType":"Patient","id":"","meta":{},"multipleBirthInteger":`)
	n, err := strconv.Atoi(string(r.Body.JSON[before : len(r.Body.JSON)-1]))
	if err != nil {
		t.Fatalf("body of %v: %v", r.Key, err)
	}
	return n
}

func write(t *testing.T, s store.Store, op store.Op) store.Result {
	t.Helper()
	results, err := s.Write(t.Context(), []store.Op{op})
	if err != nil {
		t.Fatalf("write %v: %v", op.Key, err)
	}
	if len(results) != 1 {
		t.Fatalf("write %v: got %d results, want 1", op.Key, len(results))
	}
	return results[0]
}

func put(id string, b store.Body) store.Op {
	return store.Op{Kind: store.Put, Key: key(id), Method: store.MethodPut, Body: b}
}

func del(id string) store.Op {
	return store.Op{Kind: store.Delete, Key: key(id), Method: store.MethodDelete}
}

func get(t *testing.T, s store.Store, id string) store.Record {
	t.Helper()
	r, err := s.Get(t.Context(), key(id))
	if err != nil {
		t.Fatalf("get %s: %v", id, err)
	}
	return r
}

func search(t *testing.T, s store.Store, q store.Query) store.Page {
	t.Helper()
	page, err := s.Search(t.Context(), q)
	if err != nil {
		t.Fatalf("search %+v: %v", q, err)
	}
	return page
}

// walk collects the ids of all pages of a query.
func walk(t *testing.T, s store.Store, q store.Query) []string {
	t.Helper()
	ids := []string{}
	for _, r := range walkRecords(t, s, q) {
		ids = append(ids, r.Key.ID)
	}
	return ids
}

// walkRecords collects the records of all pages of a query.
func walkRecords(t *testing.T, s store.Store, q store.Query) []store.Record {
	t.Helper()
	var all []store.Record
	for range 100_000 {
		page := search(t, s, q)
		if len(page.Records) > q.Count {
			t.Fatalf("search %+v: a page has %d records", q, len(page.Records))
		}
		all = append(all, page.Records...)
		if page.Next == nil {
			return all
		}
		q.After = page.Next
	}
	t.Fatalf("search %+v: pages without end", q)
	return nil
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// within waits for a condition that must come true within the second that
// replicas have to learn of each other's writes; machines under load get more.
func within(t *testing.T, what string, condition func() bool) {
	t.Helper()
	start := time.Now()
	for !condition() {
		if time.Since(start) > 5*time.Second {
			t.Fatalf("%s: not within %s", what, time.Since(start))
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// random is seeded with a constant: a failure repeats.
func random() *rand.Rand { return rand.New(rand.NewPCG(4, 2)) }
