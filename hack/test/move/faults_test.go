package move

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/hack/dev/localpaddock"
)

// faultSpecs move the Site from the cluster to the database first while what is below Paddock fails.
func faultSpecs() {
	It("moves although Postgres, kube-apiserver and connections fail, and an API server sleeps and is rolled out", func(ctx SpecContext) {
		migrate(ctx, "first")
		l := startLoad("f")
		time.Sleep(500 * time.Millisecond)
		held := holdTable(ctx, "first", "res", "SHARE ROW EXCLUSIVE")
		sleeping := paddock.APIServers[1]
		Expect(sleeping.Pause()).To(Succeed()) // so that the other API server copies
		create(ctx, "shaken", "first")
		By("cutting the connections and killing Postgres while the records are copied")
		awaitPhase(ctx, "shaken", v1alpha1.MoveCopying, v1alpha1.MoveForward)
		held.blocks(ctx)
		cutOthers(ctx, held)
		held.blocks(ctx)
		By("pausing an API server that waits to take over the copy, until the Site is switched")
		failing(func() { Expect(sleeping.Resume()).To(Succeed()) })
		time.Sleep(2 * time.Second)
		asleep.Store(true)
		DeferCleanup(func() { asleep.Store(false) })
		Expect(sleeping.Pause()).To(Succeed())
		Expect(postgres.Kill()).To(Succeed())
		Expect(postgres.Restart(ctx)).To(Succeed())
		By("killing kube-apiserver and cutting connections while the last changes are copied")
		held = holdTable(ctx, "first", "delivery", "SHARE ROW EXCLUSIVE")
		// On a busy machine, the last changes may be copied already.
		if now := read(ctx, "shaken").Status; rank(now.Phase, now.Direction) < rank(v1alpha1.MoveCatchingUp, v1alpha1.MoveForward) {
			awaitPhase(ctx, "shaken", v1alpha1.MoveCatchingUp, v1alpha1.MoveForward)
			held.blocks(ctx)
		}
		cutOthers(ctx, held)
		stopKeeping := keepController(ctx)
		failing(func() {
			Expect(cluster.APIServer().Kill()).To(Succeed())
			Expect(cluster.APIServer().Restart(ctx)).To(Succeed())
		})
		held.release(ctx)
		await(ctx, "shaken", "Switched")
		Eventually(func() int { return send(ctx, "PUT", paddock.URLs[0]+patients+"/woken", patient("woken", 0)).status }).WithTimeout(patience).Should(BeElementOf(200, 201))
		failing(func() { Expect(sleeping.Resume()).To(Succeed()) })
		Eventually(func() int { return send(ctx, "GET", paddock.URLs[1]+patients+"/woken", "").status }).WithTimeout(patience).Should(Equal(200))
		asleep.Store(false)
		Expect(storage(ctx)).To(Equal("Postgres first"))
		time.Sleep(2 * time.Second)

		By("rolling out the API servers and killing Postgres during the return")
		decide(ctx, "shaken", "RollBack")
		failing(func() {
			for _, server := range paddock.APIServers {
				Expect(server.Restart(ctx)).To(Succeed())
			}
			Expect(postgres.Kill()).To(Succeed())
			Expect(postgres.Restart(ctx)).To(Succeed())
		})
		await(ctx, "shaken", "RolledBack")
		stopKeeping()
		Expect(storage(ctx)).To(Equal("Cluster "))
		l.stop(ctx)
		expectNothing(ctx, "first")
	}, SpecTimeout(5*time.Minute))

	It("waits for the clock of the new database", func(ctx SpecContext) {
		migrate(ctx, "first")
		l := startLoad("w")
		time.Sleep(500 * time.Millisecond)
		setBack := connectTo(ctx, "first")
		behind(ctx, setBack, "first", "4 seconds")
		create(ctx, "late", "first")
		await(ctx, "late", "Switched")
		l.stop(ctx)
		// The clock is behind for four seconds after the last write, which on a busy machine is long before the pause.
		Expect(pauseOf(ctx, "late")).To(BeNumerically(">", 2*time.Second), "until the clock is past the last write")
		onTime(ctx, setBack, "first")
		Eventually(func() (pending int, err error) { // the cluster takes no pending deliveries
			err = setBack.QueryRow(ctx, `SELECT (SELECT count(*) FROM outbox) + (SELECT count(*) FROM delivery WHERE status = 0)`).Scan(&pending)
			return pending, err
		}).WithContext(ctx).WithTimeout(time.Minute).Should(BeZero())
		decide(ctx, "late", "RollBack")
		await(ctx, "late", "RolledBack")
	}, SpecTimeout(3*time.Minute))
}

// failing does what makes API servers refuse reads for a moment.
func failing(do func()) {
	GinkgoHelper()
	lastStart.Store(time.Now().Add(time.Minute).UnixMilli())
	do()
	lastStart.Store(time.Now().UnixMilli())
}

// keepController restarts the controller if it ends because it could not renew its Lease, until stop is called.
func keepController(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	DeferCleanup(cancel)
	ended := make(chan error, 1)
	go func() { ended <- localpaddock.KeepController(ctx, paddock.Controllers[0]) }()
	return func() {
		GinkgoHelper()
		cancel()
		Expect(<-ended).To(Succeed())
	}
}

// cutOthers ends all sessions in the database of a hold but that of the hold.
func cutOthers(ctx context.Context, h *hold) {
	GinkgoHelper()
	_, err := h.conn.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()", h.database)
	Expect(err).NotTo(HaveOccurred())
}

// behind makes the clock of a database late for new sessions of its role, by a function that hides the
// one of Postgres. Sessions that are open end.
func behind(ctx context.Context, conn *pgx.Conn, database, by string) {
	GinkgoHelper()
	execute(ctx, conn,
		"CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT pg_catalog.clock_timestamp() - interval '"+by+"' $$",
		"ALTER ROLE "+database+" IN DATABASE "+database+" SET search_path = public, pg_catalog",
		endSessions(database))
}

// onTime undoes behind.
func onTime(ctx context.Context, conn *pgx.Conn, database string) {
	GinkgoHelper()
	execute(ctx, conn,
		"ALTER ROLE "+database+" IN DATABASE "+database+" RESET search_path", "DROP FUNCTION public.clock_timestamp()",
		endSessions(database))
}

// endSessions returns the statement that ends all sessions of a role but the one that executes it.
func endSessions(role string) string {
	return "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '" + role + "' AND pid <> pg_backend_pid()"
}
