package postgres_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// TestLabelsOfOlderReleases shows that records written by a release without labels are hidden from
// restricted callers until the site is reindexed, and that their labels count after that.
func TestLabelsOfOlderReleases(t *testing.T) {
	key := uuid.NewString()
	s := open(t, shared, key, postgres.Options{})
	write := func(kind store.OpKind, id, code string) {
		op := store.Op{Kind: kind, Key: store.Key{Type: patient, ID: id}, Method: store.MethodPut}
		if kind == store.Put {
			op.Body = store.Body{JSON: fmt.Appendf(nil, `{"Tokens":{"code":[{"Code":%q}]},"Salt":%d}`, code, time.Now().UnixNano())}
		}
		if _, err := s.Write(t.Context(), []store.Op{op}); err != nil {
			t.Fatal(err)
		}
	}
	write(store.Put, "open", "b")
	write(store.Put, "open", "a") // a version that is hidden
	write(store.Put, "open", "b")
	write(store.Put, "secret", "a")
	write(store.Put, "gone", "b")
	write(store.Delete, "gone", "")
	write(store.Put, "gone-secret", "a")
	write(store.Delete, "gone-secret", "")
	write(store.Put, "back", "a")
	write(store.Delete, "back", "")
	write(store.Put, "back", "b")

	access := store.Access{patient: store.Not{Condition: store.HasLabel("a")}}
	told := func() []string {
		t.Helper()
		seen := []string{}
		found, err := s.Search(t.Context(), store.Query{Types: []string{patient}, Access: access, Sort: []store.Sort{{Field: store.SortID}}, Count: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range found.Records {
			seen = append(seen, "found "+record.Key.ID)
		}
		for _, id := range []string{"back", "gone", "gone-secret", "open", "secret"} {
			page, err := s.History(t.Context(), store.HistoryQuery{Key: store.Key{Type: patient, ID: id}, Count: 10, Deletions: true, Access: access})
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				t.Fatal(err)
			}
			for _, record := range page.Records {
				seen = append(seen, fmt.Sprintf("%s %d", id, record.Version))
			}
		}
		return seen
	}
	want := []string{"found back", "found open", "back 3", "gone 2", "gone 1", "open 3", "open 1"}
	if diff := cmp.Diff(want, told()); diff != "" {
		t.Fatalf("as written (-want +got):\n%s", diff)
	}
	for _, sql := range []string{
		`UPDATE res SET ixsum = ixsum + 1, labelled = NULL, labels = NULL, links = NULL WHERE site = (SELECT site FROM sites WHERE key = $1)`,
		`UPDATE hist SET labelled = NULL, labels = NULL, links = NULL WHERE site = (SELECT site FROM sites WHERE key = $1)`,
		// More tombstones of the first record than one statement labels. The versions before them are missing.
		`INSERT INTO hist (site, typ, self, ver, rid, upd, until, method, deleted, body)
			SELECT site, typ, self, ver + 2*n, rid, upd, until, method, true, '' FROM (
				SELECT * FROM hist WHERE site = (SELECT site FROM sites WHERE key = $1) ORDER BY self, ver LIMIT 1) x, generate_series(1000, 2000) n`,
	} {
		if _, err := shared.Exec(t.Context(), sql, key); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{}, told()); diff != "" {
		t.Errorf("before they are labelled (-want +got):\n%s", diff)
	}
	s.SetRenewPause(time.Millisecond)
	if state, err := s.Renew(t.Context(), 9, func(postgres.Reindexed) {}); err != nil || state != postgres.Current {
		t.Fatalf("renewed: %v, %v", state, err)
	}
	if diff := cmp.Diff(want, told()); diff != "" {
		t.Errorf("once they are labelled (-want +got):\n%s", diff)
	}
	// During a rolling update, a server of that release changes ixsum but not the labels.
	if _, err := shared.Exec(t.Context(), `UPDATE res SET ixsum = ixsum + 1 WHERE site = (SELECT site FROM sites WHERE key = $1) AND id = 'open'`, key); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"found back", "back 3", "gone 2", "gone 1"}, told()); diff != "" {
		t.Errorf("after a write of the older release (-want +got):\n%s", diff)
	}
}
