package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// countingConn counts the bytes that it receives.
type countingConn struct {
	net.Conn
	received *atomic.Int64
}

func (c countingConn) Read(to []byte) (int, error) {
	n, err := c.Conn.Read(to)
	c.received.Add(int64(n))
	return n, err
}

// TestDumpReceivesItsPage checks that a page that its bytes limit does not receive the records after it.
func TestDumpReceivesItsPage(t *testing.T) {
	var received atomic.Int64
	config, err := postgres.Config(unhurried(server.URL(database)))
	if err != nil {
		t.Fatal(err)
	}
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return countingConn{conn, &received}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	site := open(t, pool, uuid.NewString(), postgres.Options{})
	const records, size = 160, 500_000 // four times what the buffers of a connection can hold, some 9 MB
	for i := range records {
		random := make([]byte, size/2) // cannot be compressed
		for j := range random {
			random[j] = byte(rand.Uint32())
		}
		writeAll(t, site, store.Op{Kind: store.Put, Key: numbered(i), Body: store.Body{JSON: fmt.Appendf(nil, `{"x":"%x"}`, random)}})
	}
	received.Store(0)
	page, err := site.Dump(t.Context(), store.DumpQuery{MaxRecords: 1000, MaxBytes: 1})
	if err != nil || len(page.Records) != 1 || !page.More {
		t.Fatalf("%d records, more: %t, error %v; want one record and more", len(page.Records), page.More, err)
	}
	if got, most := received.Load(), int64(records*size/4); got > most {
		t.Errorf("the page has one record of %d bytes; received %d bytes, want at most %d", size, got, most)
	}
	last, err := site.Dump(t.Context(), store.DumpQuery{After: page.Records[0].Key, MaxRecords: 1000, MaxBytes: records * size})
	if err != nil || len(last.Records) != records-1 {
		t.Errorf("%d further records, error %v; want %d", len(last.Records), err, records-1)
	}
}
