//go:build linux

package localnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/paddock-health/paddock/hack/dev/localcluster"
	"github.com/paddock-health/paddock/hack/dev/module"
)

const (
	nodeName = "node"
	volumes  = 8
	// volumeSize is the capacity of the volumes in bytes, which is not enforced. boundedSize is that
	// of the bounded volume, which is.
	volumeSize  = 20 << 30
	boundedSize = 1 << 30

	bounded = "bounded"

	dirContainerd = "containerd"
	dirKubelet    = "kubelet"
	dirVolumes    = "volumes"
)

// Options say where a node lives and what it runs.
type Options struct {
	// Dir holds the state and the logs: the folder that Enclose was given.
	Dir string
	// BinDir holds the control plane's and the node's programs. Default: bin/ of the module
	// around the working directory.
	BinDir string
	// PauseImage and CoreDNSImage are names of images in Archives.
	PauseImage, CoreDNSImage string
	// Archives are image archives to import before the first pod starts.
	Archives []string
	// Out gets a line when a program is ready. Default: nowhere.
	Out io.Writer
}

// Node is a cluster of one node.
type Node struct {
	// Cluster is its control plane.
	Cluster *localcluster.Cluster

	binDir   string
	settings settings
}

// Address returns the address of the node: of pods with the host's network, and of node ports.
func (n *Node) Address() netip.Addr { return nodeAddress }

// BoundedVolume returns the folder of the only volume of the StorageClass "bounded".
func (n *Node) BoundedVolume() string { return n.file(filepath.Join(dirVolumes, bounded)) }

// Start starts a new node, and returns when it is Ready and CoreDNS runs. Enclose must have been
// called before.
func Start(ctx context.Context, options Options) (*Node, error) {
	if os.Getenv(stageVariable) != stageInside {
		return nil, errors.New("start a node: it has no namespaces of its own: call Enclose first of all in main")
	}
	n, err := newNode(ctx, options)
	if err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{
		n.startContainerd,
		func(ctx context.Context) error { return n.ImportImages(ctx, options.Archives...) },
		n.prepareServing,
		n.startKubelet,
		n.startScheduler,
		n.apply,
		n.startProxy,
		n.awaitReady,
	} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, n.Stop())
		}
	}
	return n, nil
}

// newNode prepares the network and the volumes, and starts the control plane.
func newNode(ctx context.Context, options Options) (*Node, error) {
	dir, err := filepath.Abs(options.Dir)
	if err != nil {
		return nil, err
	}
	if options.BinDir == "" {
		if options.BinDir, err = module.Bin(); err != nil {
			return nil, err
		}
	}
	if err := prepareNetwork(ctx); err != nil {
		return nil, err
	}
	n := &Node{binDir: options.BinDir, settings: settings{
		Dir:            dir,
		NodeName:       nodeName,
		PauseImage:     options.PauseImage,
		CoreDNSImage:   options.CoreDNSImage,
		PodRange:       podRange.String(),
		ServiceRange:   serviceRange,
		DNSAddress:     dnsAddress,
		ContainerdSock: containerdSocket,
	}}
	for i := range volumes {
		name := "volume-" + strconv.Itoa(i+1)
		n.settings.Volumes = append(n.settings.Volumes, volume{Name: name, Class: "local", Size: volumeSize})
		if err := os.MkdirAll(n.file(filepath.Join(dirVolumes, name)), 0o755); err != nil {
			return nil, err
		}
	}
	n.settings.Volumes = append(n.settings.Volumes, volume{Name: bounded, Class: bounded, Size: boundedSize})
	if err := mountBounded(n.BoundedVolume(), boundedSize); err != nil {
		return nil, err
	}
	n.Cluster, err = localcluster.Start(ctx, localcluster.Options{
		Dir: dir, BinDir: options.BinDir, Out: options.Out,
		ControllerManager: true, UnsafeNoFsync: true,
		Node: &localcluster.Node{Address: nodeAddress, PodRange: podRange},
	})
	return n, err
}

func (n *Node) file(name string) string { return filepath.Join(n.settings.Dir, name) }

// prepareServing makes the serving certificate of the kubelet, which kube-apiserver verifies.
func (n *Node) prepareServing(context.Context) error {
	var err error
	n.settings.CAFile = n.Cluster.CAFile()
	n.settings.CertFile, n.settings.KeyFile, err = n.Cluster.ServingCertificate("kubelet", []string{nodeName}, nodeAddress)
	return err
}

// apply makes the objects that the node needs, such as CoreDNS and the volumes.
func (n *Node) apply(ctx context.Context) error {
	if err := n.settings.render("cluster.yaml", n.file("cluster.yaml")); err != nil {
		return err
	}
	_, err := n.Kubectl(ctx, "apply", "--server-side", "--filename", n.file("cluster.yaml"))
	return err
}

func (n *Node) awaitReady(ctx context.Context) error {
	if _, err := n.Kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=2m", "node/"+nodeName); err != nil {
		return err
	}
	_, err := n.Kubectl(ctx, "--namespace=kube-system", "rollout", "status", "--timeout=2m", "deployment/coredns")
	return err
}

// Kubectl runs kubectl as the cluster's administrator and returns its output.
func (n *Node) Kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(n.binDir, "kubectl"), append([]string{"--kubeconfig", n.Cluster.Kubeconfig()}, args...)...)
	output, err := cmd.CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("kubectl %v: %w: %s", args, err, output)
	}
	return string(output), nil
}

// Stop ends the control plane and the other programs of the node. Containers, mounts and links end
// with the namespaces, when the program that called Enclose ends.
func (n *Node) Stop() error { return n.Cluster.Stop() }
