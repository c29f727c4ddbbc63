package fhir_test

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/access/gate/gatetest"
	"github.com/paddock-health/paddock/apiserver/extraction"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/settings"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// database is a Postgres server, which runs from the first spec that needs it on.
type database struct {
	dir    string
	server *localpostgres.Server
	pool   *pgxpool.Pool
}

var (
	startDatabase sync.Once
	relational    database
)

var _ = AfterSuite(func() {
	if relational.pool != nil {
		relational.pool.Close()
	}
	if relational.server != nil {
		Expect(relational.server.Stop()).To(Succeed())
	}
	Expect(os.RemoveAll(relational.dir)).To(Succeed())
})

func (d *database) start(ctx context.Context) {
	GinkgoHelper()
	var err error
	d.dir, err = os.MkdirTemp("", "paddock-fhir-postgres")
	Expect(err).NotTo(HaveOccurred())
	d.server, err = localpostgres.Start(ctx, localpostgres.Options{Dir: d.dir, UnsafeNoFsync: true})
	Expect(err).NotTo(HaveOccurred())
	conn, err := pgx.Connect(ctx, d.server.URL("postgres"))
	Expect(err).NotTo(HaveOccurred())
	_, err = schema.Migrate(ctx, conn)
	Expect(err).NotTo(HaveOccurred())
	Expect(conn.Close(ctx)).To(Succeed())
	d.pool, err = postgres.Connect(context.Background(), d.server.URL("postgres")+"&statement_timeout=60s") // a busy machine ends no statement
	Expect(err).NotTo(HaveOccurred())
}

// newPostgresSite opens a site with a key of its own that enforces references.
func newPostgresSite(ctx context.Context, changes ...func(*fhir.Endpoint)) site {
	GinkgoHelper()
	startDatabase.Do(func() { relational.start(ctx) })
	Expect(relational.pool).NotTo(BeNil(), "the database did not start")
	key := uuid.NewString()
	name := "practice-" + key[:8]
	opened, err := postgres.Open(ctx, relational.pool, key, postgres.Options{Extractor: extraction.Extractor{}, QueryTimeout: time.Minute})
	Expect(err).NotTo(HaveOccurred())
	s := fhir.Endpoint{
		Settings: settings.Settings{ID: name, UpdateCreate: true, EnforceReferences: true},
		BaseURL:  server.URL + "/site/" + name + "/fhir", Store: gatetest.Everything(opened),
	}
	for _, change := range changes {
		change(&s)
	}
	openSites.Store(name, s)
	DeferCleanup(func() { openSites.Delete(name) })
	return site{id: name, base: s.BaseURL, store: s.Store, raw: opened}
}
