package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/extraction"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

const (
	databaseSite = "demo-postgres"
	// vetsShare is how many records there are for one of them that is a practitioner.
	vetsShare = 33
	// loadPortion is how many records are loaded as one.
	loadPortion = 2000
)

// benchSettings are for a machine that has the memory.
var benchSettings = map[string]string{"shared_buffers": "1GB", "max_wal_size": "4GB", "track_wal_io_timing": "on"}

// database is the database of a site, filled with the set's records.
type database struct {
	server *localpostgres.Server
	// uri is how the administrator reaches it.
	uri, siteKey string
	records      int
	// rare is how many of the Patients are made rare.
	rare int
	// loaded is from when until when one portion in the middle was loaded.
	loaded [2]time.Time
}

func (d *database) practitioners() int { return d.records / vetsShare }

// startDatabase starts a server and makes the site that is kept there.
func startDatabase(ctx context.Context, in installation, dir string) (*localpostgres.Server, error) {
	server, err := localpostgres.Start(ctx, localpostgres.Options{Dir: dir, Settings: benchSettings})
	if err != nil {
		return nil, err
	}
	uri, err := server.CreateDatabase(ctx, "demo", "demo")
	if err != nil {
		return nil, err
	}
	if err := in.paddock.Apply(ctx, filepath.Join("config", "samples", "postgres")); err != nil {
		return nil, err
	}
	if err := in.paddock.SetSecret(ctx, databaseSite, "demo-db", "paddock.health/dsn", map[string]string{"uri": uri}); err != nil {
		return nil, err
	}
	if _, err := in.paddock.Kubectl(ctx, "patch", "site", databaseSite, "-n", databaseSite, "--type=merge", "-p", "{\"spec\":{"+unlimited+"}}"); err != nil {
		return nil, err
	}
	_, err = in.paddock.Kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=60s", "-n", databaseSite, "site/"+databaseSite)
	return server, err
}

// newDatabase starts a server and fills the site that is kept there.
func newDatabase(ctx context.Context, o options, in installation, dir string) (*database, error) {
	server, err := startDatabase(ctx, in, dir)
	if err != nil {
		return nil, err
	}
	d, err := databaseOf(ctx, o, in, server)
	if err != nil {
		return nil, err
	}
	return d, d.fill(ctx)
}

// databaseOf is the database of the site that is kept in a server, to be filled.
func databaseOf(ctx context.Context, o options, in installation, server *localpostgres.Server) (*database, error) {
	key, err := in.paddock.Kubectl(ctx, "get", "siteclaim", databaseSite, "-o", "jsonpath={.spec.siteKey}")
	return &database{server: server, uri: server.URL("demo"), siteKey: strings.TrimSpace(string(key)), records: o.records}, err
}

// sample are the records that are read by id: of those that the mix does not delete.
func (d *database) sample() []store.Key {
	keys := make([]store.Key, 2000)
	for i := range keys {
		typeName, id, _ := record(i*37%(d.records/2), d.practitioners())
		keys[i] = store.Key{Type: typeName, ID: id}
	}
	return keys
}

// open is the engine over the database, with what watches its statements.
func (d *database) open(ctx context.Context, watch *statements) (*postgres.Store, *pgxpool.Pool, error) {
	config, err := postgres.Config(d.uri)
	if err != nil {
		return nil, nil, err
	}
	if watch != nil {
		config.ConnConfig.Tracer = watch
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	site, err := postgres.Open(ctx, pool, d.siteKey, postgres.Options{Extractor: extraction.Extractor{}})
	return site, pool, err
}

// put is the operation that stores the n-th record.
func (d *database) put(n int) (store.Op, error) {
	return putOf(d.text(n))
}

// putOf is the operation that stores a record.
func putOf(typeName, id string, text []byte) (store.Op, error) {
	read, err := r4.Read(text, r4.Options{Type: typeName})
	return store.Op{
		Kind: store.Put, Key: store.Key{Type: typeName, ID: id}, Method: store.MethodPut,
		Body: store.Body{JSON: read.Body, IDOffset: read.IDOffset, MetaOffset: read.MetaOffset},
	}, err
}

func (d *database) fill(ctx context.Context) error {
	site, pool, err := d.open(ctx, nil)
	if err != nil {
		return err
	}
	defer pool.Close()
	var portion []store.Op
	for n := range d.records {
		op, err := d.put(n)
		if err != nil {
			return err
		}
		if portion = append(portion, op); len(portion) == loadPortion || n == d.records-1 {
			began := time.Now()
			if err := site.Load(ctx, portion); err != nil {
				return err
			}
			if n <= d.records/2+loadPortion {
				d.loaded = [2]time.Time{began, time.Now()}
			}
			portion = portion[:0]
			fmt.Fprintf(os.Stderr, "\r%d of %d records", n+1, d.records)
		}
	}
	fmt.Fprintln(os.Stderr)
	return d.vacuum(ctx)
}

// vacuum does at once what autovacuum would do by and by. It takes longer than the engine's
// sessions let a statement.
func (d *database) vacuum(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, d.uri)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, "VACUUM ANALYZE")
	return err
}
