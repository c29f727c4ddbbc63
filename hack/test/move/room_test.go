package move

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// noRoom is what Postgres logs if a table cannot grow.
const noRoom = "could not extend file"

// fullDatabase is a database of a server of its own whose table res cannot grow.
type fullDatabase struct{ server *localpostgres.Server }

// startFull starts a server with a database without room, and creates its Secret.
func startFull(ctx context.Context, secret string) fullDatabase {
	GinkgoHelper()
	dir, err := os.MkdirTemp("", "paddock-full")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	server, err := localpostgres.Start(ctx, localpostgres.Options{
		Dir: filepath.Join(dir, "postgres"), UnsafeNoFsync: true, Settings: map[string]string{"autovacuum": "off", "shared_buffers": "32MB"},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	uri, err := server.CreateDatabase(ctx, secret, secret)
	Expect(err).NotTo(HaveOccurred())
	Expect(paddock.SetSecret(ctx, "demo", secret, "paddock.health/dsn", map[string]string{"uri": uri})).To(Succeed())
	conn, err := pgx.Connect(ctx, uri)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = conn.Close(ctx) }()
	_, err = schema.Migrate(ctx, conn)
	Expect(err).NotTo(HaveOccurred())
	Expect(server.LimitFiles(localpostgres.WALSegmentSize)).To(Succeed())
	DeferCleanup(server.RemoveLimit) // before the server stops, because it then writes its tables

	// Rows of no site, first many and large ones, then those that fit into the rest of a page, until not even the smallest has room.
	const insert = `INSERT INTO res (site, typ, id, rid, self, ver, upd, ixsum, method, deleted, marks, body)
		SELECT -1, 'Filler', n::text, n, n, 1, 0, 0, 0, false, '{}', convert_to(repeat('x', $3), 'UTF8') FROM generate_series($1::int, $1 + $2 - 1) n`
	next := 1
	for _, rows := range []struct{ count, size int }{{1000, 1500}, {1, 1500}, {100, 150}, {1, 0}} {
		for {
			Expect(next).To(BeNumerically("<", 100_000), "16 MB are full")
			_, err := conn.Exec(ctx, insert, next, rows.count, rows.size)
			if next += rows.count; err != nil {
				Expect(err).To(MatchError(ContainSubstring(noRoom)))
				break
			}
		}
	}
	return fullDatabase{server}
}

// awaitRefusals waits until the server has refused to extend a table several more times.
func (d fullDatabase) awaitRefusals(ctx context.Context) {
	GinkgoHelper()
	count := func(context.Context) (int, error) {
		log, err := os.ReadFile(d.server.LogFile())
		return strings.Count(string(log), noRoom), err
	}
	before, err := count(ctx)
	Expect(err).NotTo(HaveOccurred())
	Eventually(count).WithContext(ctx).WithTimeout(patience).WithPolling(50 * time.Millisecond).Should(BeNumerically(">=", before+2))
}

// roomSpecs begin and end with storage in the cluster.
func roomSpecs() {
	It("is not moved to a database without room, and goes on when there is room", func(ctx SpecContext) {
		full := startFull(ctx, "full")
		l := startLoad("r")
		create(ctx, "waits-for-room", "full")
		full.awaitRefusals(ctx)
		Expect(phase(ctx, "waits-for-room")).To(Equal("Copying"))
		Expect(full.server.RemoveLimit()).To(Succeed())
		await(ctx, "waits-for-room", "Switched")
		decide(ctx, "waits-for-room", "RollBack")
		await(ctx, "waits-for-room", "RolledBack")
		l.stop(ctx)
	})

	// The database is another one, because rows that an earlier move has left and erased are room.
	It("returns from a database without room", func(ctx SpecContext) {
		full := startFull(ctx, "full-too")
		l := startLoad("s")
		create(ctx, "has-no-room", "full-too")
		full.awaitRefusals(ctx)
		Expect(phase(ctx, "has-no-room")).To(Equal("Copying"))
		decide(ctx, "has-no-room", "RollBack")
		await(ctx, "has-no-room", "RolledBack")
		Expect(storage(ctx)).To(Equal("Cluster "))
		l.stop(ctx)
	})
}
