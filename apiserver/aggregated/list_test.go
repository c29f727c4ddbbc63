package aggregated

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/paddock-health/paddock/apiserver/limits"
	"github.com/paddock-health/paddock/apiserver/store"
)

func patients(t *testing.T) *resource {
	return &resource{kind: kindNamed(t, "Patient"), table: patientTable}
}

func TestQuery(t *testing.T) {
	tests := map[string]struct {
		options internalversion.ListOptions
		// change makes the query that is wanted of the one without options.
		change  func(query *store.Query)
		refused bool
	}{
		"everything": {},
		"selectors that select everything": {
			options: internalversion.ListOptions{LabelSelector: labels.Everything(), FieldSelector: fields.Everything()},
		},
		"a page": {
			options: internalversion.ListOptions{Limit: 2},
			change:  func(query *store.Query) { query.Count = 2 },
		},
		"a page that is larger than any": {
			options: internalversion.ListOptions{Limit: 1 << 40},
		},
		"one name": {
			options: internalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "rex")},
			change:  func(query *store.Query) { query.Where = store.IDIn{"rex"} },
		},
		"a name that no object has": {
			options: internalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "Rex")},
			change:  func(query *store.Query) { query.Where = store.IDIn{} },
		},
		"the same name twice": {
			options: internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie("metadata.name=rex,metadata.name==rex")},
			change:  func(query *store.Query) { query.Where = store.IDIn{"rex"} },
		},
		"two names at once": {
			options: internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie("metadata.name=rex,metadata.name=bella")},
			change:  func(query *store.Query) { query.Where = store.IDIn{} },
		},
		"all names but one": {
			options: internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie("metadata.name!=rex")}, refused: true,
		},
		"another field": {
			options: internalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.namespace", "oak")}, refused: true,
		},
		"a shard": {
			options: internalversion.ListOptions{ShardSelector: "uid"}, refused: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := patients(t).query(&test.options)
			if test.refused {
				if err == nil {
					t.Fatalf("query: got %+v, want an error", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := store.Query{
				Types: []string{"Patient"}, Sort: []store.Sort{{Field: store.SortID}}, Count: maxPage, Total: store.TotalNone,
				Access: store.Access{"Patient": store.All{}},
			}
			if test.change != nil {
				test.change(&want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("query (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckVersion(t *testing.T) {
	tests := map[string]struct {
		options internalversion.ListOptions
		want    metav1.StatusReason // empty: taken
	}{
		"any":                       {},
		"any that is cached":        {options: internalversion.ListOptions{ResourceVersion: "0", Limit: 2}},
		"not older":                 {options: internalversion.ListOptions{ResourceVersion: "7"}},
		"a page that is not older":  {options: internalversion.ListOptions{ResourceVersion: "7", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, Limit: 2}},
		"exactly":                   {options: internalversion.ListOptions{ResourceVersion: "7", ResourceVersionMatch: metav1.ResourceVersionMatchExact}, want: metav1.StatusReasonExpired},
		"a page, exactly by custom": {options: internalversion.ListOptions{ResourceVersion: "7", Limit: 2}, want: metav1.StatusReasonExpired},
		"the next page of it":       {options: internalversion.ListOptions{ResourceVersion: "7", Continue: "x", Limit: 2}, want: metav1.StatusReasonBadRequest},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := patients(t).checkVersion(&test.options)
			if got := apierrors.ReasonForError(err); got != test.want || (err == nil) != (test.want == "") {
				t.Errorf("checkVersion: got %q (%v), want %q", got, err, test.want)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	tests := map[string]struct {
		err  error
		want metav1.StatusReason
	}{
		"no site":       {ErrNoSite, metav1.StatusReasonNotFound},
		"no record":     {store.ErrNotFound, metav1.StatusReasonNotFound},
		"a tombstone":   {&store.DeletedError{}, metav1.StatusReasonNotFound},
		"no page":       {store.ErrBadPosition, metav1.StatusReasonBadRequest},
		"a long query":  {&store.TooManyConditionsError{}, "TooManyConditions"},
		"no index yet":  {store.ErrNotReady, metav1.StatusReasonServiceUnavailable},
		"storage away":  {store.ErrUnavailable, metav1.StatusReasonServiceUnavailable},
		"a move":        {store.ErrMoving, metav1.StatusReasonServiceUnavailable},
		"storage slow":  {errors.Join(store.ErrUnavailable, context.DeadlineExceeded), metav1.StatusReasonServiceUnavailable},
		"request ended": {context.Canceled, metav1.StatusReasonTimeout},
		"too many":      {&limits.ExceededError{Policy: "caller", Quota: 1, RetryAfter: time.Millisecond}, metav1.StatusReasonTooManyRequests},
		"anything else": {errors.New("boom"), metav1.StatusReasonUnknown},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := patients(t).status(t.Context(), test.err, "rex")
			if got := apierrors.ReasonForError(err); got != test.want {
				t.Errorf("status(%v): got %q, want %q", test.err, got, test.want)
			}
			seconds, retry := apierrors.SuggestsClientDelay(err)
			if later := test.want == metav1.StatusReasonServiceUnavailable || test.want == metav1.StatusReasonTooManyRequests; later != (retry && seconds > 0) {
				t.Errorf("status(%v): retry after %d s: %t", test.err, seconds, retry)
			}
		})
	}
}

// TestWriteStatus checks that kubectl repeats a write only if nothing was written.
func TestWriteStatus(t *testing.T) {
	for _, test := range []struct {
		err   error
		retry bool
	}{
		{fmt.Errorf("%w: the answer is lost", store.ErrUnavailable), false},
		{store.ErrMoving, true},
	} {
		err := patients(t).writeStatus(t.Context(), test.err, "rex")
		if _, retry := apierrors.SuggestsClientDelay(err); retry != test.retry || !apierrors.IsServiceUnavailable(err) {
			t.Errorf("writeStatus(%v): %v, retry later: %t", test.err, err, retry)
		}
	}
}
