//go:build linux

// Package e2e tests Paddock's chart on a real node: pods of our images, Services, DNS,
// volumes, an ingress controller. `make e2e` runs it, as root.
package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"

	"github.com/paddock-health/paddock/hack/dev/localnode"
	"github.com/paddock-health/paddock/hack/dev/module"
)

const (
	pauseImage   = "paddock.local/pause:e2e"
	coreDNSImage = "paddock.local/coredns:e2e"
)

var (
	node    *localnode.Node
	clients *kubernetes.Clientset
	// binDir holds programs and, in e2e/, image archives; sourceDir is the repository.
	binDir, sourceDir string
)

// TestMain starts over where a node may be run, and keeps logs in .local/e2e.
func TestMain(m *testing.M) {
	var err error
	if binDir, err = module.Bin(); err == nil {
		sourceDir = filepath.Dir(binDir)
		err = localnode.Enclose(stateDir())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "A real node")
}

func stateDir() string { return filepath.Join(sourceDir, ".local", "e2e") }

func archive(image string) string { return filepath.Join(binDir, "e2e", image+".tar") }

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(2 * time.Minute)
	SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	var err error
	node, err = localnode.Start(ctx, localnode.Options{
		Dir: stateDir(), BinDir: binDir, Out: GinkgoWriter,
		PauseImage: pauseImage, CoreDNSImage: coreDNSImage,
		Archives: []string{archive("pause"), archive("coredns")},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(node.Stop()).To(Succeed()) })
	clients, err = kubernetes.NewForConfig(node.Cluster.Config())
	Expect(err).NotTo(HaveOccurred())
	Expect(node.ImportImages(ctx, archive("skipper"), archive("postgres"), archive("cloudnative-pg"), archive("former/apiserver"), archive("former/controller"))).To(Succeed())
}, NodeTimeout(5*time.Minute))

// kubectl runs kubectl as an administrator and fails the spec if that fails.
func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	output, err := node.Kubectl(ctx, args...)
	if err != nil {
		Fail(err.Error())
	}
	return output
}

// apply applies a manifest of the folder manifests. Pods of a new namespace are refused until
// it has its service account.
func apply(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(ctx, func() error {
		_, err := node.Kubectl(ctx, "apply", "--server-side", "--force-conflicts", "--filename", filepath.Join("manifests", name))
		return err
	}).Should(Succeed())
}
