//go:build linux

package localnode

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/paddock-health/paddock/hack/dev/localcluster"
)

const (
	containerdSocket = "/run/containerd/containerd.sock"
	probeTimeout     = 5 * time.Second
)

// startContainerd starts the container runtime.
func (n *Node) startContainerd(ctx context.Context) error {
	if err := os.MkdirAll(n.file("cni"), 0o755); err != nil {
		return err
	}
	if err := n.settings.render("network.conflist", n.file("cni/paddock-node.conflist")); err != nil {
		return err
	}
	if err := n.settings.render("containerd.toml", n.file("containerd.toml")); err != nil {
		return err
	}
	path, err := exec.LookPath("containerd")
	if err != nil {
		return fmt.Errorf("find containerd: %w: install the packages that the README of hack/test/e2e names", err)
	}
	_, err = n.Cluster.StartProgram(ctx, localcluster.Program{
		Name: "containerd", Path: path, Args: []string{"--config", n.file("containerd.toml")},
		Ready: func(ctx context.Context) error { return n.ctr(ctx, "plugins", "list", "id==cri") },
	})
	return err
}

// ImportImages imports the images of archives (OCI or Docker) into the node, under the names in the
// archives.
func (n *Node) ImportImages(ctx context.Context, archives ...string) error {
	for _, archive := range archives {
		if err := n.ctr(ctx, "images", "import", archive); err != nil {
			return err
		}
	}
	return nil
}

// KillContainer ends a container by SIGKILL, as a crash would. id is the containerID in the status of
// a pod.
func (n *Node) KillContainer(ctx context.Context, id string) error {
	return n.ctr(ctx, "tasks", "kill", "--signal", "SIGKILL", strings.TrimPrefix(id, "containerd://"))
}

func (n *Node) ctr(ctx context.Context, args ...string) error {
	args = append([]string{"--address", containerdSocket, "--namespace", "k8s.io"}, args...)
	if output, err := exec.CommandContext(ctx, "ctr", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ctr %v: %w: %s", args, err, output)
	}
	return nil
}

func (n *Node) startScheduler(ctx context.Context) error {
	kubeconfig, err := n.credentials("system:kube-scheduler")
	if err != nil {
		return err
	}
	return n.start(ctx, "kube-scheduler", "https://127.0.0.1:10259/readyz",
		"--kubeconfig="+kubeconfig,
		"--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig,
		"--bind-address=127.0.0.1",
		"--leader-elect=false",
	)
}

func (n *Node) startKubelet(ctx context.Context) error {
	kubeconfig, err := n.credentials("system:node:"+nodeName, "system:nodes")
	if err != nil {
		return err
	}
	if err := n.settings.render("kubelet.yaml", n.file("kubelet.yaml")); err != nil {
		return err
	}
	return n.start(ctx, "kubelet", "http://127.0.0.1:10248/healthz",
		"--config="+n.file("kubelet.yaml"),
		"--kubeconfig="+kubeconfig,
		"--root-dir="+n.file(dirKubelet),
		"--hostname-override="+nodeName,
		"--node-ip="+nodeAddress.String(),
	)
}

func (n *Node) startProxy(ctx context.Context) error {
	kubeconfig, err := n.credentials("system:kube-proxy")
	if err != nil {
		return err
	}
	n.settings.Kubeconfig = kubeconfig
	if err := n.settings.render("kube-proxy.yaml", n.file("kube-proxy.yaml")); err != nil {
		return err
	}
	return n.start(ctx, "kube-proxy", "http://127.0.0.1:10256/livez", "--config="+n.file("kube-proxy.yaml"))
}

// start starts one of the programs that hack/tools builds.
func (n *Node) start(ctx context.Context, name, health string, args ...string) error {
	_, err := n.Cluster.StartProgram(ctx, localcluster.Program{
		Name: name, Path: filepath.Join(n.binDir, name), Args: args,
		Ready: func(ctx context.Context) error { return getOK(ctx, health) },
	})
	return err
}

// credentials writes a kubeconfig of a user, and returns its path.
func (n *Node) credentials(user string, groups ...string) (string, error) {
	config, err := n.Cluster.UserConfig(user, groups...)
	if err != nil {
		return "", err
	}
	path := n.file(filepath.Base(user) + ".node.kubeconfig")
	return path, localcluster.WriteKubeconfig(path, config)
}

// healthClient calls the health endpoints of programs on this machine. It verifies no certificate,
// because that of the scheduler is self-signed.
var healthClient = &http.Client{Transport: &http.Transport{
	TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
	DisableKeepAlives: true,
}}

func getOK(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := healthClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return nil
}
