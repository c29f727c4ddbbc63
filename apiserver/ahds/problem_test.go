package ahds

import (
	"errors"
	"fmt"
	"testing"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
)

func TestProblemOfStoreErrors(t *testing.T) {
	for _, test := range []struct {
		err    error
		status int
		code   string
	}{
		{&store.TooManyConditionsError{Count: 5001, Max: 5000}, 400, "too_many_conditions"},
		{store.ErrNotFound, 404, "resource_not_found"},
		{&store.DeletedError{}, 404, "resource_not_found"},
		{&store.PreconditionError{}, 409, "version_conflict"},
		{delivery.ErrContentGone, 410, "content_gone"},
		{&store.LimitError{Scope: store.LimitRecord}, 413, "too_large"},
		{&store.LimitError{Scope: store.LimitSite, What: store.PendingDeliveries}, 429, "events_full"},
		{errors.New("index out of range"), 500, "internal"},
		{store.ErrQueryTimeout, 503, "query_timeout"},
		{store.ErrNotReady, 503, "unavailable"},
		{store.ErrUnavailable, 503, "unavailable"},
		{store.ErrMoving, 503, "site_moving"},
		{&store.LimitError{Scope: store.LimitSite}, 507, "storage_full"},
	} {
		if p := problemOf(fmt.Errorf("wrapped: %w", test.err)); p.status != test.status || p.code != test.code {
			t.Errorf("%v: got %d %s, want %d %s", test.err, p.status, p.code, test.status, test.code)
		}
	}
}
