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

// TestQueryBatcher runs statements of concurrent callers, some of which fail or give up. It shows that
// each caller gets the result or the error of its own statement.
func TestQueryBatcher(t *testing.T) {
	t.Parallel()
	site := open(t, shared, uuid.NewString(), postgres.Options{})
	var callers sync.WaitGroup
	for caller := range 32 {
		callers.Go(func() {
			for i := range 100 {
				queryOnce(t, site, int64(caller*1000+i))
			}
		})
	}
	callers.Wait()
}

func queryOnce(t *testing.T, site *postgres.Store, number int64) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sql, rows, givesUp, fails := "SELECT $1::int8 + n FROM generate_series(0, $2::int4 - 1) n", rand.IntN(5), rand.IntN(8) == 0, rand.IntN(20) == 0
	if givesUp {
		go cancel()
	}
	if fails {
		sql = "SELECT $1::int8 / ($2::int8 - $2::int8)"
	}
	n, first, err := site.QueryInBatch(ctx, sql, number, int32(rows))
	switch {
	case givesUp && errors.Is(err, context.Canceled):
	case fails && err == nil, !fails && err != nil:
		t.Errorf("statement %d, which fails: %t, has the error %v", number, fails, err)
	case err == nil && (n != rows || n > 0 && first != number):
		t.Errorf("statement %d returned %d rows, the first %d; want %d rows", number, n, first, rows)
	}
}
