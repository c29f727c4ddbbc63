// Package robustness kills, pauses and crashes the processes of a real
// installation while writers are at work, and checks afterwards that what is
// stored is what was acknowledged. `make robustness` runs it.
package robustness

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/dev/localcluster"
	"github.com/paddock-health/paddock/hack/dev/localpaddock"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// How much is broken. The defaults are those of the short run; -ginkgo.seed
// repeats the random choices of a run, though not its timing.
var (
	kills             = flag.Int("kills", 8, "how often API servers are killed under load")
	postgresKills     = flag.Int("postgres-kills", 2, "how often Postgres is killed, and paused, under load")
	controlPlaneKills = flag.Int("control-plane-kills", 1, "how often each of kube-apiserver and etcd is killed, and paused, under load")
	pauses            = flag.Int("pauses", 2, "how often API servers are paused under load")
	longPauses        = flag.Int("long-pauses", 0, "how often they are paused for longer than a request to the cluster may take")
	failpointDeaths   = flag.Int("failpoint-deaths", 1, "how often an API server dies at each failpoint under load")
	stepFaults        = flag.Int("step-faults", 1, "how often a writer on the engine dies, and how often it falls asleep, after each step")
	binDir            = flag.String("bin", filepath.Join("..", "..", "..", "bin"), "folder with the programs")
	apiServer         = flag.String("apiserver", "apiserver", "name of the API server's program in that folder")
	writerCount       = flag.Int("writers", 16, "how many writers use the API at the same time")
)

const (
	siteID = "robustness"
	// The site in Postgres has a namespace of the same name.
	postgresSiteID = "robustness-postgres"
	account        = "editor"
)

// The installation under test.
var (
	control  *localcluster.Cluster
	paddock  *localpaddock.Paddock
	database *localpostgres.Server
	// bearers are tokens, by site.
	bearers = map[string]string{}
	report  summary
)

func TestMain(m *testing.M) {
	if kubeconfig := os.Getenv(childKubeconfig); kubeconfig != "" {
		if err := beChild(context.Background(), kubeconfig); err != nil {
			fmt.Fprintln(os.Stderr, "writer on the engine:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestPlantedBugsApply keeps the bugs that planted.sh builds in from going stale.
func TestPlantedBugsApply(t *testing.T) {
	patches, err := filepath.Glob(filepath.Join("planted", "*.patch"))
	if err != nil || len(patches) == 0 {
		t.Fatalf("find the planted bugs: %v, %v", patches, err)
	}
	for _, patch := range patches {
		check := exec.Command("git", "apply", "--check", filepath.Join("hack", "test", "robustness", patch))
		check.Dir = filepath.Join("..", "..", "..")
		if output, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s does not apply any more: %v\n%s", patch, err, output)
		}
	}
}

func TestRobustness(t *testing.T) {
	if err := prepareFaultRuns(); err != nil {
		t.Fatal(err)
	}
	if faultRuns.asked > 0 && len(faultRuns.all) == 0 {
		printCounts()
		return // all of them have passed
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "Robustness")
	printCounts()
}

var _ = BeforeSuite(func(ctx SpecContext) {
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	bin, err := filepath.Abs(*binDir)
	Expect(err).NotTo(HaveOccurred())
	source, err := filepath.Abs(filepath.Join("..", "..", ".."))
	Expect(err).NotTo(HaveOccurred())

	control, err = localcluster.Start(ctx, localcluster.Options{Dir: stateDir(), BinDir: bin, Out: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(control.Stop)
	paddock, err = localpaddock.Start(ctx, control, localpaddock.Options{
		BinDir: bin, SourceDir: source, APIServers: 2, Deliveries: 2, APIServerBinary: *apiServer, Aggregated: true,
	})
	Expect(err).NotTo(HaveOccurred())
	serveSite(ctx, siteID, "site.yaml")
	database = startPostgres(ctx)
	serveSiteInPostgres(ctx, postgresSiteID)
})

// serveSite applies the manifest of a site and waits until both API servers serve the site.
func serveSite(ctx context.Context, site, manifest string) {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("testdata", manifest))
	Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(GinkgoT().TempDir(), manifest)
	Expect(os.WriteFile(file, bytes.ReplaceAll(text, []byte("SITE"), []byte(site)), 0o600)).To(Succeed())
	_, err = paddock.Kubectl(ctx, "apply", "--server-side", "--filename", file)
	Expect(err).NotTo(HaveOccurred())
	_, err = paddock.Kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=60s", "--namespace", site, "site/"+site)
	Expect(err).NotTo(HaveOccurred())
	bearers[site], err = paddock.Token(ctx, site, account, "paddock.health/"+site+"/"+site, 24*time.Hour)
	Expect(err).NotTo(HaveOccurred())
	for _, url := range paddock.URLs[:2] { // others, which specs add, may be dead
		Eventually(ctx, func() string {
			return newClient(kind{"Patient", "patient", site, "", ""}, url).get(ctx, "nobody").said()
		}).Should(Equal("404 " + codeNotFound))
	}
}

// serveSiteInPostgres makes a database of the name of the site, and serves the site from it.
func serveSiteInPostgres(ctx context.Context, site string) {
	GinkgoHelper()
	uri, err := database.CreateDatabase(ctx, site, site)
	Expect(err).NotTo(HaveOccurred())
	_, err = paddock.Kubectl(ctx, "create", "namespace", site)
	Expect(err).NotTo(HaveOccurred())
	Expect(paddock.SetSecret(ctx, site, "db", "paddock.health/dsn", map[string]string{"uri": uri})).To(Succeed())
	serveSite(ctx, site, "site-postgres.yaml")
}

var _ = ReportAfterEach(func(spec SpecReport) { report.failed = report.failed || spec.Failed() })

var _ = ReportAfterSuite("summary", func(Report) { fmt.Print(&report) })

// stateDir makes the folder of the control plane. It stays when a spec fails: the
// logs are in it.
func stateDir() string {
	dir, err := os.MkdirTemp("", "paddock-robustness-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		if report.failed {
			fmt.Printf("logs are in %s\n", dir)
			return
		}
		Expect(os.RemoveAll(dir)).To(Succeed())
	})
	return dir
}

// idle waits, for a time that is itself part of the test, or until ctx ends.
func idle(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
