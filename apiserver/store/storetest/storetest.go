// Package storetest is the conformance test suite of storage engines. The tests of each engine run the
// suite unchanged. They open the stores, and test in addition how the engine itself can fail.
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

// Open returns two Stores of one new, empty site, as two API servers have them. They must use an
// Extractor of this package, and implement store.Archive and store.ChangeLog.
type Open func(t *testing.T) (first, second store.Store)

// Run runs the suite as subtests of t.
func Run(t *testing.T, open Open) {
	for name, test := range map[string]func(*testing.T, Open){
		"create, update and delete":       testLifecycle,
		"recreate":                        testRecreate,
		"purge":                           testPurge,
		"tombstones are no records":       testTombstonesAreNoRecords,
		"preconditions":                   testPreconditions,
		"put of the stored body":          testUnchanged,
		"put the same JSON value":         testSameValue,
		"ids":                             testIDs,
		"bytes":                           testBytes,
		"update times ascend":             testTimesAscend,
		"history":                         testHistory,
		"history by time":                 testHistoryPeriods,
		"history of a type and a site":    testHistoryOfMany,
		"history refuses other positions": testHistoryPositions,
		"history pages under writes":      testHistoryPagingUnderWrites,
		"history access":                  testHistoryAccess,
		"history of a hidden record":      testHiddenHistory,
		"approval":                        testApprove,
		"several records in one write":    testSeveral,
		"metadata":                        testMetadata,
		"metadata is guarded":             testMetadataGuards,
		"metadata races with bodies":      testMetadataRace,
		"claims of a name":                testNameClaims,
		"claims of an interval":           testIntervalClaims,
		"claims expire":                   testClaimExpiry,
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
		"search refuses other positions":  testSearchPositions,
		"search by many conditions":       testManyConditions,
		"paging under writes":             testPagingUnderWrites,
		"replicas":                        testReplicas,
		"consistent search":               testConsistentSearch,
		"polling misses no version":       testPolling,
		"one winner by version":           testOneWinnerByVersion,
		"one winner of creation":          testOneWinnerOfCreation,
		"one winner of an interval":       testOneWinnerOfInterval,
		"no update lost":                  testNoUpdateLost,
		"every write is one version":      testEveryWriteIsOneVersion,
		"concurrent delete, put and read": testDeletePutRead,
		"events of a record":              testEventsOfRecord,
		"events of refused writes":        testNoEvents,
		"events of several records":       testEventsOfSeveral,
		"events of a record race":         testEventsRace,
		"events of a subject race":        testSubjectRace,
		"events of an erased record":      testErase,
		"retention":                       testRetention,
		"events survive a purge":          testEventsOfPurge,
		"envelopes of events":             testEnvelopes,
		"many events in one write":        testManyEvents,
		"required records":                testRequired,
		"removal of referenced records":   testUnreferenced,
		"mentions":                        testMentions,
		"hidden referring records":        testHiddenReferrers,
		"references within one write":     testReferencesInOneWrite,
		"references race with removals":   testReferencesRace,
		"circular references race":        testCircleRace,
		"archive":                         testArchive,
		"archive catches up":              testArchiveCatchesUp,
		"archive refuses":                 testArchiveRefuses,
		"archive of parts":                testArchiveParts,
		"change log":                      testChangeLog,
	} {
		t.Run(name, func(t *testing.T) { test(t, open) })
	}
}

const patient = "Patient"

var patients = []string{patient}

func key(id string) store.Key { return store.Key{Type: patient, ID: id} }

// body returns a JSON text with a counter, and with an empty id and meta.
func body(n int) store.Body {
	return text(fmt.Sprintf(`{"resourceType":"Patient","id":"","meta":{},"multipleBirthInteger":%d}`, n))
}

func text(content string) store.Body {
	return store.Body{JSON: []byte(content), IDOffset: 30, MetaOffset: 41}
}

// counter returns the counter in a body that was made by body.
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

// allIDs returns the ids on all pages of a query.
func allIDs(t *testing.T, s store.Store, q store.Query) []string {
	t.Helper()
	ids := []string{}
	for _, r := range allRecords(t, s, q) {
		ids = append(ids, r.Key.ID)
	}
	return ids
}

// allRecords returns the records on all pages of a query.
func allRecords(t *testing.T, s store.Store, q store.Query) []store.Record {
	t.Helper()
	var all []store.Record
	for range 100_000 {
		page := search(t, s, q)
		if len(page.Records) > q.Count {
			t.Fatalf("search %+v: a page has %d records, want at most %d", q, len(page.Records), q.Count)
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

// eventually waits until a condition is true. Replicas must learn of each other's writes within a
// second. The limit is 30 seconds, for machines under load.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	start := time.Now()
	for !condition() {
		if time.Since(start) > 30*time.Second {
			t.Fatalf("%s: still false after %s", what, time.Since(start))
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// random returns a source with a constant seed, so that failures can be reproduced.
func random() *rand.Rand { return rand.New(rand.NewPCG(4, 2)) }
