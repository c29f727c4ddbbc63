package fhir

import (
	"errors"
	"fmt"
	"testing"

	"github.com/paddock-health/paddock/apiserver/store"
)

func TestIsTransient(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"the storage is unavailable":    {fmt.Errorf("write: %w", store.ErrUnavailable), true},
		"a query takes too long":        {store.ErrQueryTimeout, true},
		"too many pending events":       {&store.LimitError{Scope: store.LimitSite, What: store.PendingDeliveries}, true},
		"the storage is full":           {&store.LimitError{Scope: store.LimitSite}, false},
		"the record is too large":       {&store.LimitError{Scope: store.LimitRecord}, false},
		"an error that concerns a line": {errors.New("a conflict"), false}, //nolint:err113 // for the test
	} {
		if got := isTransient(test.err); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
