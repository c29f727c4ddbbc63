package robustness

import (
	"context"
	"os"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"

	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

var _ = Describe("two API servers under load", Label("load"), func() {
	It("lose, double and mix up nothing when processes are killed and paused", func(ctx SpecContext) {
		log := newRecorder()
		servers := []*victim{
			{name: "apiserver", process: paddock.APIServers[0]},
			{name: "apiserver-2", process: paddock.APIServers[1]},
		}
		controlPlane := []*victim{
			{name: "kube-apiserver", process: control.APIServer()},
			{name: "etcd", process: control.Etcd()},
		}
		stop := startWriters(patients, paddock.URLs[:2], newHerd("load"), log)
		DeferCleanup(stop)

		var faults errgroup.Group
		for i, v := range servers {
			faults.Go(func() error {
				return breakAPIServer(ctx, v, newRandom(v.name, i), share(*kills, i), share(*pauses, i), share(*longPauses, i))
			})
		}
		faults.Go(func() error {
			return breakControlPlane(ctx, controlPlane, newRandom("control plane", 0), *controlPlaneKills)
		})
		controller := &victim{name: "controller", process: paddock.Controllers[0]}
		supervised, unsupervise := context.WithCancel(ctx)
		DeferCleanup(unsupervise)
		var supervision errgroup.Group
		supervision.Go(func() error { return superviseController(supervised, controller, paddock.Controllers[0]) })
		Expect(faults.Wait()).To(Succeed())
		expectRecovery(ctx, log)
		stop()
		unsupervise()
		Expect(supervision.Wait()).To(Succeed())
		report.add("under load", log, slices.Concat(servers, controlPlane, []*victim{controller}))
		verify(ctx, patients, log)
	}, SpecTimeout(30*time.Minute))

	It("lose, double and mix up nothing when they and the Postgres below them are killed and paused", func(ctx SpecContext) {
		log := newRecorder()
		servers := []*victim{
			{name: "apiserver", process: paddock.APIServers[0]},
			{name: "apiserver-2", process: paddock.APIServers[1]},
		}
		below := &victim{name: "postgres", process: database}
		stop := startWriters(patientsInPostgres, paddock.URLs[:2], newHerd("postgres"), log)
		DeferCleanup(stop)
		var faults errgroup.Group
		for i, v := range servers {
			faults.Go(func() error {
				return breakAPIServer(ctx, v, newRandom(v.name, i), share(*kills/2, i), share(*pauses, i), 0)
			})
		}
		faults.Go(func() error {
			return breakControlPlane(ctx, []*victim{below}, newRandom("postgres", 0), *postgresKills)
		})
		Expect(faults.Wait()).To(Succeed())
		expectRecovery(ctx, log)
		stop()
		report.add("under load, in Postgres", log, append(servers, below))
		verify(ctx, patientsInPostgres, log)
	}, SpecTimeout(30*time.Minute))
})

// startPostgres starts a server that syncs its log.
func startPostgres(ctx context.Context) *localpostgres.Server {
	GinkgoHelper()
	dir, err := os.MkdirTemp("", "paddock-robustness-postgres-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	server, err := localpostgres.Start(ctx, localpostgres.Options{Dir: dir})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	return server
}

// share splits a number between two.
func share(n, i int) int { return (n + i) / 2 }

// expectRecovery waits until each API server takes writes again.
func expectRecovery(ctx SpecContext, log *recorder) {
	GinkgoHelper()
	for _, server := range paddock.URLs[:2] {
		before := log.written(server)
		Eventually(ctx, func() int { return log.written(server) }).Should(BeNumerically(">", before+20), "writes through %s", server)
	}
}
