package postgres_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// Each question has its own answer or its own error, whatever is asked in the same round
// trip, and whoever of the others goes away.
func TestQuestions(t *testing.T) {
	t.Parallel()
	site := open(t, shared, uuid.NewString(), postgres.Options{})
	var group sync.WaitGroup
	for worker := range 32 {
		group.Go(func() {
			for i := range 100 {
				askOnce(t, site, int64(worker*1000+i))
			}
		})
	}
	group.Wait()
}

func askOnce(t *testing.T, site *postgres.Site, number int64) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sql, rows, leaves, fails := "SELECT $1::int8 + n FROM generate_series(0, $2::int4 - 1) n", rand.IntN(5), rand.IntN(8) == 0, rand.IntN(20) == 0
	if leaves {
		go cancel()
	}
	if fails {
		sql = "SELECT $1::int8 / ($2::int8 - $2::int8)"
	}
	n, first, err := site.Ask(ctx, sql, number, int32(rows))
	switch {
	case leaves && errors.Is(err, context.Canceled):
	case fails && err == nil, !fails && err != nil:
		t.Errorf("question %d that fails %t: %v", number, fails, err)
	case err == nil && (n != rows || n > 0 && first != number):
		t.Errorf("question %d for %d rows has %d, the first is %d", number, rows, n, first)
	}
}
