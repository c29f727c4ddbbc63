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
	// vetsShare says that one in vetsShare records is a Practitioner.
	vetsShare = 33
	// loadPortion is the number of records in one call of Load.
	loadPortion = 2000
)

// benchSettings are settings of Postgres for a machine with some gigabytes of free memory.
var benchSettings = map[string]string{"shared_buffers": "1GB", "max_wal_size": "4GB", "track_wal_io_timing": "on"}

// database is the database of a site, filled with the set's records.
type database struct {
	server *localpostgres.Server
	// uri is the connection string of the administrator.
	uri, siteKey string
	records      int
	// rare is the approximate number of Patients that makeRare changes. 0 changes none.
	rare int
	// loaded has the times before and after one portion in the middle was loaded.
	loaded [2]time.Time
}

func (d *database) practitioners() int { return d.records / vetsShare }

// startDatabase starts a server, makes databaseSite, which has its records there, and waits until it
// is Ready.
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

// newDatabase starts a server, makes databaseSite, and fills it.
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

// databaseOf returns the database of databaseSite in a server. It does not fill it.
func databaseOf(ctx context.Context, o options, in installation, server *localpostgres.Server) (*database, error) {
	key, err := in.paddock.Kubectl(ctx, "get", "siteclaim", databaseSite, "-o", "jsonpath={.spec.siteKey}")
	return &database{server: server, uri: server.URL("demo"), siteKey: strings.TrimSpace(string(key)), records: o.records}, err
}

// sample returns keys of records that are read by id. They are in the first half, of which mix deletes
// none.
func (d *database) sample() []store.Key {
	keys := make([]store.Key, 2000)
	for i := range keys {
		typeName, id, _ := record(i*37%(d.records/2), d.practitioners())
		keys[i] = store.Key{Type: typeName, ID: id}
	}
	return keys
}

// open returns the store of the site and its connection pool, which the caller closes. watch
// records the statements of the pool, unless it is nil.
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

// put returns the operation that stores the n-th record.
func (d *database) put(n int) (store.Op, error) {
	return putOf(d.text(n))
}

// putOf returns the operation that stores a record.
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

// vacuum does at once what autovacuum would do over time. It opens a connection, because it takes
// longer than the statement timeout of the engine's connections.
func (d *database) vacuum(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, d.uri)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, "VACUUM ANALYZE")
	return err
}
