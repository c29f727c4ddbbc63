package move

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/procfs"

	"github.com/paddock-health/paddock/hack/dev/localcluster"
)

// hold is a lock on a table of a database. Processes that need the table wait, which makes a phase of
// a move as long as a test needs it.
type hold struct {
	database, table, mode string
	conn                  *pgx.Conn
}

// holdTable locks a table in a mode, such as SHARE ROW EXCLUSIVE, until release is called.
func holdTable(ctx context.Context, database, table, mode string) *hold {
	GinkgoHelper()
	h := &hold{database, table, mode, connectTo(ctx, database)}
	execute(ctx, h.conn, "BEGIN", h.lock())
	return h
}

func (h *hold) lock() string { return "LOCK TABLE " + h.table + " IN " + h.mode + " MODE" }

// letOnePass lets the transaction that waits for the lock pass, and locks the table again. The new lock
// request is in the queue before the lock is released, so that no second transaction can pass.
func (h *hold) letOnePass(ctx context.Context) *hold {
	GinkgoHelper()
	next := &hold{h.database, h.table, h.mode, connectTo(ctx, h.database)}
	execute(ctx, next.conn, "BEGIN")
	pid := next.conn.PgConn().PID()
	locked := make(chan error, 1)
	go func() {
		_, err := next.conn.Exec(ctx, next.lock())
		locked <- err
	}()
	Eventually(func() (waits bool, err error) {
		err = h.conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND NOT granted)", pid).Scan(&waits)
		return waits, err
	}).WithTimeout(patience).WithPolling(10 * time.Millisecond).Should(BeTrue())
	h.release(ctx)
	Expect(<-locked).To(Succeed())
	return next
}

func execute(ctx context.Context, conn *pgx.Conn, statements ...string) {
	GinkgoHelper()
	for _, sql := range statements {
		_, err := conn.Exec(ctx, sql)
		Expect(err).NotTo(HaveOccurred(), sql)
	}
}

func connectTo(ctx context.Context, database string) *pgx.Conn {
	GinkgoHelper()
	conn, err := pgx.Connect(ctx, postgres.URL(database))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { _ = conn.Close(ctx) })
	return conn
}

// blocks waits until a session of a user waits for the lock.
func (h *hold) blocks(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() (waiting int, err error) {
		err = h.conn.QueryRow(ctx, `SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))`).Scan(&waiting)
		return waiting, err
	}).WithTimeout(patience).WithPolling(10*time.Millisecond).Should(BeNumerically(">", 0), "sessions that wait for the lock")
}

func (h *hold) release(ctx context.Context) {
	GinkgoHelper()
	Expect(h.conn.Close(ctx)).To(Succeed())
}

// worker returns the API server that copies. It holds an advisory lock in the new database of the move.
func worker(ctx context.Context, moveName, newDatabase string) *localcluster.Process {
	GinkgoHelper()
	const find = `SELECT a.client_port FROM pg_locks l JOIN pg_stat_activity a USING (pid)
		WHERE l.locktype = 'advisory' AND l.granted AND (l.classid::int8 << 32 | l.objid::int8) = hashtextextended($1, 0)`
	conn := connectTo(ctx, newDatabase)
	var port int
	Eventually(func() error {
		return conn.QueryRow(ctx, find, "paddock move "+string(read(ctx, moveName).UID)).Scan(&port)
	}).WithTimeout(patience).WithPolling(10*time.Millisecond).Should(Succeed(), "the lock of the API server that copies")
	for _, server := range paddock.APIServers {
		if hasPort(server, uint64(port)) { //nolint:gosec // a port is not negative
			return server
		}
	}
	Fail(fmt.Sprintf("no API server has a connection from port %d", port))
	return nil
}

// hasPort reports whether a process has a TCP connection from a local port.
func hasPort(process *localcluster.Process, port uint64) bool {
	GinkgoHelper()
	fs, err := procfs.NewDefaultFS()
	Expect(err).NotTo(HaveOccurred())
	connections, err := fs.NetTCP() //nolint:staticcheck // netlink, which replaces it, needs a module of its own for one call
	Expect(err).NotTo(HaveOccurred())
	proc, err := fs.Proc(process.Pid())
	Expect(err).NotTo(HaveOccurred())
	files, err := proc.FileDescriptorTargets()
	Expect(err).NotTo(HaveOccurred())
	open := strings.Join(files, " ")
	for _, c := range connections {
		if c.LocalPort == port && strings.Contains(open, "socket:["+strconv.FormatUint(c.Inode, 10)+"]") {
			return true
		}
	}
	return false
}
