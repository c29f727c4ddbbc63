package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// announced adds an event to an operation.
func announced(op store.Op) store.Op {
	op.Events = func(store.Change) []store.Event {
		return []store.Event{{ID: uuid.NewString(), Type: "changed", Subject: patient + "/" + op.Key.ID, Envelope: store.Envelope{JSON: []byte(`{"s":,"v":}`), SequenceOffset: 5, VersionOffset: 10}}}
	}
	return op
}

func posted(id string) store.Op {
	op := counterOp(id, 1)
	op.Method = store.MethodPost
	return op
}

func writeAll(t *testing.T, site store.Store, ops ...store.Op) {
	t.Helper()
	for _, op := range ops {
		if _, err := site.Write(t.Context(), []store.Op{op}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestConflictsInBatch sends writes in one statement, some of which fail because of other writes. The
// others are committed with their history, index rows, events and audit entries. If another write has created a
// record, the statement fails, and each write is repeated alone.
func TestConflictsInBatch(t *testing.T) {
	t.Parallel()
	t.Run("updates", func(t *testing.T) { testConflictsInBatch(t, false) })
	t.Run("updates and a create", func(t *testing.T) { testConflictsInBatch(t, true) })
}

func testConflictsInBatch(t *testing.T, isTaken bool) {
	siteKey := uuid.NewString()
	site := open(t, shared, siteKey, postgres.Options{})
	makePartitions(t)
	writeAll(t, site, counterOp("updated", 1), counterOp("deleted", 1), counterOp("changed", 1), counterOp("back", 1),
		store.Op{Kind: store.Delete, Key: store.Key{Type: patient, ID: "back"}})
	ops := []store.Op{
		announced(posted("new")), announced(counterOp("updated", 2)), announced(counterOp("changed", 2)),
		announced(store.Op{Kind: store.Delete, Key: store.Key{Type: patient, ID: "deleted"}}), announced(counterOp("back", 2)),
		announced(posted("Twice")), announced(posted("twice")),
	}
	others, repeated := []store.Op{counterOp("changed", 3)}, 0
	if isTaken {
		ops = append(ops, announced(posted("taken")))
		others, repeated = append(others, posted("taken")), len(ops)-1 // all but the second one of a record
	}
	var outcomes []store.Outcome
	var errs []error
	var alone int
	one := record(t, site, audit.Settings{})
	one.write = func(ctx context.Context, _ []store.Op) ([]store.Result, error) {
		outcomes, errs, alone = site.WriteTogether(ctx, ops, func() { writeAll(t, site, others...) })
		return nil, errors.New("which of them is the request's is not known")
	}
	_, _ = one.Write(t.Context(), ops[:1])
	if alone != repeated {
		t.Errorf("%d writes were repeated alone, want %d", alone, repeated)
	}
	var got []string
	for i, op := range ops {
		result := "stale"
		if errs[i] == nil {
			result = fmt.Sprint(outcomes[i])
		} else if !errors.Is(errs[i], postgres.ErrStale) {
			t.Fatal(errs[i])
		}
		record, err := site.Get(t.Context(), op.Key)
		var gone *store.DeletedError
		if errors.As(err, &gone) {
			record.Version = gone.Version
		} else if err != nil {
			t.Fatal(err)
		}
		code := "2"
		found, err := site.Search(t.Context(), store.Query{Types: []string{patient}, Count: 10, Where: store.All{store.IDIn{op.Key.ID}, store.TokenIs{Param: "code", Code: &code}}})
		if err != nil {
			t.Fatal(err)
		}
		past, err := site.History(t.Context(), store.HistoryQuery{Key: op.Key, Count: 10, Deletions: true})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s: %s, version %d of %d, %d by code 2", op.Key.ID, result, record.Version, len(past.Records), len(found.Records)))
	}
	want := []string{
		fmt.Sprintf("new: %v, version 1 of 1, 0 by code 2", store.Created),
		fmt.Sprintf("updated: %v, version 2 of 2, 1 by code 2", store.Updated), "changed: stale, version 2 of 2, 0 by code 2",
		fmt.Sprintf("deleted: %v, version 2 of 2, 0 by code 2", store.Removed), fmt.Sprintf("back: %v, version 3 of 3, 1 by code 2", store.Created),
		fmt.Sprintf("Twice: %v, version 1 of 1, 0 by code 2", store.Created), "twice: stale, version 1 of 1, 0 by code 2",
	}
	if isTaken {
		want = append(want, "taken: stale, version 1 of 1, 0 by code 2")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	entries := entriesOf(t, shared, siteKey, site.Audit())
	slices.Sort(entries)
	wantEntries := []string{"Patient/Twice 201 with it", "Patient/back 201 with it", "Patient/deleted 200 with it", "Patient/new 201 with it", "Patient/new 409", "Patient/updated 200 with it"}
	if diff := cmp.Diff(wantEntries, entries); diff != "" {
		t.Errorf("entries of the audit log (-want +got):\n%s", diff)
	}
	events, err := site.AcceptedEvents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]int64{}
	for _, event := range events {
		var filled struct{ V int64 }
		must(t, json.Unmarshal(event.Envelope, &filled))
		versions[event.Subject] = filled.V
	}
	if diff := cmp.Diff(map[string]int64{"Patient/new": 1, "Patient/updated": 2, "Patient/deleted": 2, "Patient/back": 3, "Patient/Twice": 1}, versions); diff != "" {
		t.Errorf("versions of the events (-want +got):\n%s", diff)
	}
}

// TestLockedRecordInBatch shows that the writes of a batch do not wait for one whose record is locked.
func TestLockedRecordInBatch(t *testing.T) {
	t.Parallel()
	site := open(t, shared, uuid.NewString(), postgres.Options{})
	writeAll(t, site, counterOp("locked", 1), counterOp("free", 1))
	tx, err := shared.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), `SELECT FROM res WHERE site = $1 AND id = 'locked' FOR UPDATE`, site.Number()); err != nil {
		t.Fatal(err)
	}
	done := make(chan []error, 1)
	go func() {
		_, errs, _ := site.WriteTogether(t.Context(), []store.Op{counterOp("free", 2), counterOp("locked", 2)}, func() {})
		done <- errs
	}()
	await(t, "the other record is written", func() error {
		record, err := site.Get(t.Context(), store.Key{Type: patient, ID: "free"})
		if err == nil && record.Version != 2 {
			err = fmt.Errorf("it is at version %d", record.Version)
		}
		return err
	})
	select {
	case errs := <-done:
		t.Errorf("the write of the locked record ended: %v", errs)
	default:
	}
	must(t, tx.Rollback(t.Context()))
	for _, err := range <-done {
		must(t, err)
	}
}
