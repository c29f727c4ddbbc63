package audit

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/paddock-health/paddock/apiserver/store"
)

// StoresWithWrites implements WithWrites: a transactional stores entries in the memory.
func (*memory) StoresWithWrites() {}

// transactional is a store that stores the entry of a write with it. Its writes create records, unless they
// fail.
type transactional struct {
	store.Restricted
	storage *memory
	err     error
}

func (s transactional) Write(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	if s.err != nil {
		return nil, s.err
	}
	results := make([]store.Result, len(ops))
	for i, op := range ops {
		results[i] = store.Result{Outcome: store.Created, Record: store.Record{Key: op.Key}}
		if e := WriteEntryOf(ctx).Make(op.Key, store.Created); e != nil {
			_ = s.storage.Append(ctx, []*Entry{e})
			WriteEntryOf(ctx).Stored(e, e.JSON())
		}
	}
	return results, nil
}

func TestWriteEntry(t *testing.T) {
	key := store.Key{Type: "Patient", ID: "a"}
	write := func(ctx context.Context, records store.Store, keys ...store.Key) {
		var ops []store.Op
		for _, key := range keys {
			ops = append(ops, store.Op{Key: key})
		}
		_, _ = records.Write(ctx, ops)
	}
	created := Entry{Interaction: "create", Action: Create, Method: "POST", Type: "Patient", Records: "Patient/a", Status: 201}
	with := func(change func(*Entry)) Entry {
		e := created
		change(&e)
		return e
	}
	for name, test := range map[string]struct {
		serve func(ctx context.Context, records store.Store, rec *Recorder) (status int)
		err   error
		want  []Entry
	}{
		"the entry is stored with the write": {
			serve: func(ctx context.Context, records store.Store, _ *Recorder) int {
				write(ctx, records, key)
				return http.StatusCreated
			},
			want: []Entry{created},
		},
		"another status than that of the outcome": {
			serve: func(ctx context.Context, records store.Store, _ *Recorder) int {
				write(ctx, records, key)
				return http.StatusInternalServerError
			},
			want: []Entry{created, with(func(e *Entry) { e.Status = 500 })},
		},
		"a rule after the write": {
			serve: func(ctx context.Context, records store.Store, rec *Recorder) int {
				write(ctx, records, key)
				rec.Deny("link")
				return http.StatusCreated
			},
			want: []Entry{created, with(func(e *Entry) { e.Rule = "link" })},
		},
		"a second write": {
			serve: func(ctx context.Context, records store.Store, _ *Recorder) int {
				write(ctx, records, key)
				write(ctx, records, store.Key{Type: "Patient", ID: "b"})
				return http.StatusCreated
			},
			want: []Entry{created, with(func(e *Entry) { e.Records = RecordsOf("Patient/a", "Patient/b") })},
		},
		"a second write of the same record": {
			serve: func(ctx context.Context, records store.Store, _ *Recorder) int {
				write(ctx, records, key)
				write(ctx, records, key)
				return http.StatusCreated
			},
			want: []Entry{created},
		},
		"two records in one write": {
			serve: func(ctx context.Context, records store.Store, _ *Recorder) int {
				write(ctx, records, key, store.Key{Type: "Patient", ID: "b"})
				return http.StatusCreated
			},
			want: []Entry{with(func(e *Entry) { e.Records = RecordsOf("Patient/a", "Patient/b") })},
		},
		"no status for the outcome": {
			serve: func(ctx context.Context, records store.Store, rec *Recorder) int {
				rec.Statuses(map[store.Outcome]int{store.Updated: http.StatusOK})
				write(ctx, records, key)
				return http.StatusCreated
			},
			want: []Entry{created},
		},
		"an action that writes one record after another": {
			serve: func(ctx context.Context, records store.Store, rec *Recorder) int {
				rec.Interaction("deletecollection", "", store.Key{Type: "Patient"})
				write(ctx, records, key)
				write(ctx, records, store.Key{Type: "Patient", ID: "b"})
				return http.StatusCreated
			},
			want: []Entry{with(func(e *Entry) {
				e.Interaction, e.Action, e.Records = "deletecollection", "", RecordsOf("Patient/a", "Patient/b")
			})},
		},
		"a write that fails": {
			serve: func(ctx context.Context, records store.Store, _ *Recorder) int {
				write(ctx, records, key)
				return http.StatusConflict
			},
			err:  errors.New("conflict"),
			want: []Entry{with(func(e *Entry) { e.Status = 409 })},
		},
	} {
		t.Run(name, func(t *testing.T) {
			storage := &memory{}
			_, got := serve(t, storage, Settings{}, "POST", func(w http.ResponseWriter, r *http.Request) {
				rec := From(r.Context())
				rec.Interaction("create", Create, store.Key{Type: "Patient"})
				rec.Statuses(map[store.Outcome]int{store.Created: http.StatusCreated})
				w.WriteHeader(test.serve(r.Context(), Observe(transactional{storage: storage, err: test.err}), rec))
			})
			for i := range test.want {
				test.want[i].Time, test.want[i].Site, test.want[i].Request, test.want[i].API, test.want[i].Address = noon, "1042", "r1", "fhir", "192.0.2.1"
			}
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(Entry{}, "ID")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(got) == 2 && got[0].ID == got[1].ID {
				t.Error("both entries have the same id")
			}
		})
	}
}

// TestNoWriteEntry shows when the Log stores the entry of a write.
func TestNoWriteEntry(t *testing.T) {
	record := func(log *Log) *Recorder {
		rec := &Recorder{}
		rec.begin(&Auditor{Now: time.Now}, "fhir", http.MethodPost)
		rec.Interaction("create", Create, store.Key{Type: "Patient"})
		rec.Statuses(map[store.Outcome]int{store.Created: http.StatusCreated})
		rec.At(Sink{ID: "1042", Log: log})
		return rec
	}
	open := func(storage Storage, settings Settings) *Log {
		log := NewLog("oak", storage, settings)
		t.Cleanup(func() { log.Close(t.Context()) })
		return log
	}
	failing := &memory{}
	log := open(failing, Settings{Continue: true})
	offered := func(rec *Recorder) bool { return WriteEntryOf(rec.withWriteEntry(t.Context())) != nil }
	if !offered(record(log)) {
		t.Error("the store of a log that works does not get the entry")
	}
	failing.fail(errors.New("away"))
	_ = log.add(t.Context(), entries(1), true)
	if offered(record(log)) {
		t.Error("the store of a failing log gets the entry, so that the write fails although the site continues")
	}
	if offered(record(open(struct{ Storage }{&memory{}}, Settings{}))) {
		t.Error("a store gets an entry that has to be in another storage")
	}
	if offered(record(nil)) || offered(nil) {
		t.Error("there is an entry without a log")
	}
	if WriteEntryOf(WithoutWriteEntry(record(log).withWriteEntry(t.Context()))) != nil {
		t.Error("the entry is still there")
	}
}

// TestIsLike shows that a difference in any field but Time and ID counts.
func TestIsLike(t *testing.T) {
	for field := range reflect.TypeFor[Entry]().Fields() {
		var e, other Entry
		switch value := reflect.ValueOf(&other).Elem().FieldByIndex(field.Index); value.Interface().(type) {
		case time.Time:
			value.Set(reflect.ValueOf(noon))
		case []string:
			value.Set(reflect.ValueOf([]string{"a"}))
		default:
			switch value.Kind() {
			case reflect.String:
				value.SetString("a")
			case reflect.Bool:
				value.SetBool(true)
			default:
				value.SetInt(1)
			}
		}
		if got, want := e.isLike(&other), field.Name == "Time" || field.Name == "ID"; got != want {
			t.Errorf("isLike returned %v for entries with another %s", got, field.Name)
		}
	}
}
