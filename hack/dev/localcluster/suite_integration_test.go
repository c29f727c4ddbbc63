package localcluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/dev/localcluster"
)

// parentDir makes this test binary a program that starts a control plane in the folder it
// names, tells the process ids and waits to be killed.
const parentDir = "LOCALCLUSTER_PARENT_DIR"

// family is what that program prints.
type family struct {
	Etcd, APIServer, ControllerManager int
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentDir); dir != "" {
		if err := beParent(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func beParent(dir string) error {
	cluster, err := localcluster.Start(context.Background(), localcluster.Options{Dir: dir, ControllerManager: true})
	if err != nil {
		return err
	}
	err = json.NewEncoder(os.Stdout).Encode(family{
		Etcd:              cluster.Etcd().Pid(),
		APIServer:         cluster.APIServer().Pid(),
		ControllerManager: cluster.ControllerManager().Pid(),
	})
	if err != nil {
		return err
	}
	select {}
}

func TestLocalCluster(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "Local control plane")
}

// start brings up a control plane that ends with the spec or container it is started in.
func start(ctx context.Context, opts localcluster.Options) *localcluster.Cluster {
	GinkgoHelper()
	if opts.Out == nil {
		opts.Out = GinkgoWriter
	}
	cluster, err := localcluster.Start(ctx, opts)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cluster.Stop)
	return cluster
}
