package gate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/paddock-health/paddock/apiserver/access/gate"
	"github.com/paddock-health/paddock/apiserver/access/privacy"
	"github.com/paddock-health/paddock/apiserver/store"
)

// buried is a store in which the newest version of every record is a tombstone.
type buried struct {
	store.Store
	last string // the body of the version before the deletion
}

func (b buried) Write(_ context.Context, ops []store.Op) ([]store.Result, error) {
	results := make([]store.Result, len(ops))
	for i, op := range ops {
		if err := op.If.Check(op.Key, &store.Record{Key: op.Key, Version: 2, Deleted: true}); err != nil {
			return nil, err
		}
		results[i].Outcome = store.Created
	}
	return results, nil
}

func (b buried) Get(_ context.Context, key store.Key) (store.Record, error) {
	return store.Record{}, &store.DeletedError{Key: key, Version: 2}
}

func (b buried) GetVersion(_ context.Context, key store.Key, version int64) (store.Record, error) {
	if version == 2 {
		return store.Record{Key: key, Version: version, Deleted: true}, nil
	}
	return store.Record{Key: key, Version: version, Body: store.Body{JSON: []byte(b.last)}}, nil
}

// TestGetVersionOfDeletion shows that a restriction extends to a tombstone if it extends to the version
// before.
func TestGetVersionOfDeletion(t *testing.T) {
	for last, want := range map[string]error{"mine": nil, "theirs": store.ErrNotFound} {
		t.Run(last, func(t *testing.T) {
			record, err := restricted(t, buried{last: last}).GetVersion(t.Context(), store.Key{Type: "A", ID: "1"}, 2)
			if !errors.Is(err, want) || record.Deleted != (want == nil) {
				t.Errorf("got %+v, %v; want %v", record, err, want)
			}
		})
	}
}

// TestWriteOfDeletedRecord shows that a write does not reveal whether a record existed to whose last
// version a restriction does not extend.
func TestWriteOfDeletedRecord(t *testing.T) {
	key := store.Key{Type: "A", ID: "1"}
	put := store.Op{Kind: store.Put, Key: key, Body: store.Body{JSON: []byte("mine")}}
	update := put
	update.If = store.Precondition{Present: true}
	var deleted *store.DeletedError
	var taken *store.IDTakenError
	for name, test := range map[string]struct {
		last string
		op   store.Op
		is   func(error) bool
	}{
		"update of an own record":        {"mine", update, func(err error) bool { return errors.As(err, &deleted) }},
		"update of another record":       {"theirs", update, func(err error) bool { return errors.Is(err, store.ErrNotFound) }},
		"creation of an own record":      {"mine", put, func(err error) bool { return err == nil }},
		"creation of another record":     {"theirs", put, func(err error) bool { return errors.As(err, &taken) }},
		"a second deletion":              {"mine", store.Op{Kind: store.Delete, Key: key}, func(err error) bool { return err == nil }},
		"a deletion of another's record": {"theirs", store.Op{Kind: store.Delete, Key: key}, func(err error) bool { return err == nil }},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := restricted(t, buried{last: test.last}).Write(t.Context(), []store.Op{test.op})
			if !test.is(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestRestoreKeepsProtection shows that a record that was deleted can be restored with less protection only by a
// privileged caller. Otherwise, earlier versions could be shown that only the labels of the last version hide.
func TestRestoreKeepsProtection(t *testing.T) {
	for name, test := range map[string]struct {
		last, restored string
		privileged     bool
		want           error
	}{
		"less, by a privileged caller": {"secret", "open", true, nil},
		"less":                         {"secret", "open", false, errUnprivileged},
		"as much":                      {"secret", "secret", false, nil},
		"more":                         {"open", "secret", false, nil},
		"none":                         {"open", "open", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			opened := seesAll(t, test.last, test.privileged)
			put := store.Op{Kind: store.Put, Key: store.Key{Type: "Patient", ID: "1"}, Body: store.Body{JSON: []byte(test.restored)}}
			if _, err := opened.Write(t.Context(), []store.Op{put}); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

// TestRestoreOfMany restores more records than Write has attempts. The caller sees all records, but is not
// privileged.
func TestRestoreOfMany(t *testing.T) {
	opened := seesAll(t, "secret", false)
	var ops []store.Op
	for i := range 12 {
		ops = append(ops, store.Op{Kind: store.Put, Key: store.Key{Type: "Patient", ID: string(rune('a' + i))}, Body: store.Body{JSON: []byte("secret")}})
	}
	if _, err := opened.Write(t.Context(), ops); err != nil {
		t.Error(err)
	}
	ops[len(ops)-1].Body.JSON = []byte("open")
	if _, err := opened.Write(t.Context(), ops); !errors.Is(err, errUnprivileged) {
		t.Errorf("got %v", err)
	}
}

var errUnprivileged = errors.New("unprivileged")

// seesAll returns a gate for a caller who sees all records, in front of records whose last version before their
// deletion is last.
func seesAll(t *testing.T, last string, privileged bool) *gate.Store {
	t.Helper()
	opened, err := gate.New(buried{last: last}, gate.Options{
		View: &privacy.View{
			Rules: &privacy.Rules{},
			Rights: func(string) (privacy.Rights, error) {
				return privacy.Rights{Privileged: privileged, BreaksGlass: true}, nil
			},
			Reads: func(string) (bool, error) { return true, nil },
		},
		Labels:       veryRestrictedIfSecret,
		Protects:     func(string) bool { return true },
		Unprivileged: func(string) error { return errUnprivileged },
	})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// veryRestrictedIfSecret returns the confidentiality V for the body "secret".
func veryRestrictedIfSecret(_ string, body store.Body) store.Labels {
	if string(body.JSON) != "secret" {
		return store.Labels{}
	}
	return privacy.Labels("Patient", []store.IndexValue{{
		Param: "_security", Value: store.Token{System: "http://terminology.hl7.org/CodeSystem/v3-Confidentiality", Code: "v"},
	}})
}

// restricted returns a gate for a caller whose rights extend to records with the text "mine".
func restricted(t *testing.T, behind store.Store) *gate.Store {
	t.Helper()
	opened, err := gate.New(behind, gate.Options{
		View: &privacy.View{
			Rules:  &privacy.Rules{},
			Rights: func(string) (privacy.Rights, error) { return privacy.Rights{Privileged: true}, nil },
			Reads:  func(string) (bool, error) { return true, nil },
		},
		Labels:       func(string, store.Body) store.Labels { return store.Labels{} },
		Protects:     func(string) bool { return true },
		Unprivileged: func(string) error { return errors.New("unprivileged") },
		Restrict: func(string, string) (*gate.Restriction, error) {
			return &gate.Restriction{
				Holds:   func(_ store.Key, body store.Body) bool { return strings.Contains(string(body.JSON), "mine") },
				Refusal: errors.New("refused"),
			}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// claimed is a store in which records that are not readable by the caller hold claims.
type claimed struct {
	buried
	written []store.Op
}

func (c *claimed) Write(_ context.Context, ops []store.Op) ([]store.Result, error) {
	for _, op := range ops {
		for _, claim := range op.Claims {
			return nil, &store.ClaimError{Claim: claim, Holder: store.Key{Type: "A", ID: claim.Line}}
		}
	}
	c.written = ops
	return make([]store.Result, len(ops)), nil
}

func (c *claimed) Get(_ context.Context, key store.Key) (store.Record, error) {
	return store.Record{Key: key, Version: 1, Body: store.Body{JSON: []byte("theirs")}}, nil
}

// TestWriteWithClaimsOfHiddenRecords writes a transaction of many conditional creates whose claims
// hidden records hold.
func TestWriteWithClaimsOfHiddenRecords(t *testing.T) {
	var ops []store.Op
	for i := range 30 {
		id := string(rune('a' + i))
		ops = append(ops, store.Op{
			Kind: store.Put, Key: store.Key{Type: "A", ID: id}, Body: store.Body{JSON: []byte("mine")},
			Claims: []store.Claim{{Line: id, Expires: time.Now()}},
		})
	}
	behind := &claimed{}
	if _, err := restricted(t, behind).Write(t.Context(), ops); err != nil {
		t.Fatal(err)
	}
	if len(behind.written) != len(ops) {
		t.Errorf("%d operations are written, want %d", len(behind.written), len(ops))
	}
}
