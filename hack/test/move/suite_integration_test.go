// Package move moves Sites between storages while clients write and read, and kills programs on the
// way.
package move

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/hack/dev/localcluster"
	"github.com/paddock-health/paddock/hack/dev/localpaddock"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
	"github.com/paddock-health/paddock/hack/dev/localreceiver"
)

func TestMove(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "moves of Sites")
}

var (
	bin      string
	cluster  *localcluster.Cluster
	paddock  *localpaddock.Paddock
	postgres *localpostgres.Server
	receiver *localreceiver.Receiver
	// uris are how to reach the databases first and second as their owners.
	uris = map[string]string{}
	// admin is a client of the administrator of the cluster.
	admin client.Client
	// token is that of the ServiceAccount editor of the Site demo, which may purge records too, and read
	// the audit log.
	token string
)

var _ = BeforeSuite(func(ctx SpecContext) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	Expect(err).NotTo(HaveOccurred())
	if bin = os.Getenv("PADDOCK_BIN"); bin == "" {
		bin = filepath.Join(root, "bin")
	}
	dir, err := os.MkdirTemp("", "paddock-move")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	cluster, err = localcluster.Start(ctx, localcluster.Options{Dir: filepath.Join(dir, "cluster"), UnsafeNoFsync: true, Out: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cluster.Stop)
	postgres, err = localpostgres.Start(ctx, localpostgres.Options{Dir: filepath.Join(dir, "postgres"), UnsafeNoFsync: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(postgres.Stop)
	receiver = localreceiver.Start()
	DeferCleanup(receiver.Close)
	paddock, err = localpaddock.Start(ctx, cluster, localpaddock.Options{BinDir: bin, SourceDir: root, APIServers: 2})
	Expect(err).NotTo(HaveOccurred(), "the programs come from `make build`")
	Expect(paddock.Apply(ctx, filepath.Join("config", "samples"))).To(Succeed())
	kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=60s", "-n", "demo", "site/demo")
	scheme := runtime.NewScheme()
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	Expect(coordinationv1.AddToScheme(scheme)).To(Succeed())
	admin, err = client.New(cluster.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	apply(ctx, moreRights)
	token, err = paddock.Token(ctx, "demo", "editor", "paddock.health/demo/demo", time.Hour)
	Expect(err).NotTo(HaveOccurred())
	for _, database := range []string{"first", "second"} {
		uri, err := postgres.CreateDatabase(ctx, database, database)
		Expect(err).NotTo(HaveOccurred())
		uris[database] = uri
		Expect(paddock.SetSecret(ctx, "demo", database, "paddock.health/dsn", map[string]string{"uri": uri})).To(Succeed())
	}
	for _, base := range paddock.URLs {
		Eventually(func() int { return send(ctx, "GET", base+patients, "").status }).WithTimeout(patience).Should(Equal(200))
	}
}, NodeTimeout(5*time.Minute))

// After a failure, the ends of the logs show what the programs were doing.
var _ = JustAfterEach(func() {
	if !CurrentSpecReport().Failed() || paddock == nil {
		return
	}
	for _, program := range slices.Concat(paddock.Controllers, paddock.APIServers) {
		log, err := os.ReadFile(program.LogFile())
		if err != nil {
			log = []byte(err.Error())
		}
		// Audit entries have no level.
		lines := slices.DeleteFunc(strings.Split(string(log), "\n"), func(line string) bool { return !strings.Contains(line, `"level"`) })
		fmt.Fprintf(GinkgoWriter, "the end of %s:\n%s\n", program.LogFile(), strings.Join(lines[max(0, len(lines)-shownLines):], "\n"))
	}
})

// shownLines is the number of lines of a log to show.
const shownLines = 20

// moreRights lets the editor purge records and read the audit log.
const moreRights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editor-admin, namespace: demo}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-admin}
subjects: [{kind: ServiceAccount, name: editor, namespace: demo}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editor-auditor, namespace: demo}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-auditor}
subjects: [{kind: ServiceAccount, name: editor, namespace: demo}]
`

// patience is the time limit of what Paddock does within seconds, or within 40 s under the load of a crowd
// (full_test.go), if nothing else runs on the machine.
const patience = 4 * time.Minute

// maxPause is the time after which the controller gives up a switch. The specs of full_test.go, which run on an
// idle machine, expect less.
const maxPause = time.Minute

// kubectl runs kubectl as the administrator of the cluster.
func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	output, err := paddock.Kubectl(ctx, args...)
	Expect(err).NotTo(HaveOccurred())
	return string(output)
}
