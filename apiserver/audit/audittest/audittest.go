// Package audittest is the suite that the storage of audit logs passes in every engine.
package audittest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/audit"
)

// Open returns the storage of a new site, as two replicas have it.
type Open func(t *testing.T) (first, second audit.Storage)

// retention exceeds the age of all entries of the suite, except those to be trimmed.
const retention = 30 * 24 * time.Hour

// Run runs the suite on storages that open returns.
func Run(t *testing.T, open Open) {
	for name, test := range map[string]func(*testing.T, Open){
		"Filters":     testFilters,
		"Pages":       testPages,
		"AppendTwice": testAppendTwice,
		"Many":        testMany,
		"Replicas":    testReplicas,
		"Sites":       testSites,
		"Texts":       testTexts,
		"Trim":        testTrim,
	} {
		t.Run(name, func(t *testing.T) { test(t, open) })
	}
}

// Entry returns an entry that was recorded ago before now. change, unless nil, edits it.
func Entry(ago time.Duration, change func(*audit.Entry)) *audit.Entry {
	e := &audit.Entry{
		Time: time.Now().UTC().Add(-ago).Truncate(time.Microsecond), ID: rand.Int64N(1 << 60),
		Site: "1042", Request: "r", Caller: "alice", Subject: audit.User, API: "fhir",
		Interaction: "read", Action: audit.Read, Method: "GET", Type: "Patient", Status: 200,
	}
	if change != nil {
		change(e)
	}
	return e
}

func appendAll(t *testing.T, to audit.Storage, entries ...*audit.Entry) {
	t.Helper()
	if err := to.Append(t.Context(), entries); err != nil {
		t.Fatal(err)
	}
}

// search returns the texts of the entries found.
func search(t *testing.T, in audit.Storage, query audit.Query) []string {
	t.Helper()
	if query.Count == 0 {
		query.Count = 1000
	}
	found, err := in.Search(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	texts := make([]string, len(found))
	for i := range found {
		texts[i] = string(found[i].JSON())
	}
	return texts
}

func texts(entries ...*audit.Entry) []string {
	all := make([]string, len(entries))
	for i, e := range entries {
		all[i] = string(e.JSON())
	}
	return all
}

func testFilters(t *testing.T, open Open) {
	log, _ := open(t)
	read := Entry(1*time.Second, func(e *audit.Entry) { e.Records = audit.RecordsOf("Patient/Rex") })
	found := Entry(2*time.Second, func(e *audit.Entry) {
		e.Interaction, e.Records, e.Parameters = "search-type", audit.RecordsOf("Patient/ace", "Patient/rex", "Organization/o"), []string{"name"}
	})
	denied := Entry(3*time.Second, func(e *audit.Entry) { e.Status, e.Rule, e.Caller, e.Issuer = 403, "rbac", "bob", "clinic" })
	wrote := Entry(90*time.Minute, func(e *audit.Entry) {
		e.Interaction, e.Action, e.Records, e.Caller = "update", audit.Update, audit.RecordsOf("Patient/rex"), "bob \"é\""
	})
	down := Entry(49*time.Hour, func(e *audit.Entry) {
		e.Status, e.BreakGlass, e.Caller, e.Action, e.Interaction = 503, true, "", "", ""
	})
	appendAll(t, log, wrote, denied, read)
	appendAll(t, log, down, found)
	for name, test := range map[string]struct {
		query audit.Query
		want  []*audit.Entry
	}{
		"all":                {audit.Query{}, []*audit.Entry{read, found, denied, wrote, down}},
		"a record":           {audit.Query{Entity: "Patient/rex"}, []*audit.Entry{read, found, wrote}},
		"an included one":    {audit.Query{Entity: "Organization/o"}, []*audit.Entry{found}},
		"no such record":     {audit.Query{Entity: "Patient/re"}, nil},
		"a caller":           {audit.Query{Caller: "bob"}, []*audit.Entry{denied}},
		"a strange caller":   {audit.Query{Caller: "bob \"é\""}, []*audit.Entry{wrote}},
		"an action":          {audit.Query{Action: audit.Update}, []*audit.Entry{wrote}},
		"interactions":       {audit.Query{Interactions: []string{"update", "search-type"}}, []*audit.Entry{found, wrote}},
		"an outcome":         {audit.Query{Outcomes: []audit.Outcome{audit.MinorFailure}}, []*audit.Entry{denied}},
		"outcomes":           {audit.Query{Outcomes: []audit.Outcome{audit.MinorFailure, audit.MajorFailure}}, []*audit.Entry{denied, down}},
		"from":               {audit.Query{From: wrote.Time}, []*audit.Entry{read, found, denied, wrote}},
		"until":              {audit.Query{Until: wrote.Time}, []*audit.Entry{down}},
		"from and until":     {audit.Query{From: wrote.Time, Until: found.Time}, []*audit.Entry{denied, wrote}},
		"record and caller":  {audit.Query{Entity: "Patient/rex", Caller: "alice"}, []*audit.Entry{read, found}},
		"record and time":    {audit.Query{Entity: "Patient/rex", From: found.Time, Until: read.Time}, []*audit.Entry{found}},
		"record and outcome": {audit.Query{Entity: "Patient/rex", Outcomes: []audit.Outcome{audit.Success}, Action: audit.Update}, []*audit.Entry{wrote}},
		"after":              {audit.Query{After: denied.Position()}, []*audit.Entry{wrote, down}},
		"record, after":      {audit.Query{Entity: "Patient/rex", After: read.Position()}, []*audit.Entry{found, wrote}},
	} {
		if diff := cmp.Diff(texts(test.want...), search(t, log, test.query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// testTexts shows that texts that no entry can have find nothing.
func testTexts(t *testing.T, open Open) {
	log, _ := open(t)
	appendAll(t, log, Entry(time.Second, nil))
	for _, text := range []string{"alice\x00", "alice\xff"} {
		for _, query := range []audit.Query{{Caller: text}, {Action: audit.Action(text)}, {Interactions: []string{text}}, {Entity: text + "/rex"}, {Entity: "Patient/" + text}} {
			query.Count = 10
			if found := search(t, log, query); len(found) > 0 {
				t.Errorf("%+v: found %v", query, found)
			}
		}
	}
}

func testPages(t *testing.T, open Open) {
	log, _ := open(t)
	at := time.Now().UTC().Truncate(time.Microsecond)
	var all []*audit.Entry
	for i := range 25 { // several at one time, over three hours
		all = append(all, Entry(0, func(e *audit.Entry) {
			e.Time = at.Add(-time.Duration(i/3) * 20 * time.Minute)
			e.Records = audit.RecordsOf("Patient/rex")
		}))
	}
	appendAll(t, log, all...)
	for _, query := range []audit.Query{{Count: 4}, {Count: 4, Entity: "Patient/rex"}, {Count: 25}} {
		whole := query
		whole.Count = 1000
		want, got := search(t, log, whole), []string(nil)
		if len(want) != len(all) {
			t.Fatalf("%d entries, want %d", len(want), len(all))
		}
		for {
			page, err := log.Search(t.Context(), query)
			if err != nil {
				t.Fatal(err)
			}
			for i := range page {
				got = append(got, string(page[i].JSON()))
			}
			if len(page) < query.Count {
				break
			}
			query.After = page[len(page)-1].Position()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pages of %d (-want +got):\n%s", query.Count, diff)
		}
	}
}

// testAppendTwice appends the same batch twice, as after a lost response.
func testAppendTwice(t *testing.T, open Open) {
	log, _ := open(t)
	first, second := Entry(time.Second, nil), Entry(0, func(e *audit.Entry) { e.Records = audit.RecordsOf("Patient/rex", "Patient/ace") })
	appendAll(t, log, first, second)
	appendAll(t, log, first, second)
	if diff := cmp.Diff(texts(second, first), search(t, log, audit.Query{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// testMany stores more entries than fit into one object or row of any engine.
func testMany(t *testing.T, open Open) {
	log, other := open(t)
	const batches, size = 6, 300
	for b := range batches {
		batch := make([]*audit.Entry, size)
		for i := range batch {
			batch[i] = Entry(time.Duration(b)*time.Minute, func(e *audit.Entry) {
				e.Request = fmt.Sprintf("%x-%x", rand.Uint64(), rand.Uint64())
				e.Records = audit.RecordsOf(fmt.Sprintf("Patient/%x", rand.Uint64()), fmt.Sprintf("Patient/%d-%d", b, i))
			})
		}
		appendAll(t, log, batch...)
	}
	if got := search(t, other, audit.Query{Count: 10_000}); len(got) != batches*size {
		t.Errorf("%d entries, want %d", len(got), batches*size)
	}
	if got := search(t, other, audit.Query{Entity: "Patient/3-77"}); len(got) != 1 {
		t.Errorf("%d entries of one record, want 1", len(got))
	}
}

// testReplicas appends from two replicas at once.
func testReplicas(t *testing.T, open Open) {
	first, second := open(t)
	var all sync.WaitGroup
	for i, log := range []audit.Storage{first, second} {
		all.Go(func() {
			for n := range 10 {
				if err := log.Append(t.Context(), []*audit.Entry{Entry(0, func(e *audit.Entry) { e.Request = fmt.Sprintf("%d-%d", i, n) })}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	a, b := search(t, first, audit.Query{}), search(t, second, audit.Query{})
	if diff := cmp.Diff(a, b); diff != "" || len(a) != 20 {
		t.Errorf("%d entries, want 20 (-first +second):\n%s", len(a), diff)
	}
}

func testSites(t *testing.T, open Open) {
	log, _ := open(t)
	foreign, _ := open(t)
	appendAll(t, log, Entry(0, func(e *audit.Entry) { e.Records = audit.RecordsOf("Patient/rex") }))
	for _, query := range []audit.Query{{}, {Entity: "Patient/rex"}, {Caller: "alice"}} {
		if got := search(t, foreign, query); len(got) != 0 {
			t.Errorf("another site's entries: %s", strings.Join(got, "\n"))
		}
	}
}

func testTrim(t *testing.T, open Open) {
	log, second := open(t)
	fresh, old, older := Entry(0, nil), Entry(retention-48*time.Hour, nil), Entry(retention+48*time.Hour, nil)
	appendAll(t, log, older, old, fresh)
	if got := search(t, log, audit.Query{}); len(got) != 3 {
		t.Fatalf("%d entries before Trim, want 3", len(got))
	}
	if err := second.Trim(t.Context(), retention); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(texts(fresh, old), search(t, log, audit.Query{})); diff != "" {
		t.Errorf("after (-want +got):\n%s", diff)
	}
	appendAll(t, log, Entry(0, nil))
}
