package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

func testLifecycle(t *testing.T, open Open) {
	s, _ := open(t)
	if _, err := s.Get(t.Context(), key("rex")); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("get before create: got %v, want ErrNotFound", err)
	}
	before := time.Now().Add(-time.Second)
	created := write(t, s, store.Op{Kind: store.Put, Key: key("rex"), Method: store.MethodPost, Body: body(1)})
	same(t, "outcome of create", created.Outcome, store.Created)
	same(t, "version of create", created.Record.Version, int64(1))
	same(t, "method of create", created.Record.Method, store.MethodPost)
	if created.Record.UID == "" || created.Record.Revision == "" {
		t.Errorf("create: got %+v, want a uid and a revision", created.Record)
	}
	if created.Record.Created.Before(before) || !created.Record.Created.Equal(created.Record.Updated) {
		t.Errorf("create: got the times %v and %v, want the same current time", created.Record.Created, created.Record.Updated)
	}
	same(t, "read after create", get(t, s, "rex"), created.Record)

	updated := write(t, s, put("rex", body(2)))
	same(t, "outcome of update", updated.Outcome, store.Updated)
	same(t, "version of update", updated.Record.Version, int64(2))
	same(t, "uid after update", updated.Record.UID, created.Record.UID)
	same(t, "created after update", updated.Record.Created, created.Record.Created)
	if updated.Record.Revision == created.Record.Revision {
		t.Error("update: the revision did not change")
	}
	same(t, "read after update", get(t, s, "rex"), updated.Record)

	deleted := write(t, s, del("rex"))
	same(t, "outcome of delete", deleted.Outcome, store.Removed)
	same(t, "version of delete", deleted.Record.Version, int64(3))
	same(t, "tombstone", deleted.Record.Deleted, true)
	same(t, "body of tombstone", len(deleted.Record.Body.JSON), 0)
	_, err := s.Get(t.Context(), key("rex"))
	var gone *store.DeletedError
	if !errors.As(err, &gone) || gone.Version != 3 {
		t.Errorf("get after delete: got %v, want DeletedError at version 3", err)
	}
	again := write(t, s, del("rex"))
	same(t, "outcome of a second delete", again.Outcome, store.Unchanged)
	same(t, "outcome of deleting a record that never existed", write(t, s, del("never")).Outcome, store.Unchanged)

	for version, want := range map[int64]store.Record{1: created.Record, 2: updated.Record, 3: deleted.Record} {
		got, err := s.GetVersion(t.Context(), key("rex"), version)
		if err != nil {
			t.Fatalf("get version %d: %v", version, err)
		}
		got.Revision, want.Revision = "", ""
		if len(got.Body.JSON) == 0 && len(want.Body.JSON) == 0 {
			got.Body, want.Body = store.Body{}, store.Body{}
		}
		same(t, fmt.Sprintf("version %d", version), got, want)
	}
	for _, version := range []int64{0, -1, 4} {
		if _, err := s.GetVersion(t.Context(), key("rex"), version); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("get version %d: got %v, want ErrNotFound", version, err)
		}
	}
}

func testRecreate(t *testing.T, open Open) {
	s, _ := open(t)
	first := write(t, s, put("Rex", body(1)))
	write(t, s, del("rex"))
	again := write(t, s, put("REX", body(1)))
	same(t, "outcome", again.Outcome, store.Created)
	same(t, "version", again.Record.Version, int64(3))
	same(t, "spelling", again.Record.Key.ID, "Rex")
	if again.Record.UID == first.Record.UID {
		t.Error("a record created again has the uid of the deleted one")
	}
	if !again.Record.Created.After(first.Record.Created) {
		t.Error("a record created again was created no later than the deleted one")
	}
	page, err := s.History(t.Context(), store.HistoryQuery{Key: key("rex"), Count: 10, Deletions: true})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "versions", versions(page), []int64{3, 2, 1})
}

func versions(page store.Page) []int64 {
	list := []int64{}
	for _, r := range page.Records {
		list = append(list, r.Version)
	}
	return list
}

// testTombstonesAreNoRecords tests that Stats counts live records only.
func testTombstonesAreNoRecords(t *testing.T, open Open) {
	s, _ := open(t)
	write(t, s, put("rex", body(1)))
	write(t, s, put("bella", body(1)))
	write(t, s, del("rex"))
	same(t, "records after a delete", s.Stats().Records, int64(1))
	write(t, s, put("rex", body(2)))
	same(t, "records after a create over a tombstone", s.Stats().Records, int64(2))
	write(t, s, del("rex"))
	write(t, s, store.Op{Kind: store.Purge, Key: key("rex"), Method: store.MethodDelete})
	same(t, "records after the purge of a tombstone", s.Stats().Records, int64(1))
}

func testPurge(t *testing.T, open Open) {
	s, other := open(t)
	write(t, s, put("rex", body(1)))
	write(t, s, put("rex", body(2)))
	write(t, s, store.Op{Kind: store.Purge, Key: key("rex"), Method: store.MethodDelete})
	for name, replica := range map[string]store.Store{"same replica": s, "other replica": other} {
		if _, err := replica.Get(t.Context(), key("rex")); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: get after purge: got %v, want ErrNotFound", name, err)
		}
		if _, err := replica.GetVersion(t.Context(), key("rex"), 1); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: get version after purge: got %v, want ErrNotFound", name, err)
		}
		if _, err := replica.History(t.Context(), store.HistoryQuery{Key: key("rex"), Count: 10}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: history after purge: got %v, want ErrNotFound", name, err)
		}
	}
	same(t, "search after purge", allIDs(t, s, store.Query{Types: patients, Count: 10}), []string{})
	same(t, "records after purge", s.Stats().Records, int64(0))
	again := write(t, other, put("REX", body(3)))
	same(t, "a namesake starts over", []any{again.Outcome, again.Record.Version, again.Record.Key.ID}, []any{store.Created, int64(1), "REX"})
	write(t, other, put("rex", body(4)))
	page, err := s.History(t.Context(), store.HistoryQuery{Key: key("rex"), Count: 10})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "history of the namesake", []int{counter(t, page.Records[0]), counter(t, page.Records[1])}, []int{4, 3})
	same(t, "purge of a record that never existed", write(t, s, store.Op{Kind: store.Purge, Key: key("never")}).Outcome, store.Unchanged)
}

func testPreconditions(t *testing.T, open Open) {
	s, _ := open(t)
	live := write(t, s, put("live", body(1))).Record
	write(t, s, put("dead", body(1)))
	write(t, s, del("dead"))
	failed := func(err error) bool { var e *store.PreconditionError; return errors.As(err, &e) }
	gone := func(err error) bool { var e *store.DeletedError; return errors.As(err, &e) }
	absent := func(err error) bool { return errors.Is(err, store.ErrNotFound) }
	for name, test := range map[string]struct {
		id   string
		if_  store.Precondition
		want func(error) bool
	}{
		"absent on live":          {"live", store.Precondition{Absent: true}, failed},
		"present on none":         {"none", store.Precondition{Present: true}, absent},
		"present on deleted":      {"dead", store.Precondition{Present: true}, gone},
		"other version":           {"live", store.Precondition{Version: 2}, failed},
		"version on none":         {"none", store.Precondition{Version: 1}, failed},
		"version on deleted":      {"dead", store.Precondition{Version: 2}, failed},
		"absent at none":          {"none", store.Precondition{Absent: true, Version: 1}, failed},
		"absent at another":       {"dead", store.Precondition{Absent: true, Version: 1}, failed},
		"absent at, on live":      {"live", store.Precondition{Absent: true, Version: 1}, failed},
		"other revision":          {"live", store.Precondition{Revision: live.Revision + "0"}, failed},
		"other uid":               {"live", store.Precondition{UID: "other"}, failed},
		"right version, not uid":  {"live", store.Precondition{Version: 1, UID: "other"}, failed},
		"right uid, not revision": {"live", store.Precondition{UID: live.UID, Revision: live.Revision + "0"}, failed},
	} {
		for _, kind := range []store.OpKind{store.Put, store.Delete, store.Purge} {
			_, err := s.Write(t.Context(), []store.Op{{Kind: kind, Key: key(test.id), Method: store.MethodPut, Body: body(9), If: test.if_}})
			if !test.want(err) {
				t.Errorf("%s, operation %d: unexpected error %v", name, kind, err)
			}
		}
	}
	same(t, "nothing was written", get(t, s, "live"), live)
	var refused *store.PreconditionError
	_, err := s.Write(t.Context(), []store.Op{{Kind: store.Put, Key: key("LIVE"), Body: body(9), If: store.Precondition{Version: 7}}})
	if !errors.As(err, &refused) || refused.Current == nil || refused.Current.Version != 1 {
		t.Errorf("a failed precondition: got %v, want a PreconditionError with the current version 1", err)
	}
	met := put("live", body(2))
	met.If = store.Precondition{Present: true, Version: 1, Revision: live.Revision, UID: live.UID}
	same(t, "all met", write(t, s, met).Record.Version, int64(2))
	fresh := put("dead", body(2))
	fresh.If = store.Precondition{Absent: true}
	same(t, "absent on deleted", write(t, s, fresh).Outcome, store.Created)
	write(t, s, del("dead"))
	fresh.If.Version = 4
	same(t, "absent at the version that deleted it", write(t, s, fresh).Outcome, store.Created)
}

func testUnchanged(t *testing.T, open Open) {
	s, other := open(t)
	first := write(t, s, put("rex", body(1)))
	for _, replica := range []store.Store{s, other} {
		again := write(t, replica, put("rex", body(1)))
		same(t, "outcome", again.Outcome, store.Unchanged)
		same(t, "record", again.Record, first.Record)
	}
	write(t, other, put("rex", body(2)))
	same(t, "put of a body that only the index of the replica has", write(t, s, put("rex", body(1))).Record.Version, int64(3))
}

// testSameValue puts bodies with the stored JSON value in other bytes, and bodies with other
// values.
func testSameValue(t *testing.T, open Open) {
	s, other := open(t)
	stored := text(`{"resourceType":"Patient","id":"","meta":{},"name":[{"text":"Zoë"},{"text":"Rex"}],"weight":1.50}`)
	first := write(t, s, put("rex", stored))
	for name, body := range map[string]store.Body{
		"members in another order": {
			JSON:     []byte(`{"meta":{},"weight":1.50,"id":"","name":[{"text":"Zoë"},{"text":"Rex"}],"resourceType":"Patient"}`),
			IDOffset: 30, MetaOffset: 9,
		},
		"white space and escapes": {
			JSON:     []byte("{ \"resourceType\": \"Patient\",\n\t\"id\": \"\", \"meta\": { }, \"name\": [{\"text\":\"Zo\\u00eb\"}, {\"text\":\"\\u0052ex\"}],\r\n\"weight\": 1.50 }"),
			IDOffset: 36, MetaOffset: 49,
		},
	} {
		for _, replica := range []store.Store{s, other} {
			again := write(t, replica, put("rex", body))
			same(t, name+": outcome", again.Outcome, store.Unchanged)
			same(t, name+": record", again.Record, first.Record)
		}
	}
	for version, content := range []string{
		`"name":[{"text":"Rex"},{"text":"Zoë"}],"weight":1.50`,
		`"name":[{"text":"Rex"},{"text":"Zoë"}],"weight":1.5`,
		`"name":[{"text":"Rex"},{"text":"Zoë "}],"weight":1.5`,
		`"name":[{"text":"Rex"},{"tetx":"Zoë "}],"weight":1.5`,
	} {
		changed := write(t, s, put("rex", text(`{"resourceType":"Patient","id":"","meta":{},`+content+`}`)))
		same(t, content, changed.Record.Version, int64(version+2))
	}
}

func testIDs(t *testing.T, open Open) {
	s, _ := open(t)
	ids := []string{
		"a", "1", "-", ".", "--", "..", "-a", "a-", ".a", "a.", "a..b", "a.-b", "a-.b", "x.61", "X.61", "x.", "x", "x.x.61",
		"x.2d", "a.history", strings.Repeat("a", 64), strings.Repeat("-", 64), strings.Repeat(".", 64), "0.0", "patient.a",
	}
	folded := map[string]string{}
	for i, id := range ids {
		if _, taken := folded[strings.ToLower(id)]; !taken {
			folded[strings.ToLower(id)] = id
		}
		write(t, s, put(id, body(i)))
	}
	for i, id := range ids {
		r := get(t, s, strings.ToUpper(id))
		same(t, "spelling of "+id, r.Key.ID, folded[strings.ToLower(id)])
		if id != "x.61" {
			same(t, "body of "+id, counter(t, r), i)
		}
	}
	found := allIDs(t, s, store.Query{Types: patients, Count: 7, Sort: []store.Sort{{Field: store.SortID}}})
	same(t, "number of records", len(found), len(folded))
	if _, err := s.Get(t.Context(), store.Key{Type: "Person", ID: "a"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("get of the id with another type: got %v, want ErrNotFound", err)
	}
}

func testBytes(t *testing.T, open Open) {
	s, _ := open(t)
	const head = `{"resourceType":"Patient","id":"","meta":{}`
	for name, json := range map[string]string{
		"numbers":       head + `,"a":1.50,"b":1e400,"c":-0.0,"d":100000000000000000000000001,"e":1E+2}`,
		"white space":   head + " ,\n\t\"a\" : [ 1 , 2 ]\r\n } \n",
		"key order":     head + `,"z":1,"a":2,"_a":{"id":"x"}}`,
		"unicode":       head + `,"a":"Füchslein 🦊 日本 \u0000 \u2028 \ud83e\udd8a","b":"` + "\u2028\u00e9" + `"}`,
		"markup":        head + `,"text":{"div":"<div xmlns=\"http://www.w3.org/1999/xhtml\">a &amp; b</div>"}}`,
		"escapes":       head + `,"\u0061":"\/\b\f\n\r\t\"\\"}`,
		"large":         head + `,"a":"` + strings.Repeat("paddock ", 20_000) + `"}`,
		"only the head": head + `}`,
	} {
		want := text(json)
		id := strings.ReplaceAll(name, " ", "-")
		same(t, name+": what the write returns", string(write(t, s, put(id, want)).Record.Body.JSON), json)
		same(t, name+": what is read", get(t, s, id).Body, want)
		write(t, s, put(id, body(1)))
		past, err := s.GetVersion(t.Context(), key(id), 1)
		if err != nil {
			t.Fatal(err)
		}
		same(t, name+": what history keeps", past.Body, want)
	}
}

func testTimesAscend(t *testing.T, open Open) {
	s, other := open(t)
	last := write(t, s, put("rex", body(0))).Record.Updated
	for i := 1; i < 12; i++ {
		r := write(t, []store.Store{s, other}[i%2], put("rex", body(i))).Record
		if !r.Updated.After(last) {
			t.Fatalf("version %d was updated at %v, the one before at %v", r.Version, r.Updated, last)
		}
		if r.Updated.Truncate(time.Millisecond) != r.Updated || r.Updated.Location() != time.UTC {
			t.Fatalf("updated is %v, want UTC in milliseconds", r.Updated)
		}
		last = r.Updated
	}
}

func testHistory(t *testing.T, open Open) {
	s, other := open(t)
	for i := 1; i <= 5; i++ {
		write(t, s, put("rex", body(i)))
	}
	write(t, s, del("rex"))
	patch := put("rex", body(7))
	patch.Method = store.MethodPatch
	write(t, other, patch)

	all := store.HistoryQuery{Key: key("REX"), Count: 3, Deletions: true}
	var got []int64
	for {
		page, err := other.History(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "total", page.Total, int64(7))
		got = append(got, versions(page)...)
		if all.After = page.Next; page.Next == nil {
			break
		}
		if len(got) == 3 {
			write(t, s, put("rex", body(8))) // a new version does not change the following pages
			all.Key = key("rex")
			page, err = other.History(t.Context(), store.HistoryQuery{Key: key("rex"), Count: 0})
			if err != nil {
				t.Fatal(err)
			}
			same(t, "total without deletions", page.Total, int64(7))
			same(t, "records of an empty page", len(page.Records), 0)
			write(t, s, store.Op{Kind: store.Purge, Key: key("other")})
			break
		}
	}
	page, err := other.History(t.Context(), store.HistoryQuery{Key: key("rex"), Count: 100, After: all.After, Deletions: true})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "versions", append(got, versions(page)...), []int64{7, 6, 5, 4, 3, 2, 1})
	page, err = s.History(t.Context(), store.HistoryQuery{Key: key("rex"), Count: 100})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "versions without deletions", versions(page), []int64{8, 7, 5, 4, 3, 2, 1})
	same(t, "method", page.Records[1].Method, store.MethodPatch)
	for _, position := range []string{"", "{}", "null", `{"v":-1}`, "x"} {
		if _, err := s.History(t.Context(), store.HistoryQuery{Key: key("rex"), Count: 1, After: store.Position(position)}); !errors.Is(err, store.ErrBadPosition) {
			t.Errorf("position %q: got %v, want ErrBadPosition", position, err)
		}
	}
}

func testSeveral(t *testing.T, open Open) {
	s, _ := open(t)
	_, err := s.Write(t.Context(), []store.Op{put("one", body(1)), put("two", body(2))})
	same(t, "atomic", s.Atomic(), !errors.Is(err, store.ErrNotAtomic))
	if errors.Is(err, store.ErrNotAtomic) {
		same(t, "records after a refused write", allIDs(t, s, store.Query{Types: patients, Count: 10}), []string{})
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Write(t.Context(), []store.Op{put("three", body(3)), {Kind: store.Delete, Key: key("one"), If: store.Precondition{Version: 9}}})
	var refused *store.PreconditionError
	if !errors.As(err, &refused) {
		t.Fatalf("got %v, want a PreconditionError", err)
	}
	same(t, "all or none", allIDs(t, s, store.Query{Types: patients, Count: 10, Sort: []store.Sort{{Field: store.SortID}}}), []string{"one", "two"})
}
