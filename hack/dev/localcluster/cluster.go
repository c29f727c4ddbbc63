// Package localcluster runs a real Kubernetes control plane without containers: etcd,
// kube-apiserver and, on request, controllers, as child processes whose whole
// state is one folder. `make run` and the integration tests start it. It knows nothing of
// Paddock's own programs. Its flags and their reasons: docs/decisions/0001-embedded-control-plane.md.
package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/paddock-health/paddock/hack/dev/dirlock"
)

// startTimeout is for a machine busy with other work; an idle one needs 5 s.
const startTimeout = 2 * time.Minute

// Cluster is a running control plane. The kernel kills its processes when the process that started
// them ends.
type Cluster struct {
	paths   paths
	pki     pki
	config  *rest.Config
	lock    *dirlock.Lock
	parents *parentThread
	stop    func() error
	out     io.Writer

	etcdURL           string
	etcd              *Process
	apiServer         *Process
	controllerManager *Process
	programs          []*Process
}

// Start starts a control plane with its state in opts.Dir, new or with the data of an earlier one, and
// returns when it is ready. ctx limits only the start; Stop ends the control plane.
// Errors: *dirlock.HeldError for the folder of a running control plane.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	opts, err := opts.complete()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	c := &Cluster{paths: paths(opts.Dir), parents: newParentThread(), out: opts.Out}
	c.stop = sync.OnceValue(c.stopAll)
	if err := c.start(ctx, opts); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, opts Options) error {
	if err := c.takeDir(ctx); err != nil {
		return err
	}
	ports, err := choosePorts(ctx, c.paths.ports(), opts.ports())
	if err != nil {
		return err
	}
	if c.pki, err = ensurePKI(c.paths.pki(), opts.Node.addresses(), time.Now()); err != nil {
		return err
	}
	if c.config, err = c.pki.clientConfig(ports.APIServer, c.pki.admin); err != nil {
		return err
	}
	if err := WriteKubeconfig(c.Kubeconfig(), c.config); err != nil {
		return err
	}
	if err := c.define(opts, ports); err != nil {
		return err
	}
	for _, p := range c.processes() {
		if err := p.begin(ctx); err != nil {
			return err
		}
	}
	return nil
}

// takeDir locks the folder for this process, ends processes that a crashed owner may have left running
// in it, and rotates the logs.
func (c *Cluster) takeDir(ctx context.Context) error {
	if err := c.paths.create(); err != nil {
		return err
	}
	var err error
	if c.lock, err = dirlock.Take(c.paths.lock()); err != nil {
		return fmt.Errorf("take the folder of the control plane: %w", err)
	}
	for _, name := range []string{nameControllerManager, nameControllers, nameAPIServer, nameEtcd} {
		if err := endOrphan(ctx, c.paths.child(name), c.paths.root()); err != nil {
			return err
		}
		if err := rotateLog(c.paths.log(name)); err != nil {
			return fmt.Errorf("put the log of the last start aside: %w", err)
		}
	}
	return nil
}

// define describes the processes; it starts none.
func (c *Cluster) define(opts Options, ports portSet) error {
	etcd, err := etcdCommand(opts, ports, c.paths, c.pki)
	if err != nil {
		return err
	}
	c.etcd, c.etcdURL = c.process(etcd, opts), baseURL(ports.EtcdClient)
	apiServer, err := apiServerCommand(opts, ports, c.paths, c.pki, c.config)
	if err != nil {
		return err
	}
	c.apiServer = c.process(apiServer, opts)
	if opts.controllersName() == "" {
		return nil
	}
	controllerManager, err := controllerManagerCommand(opts, c.paths, c.pki, ports, c.config)
	if err != nil {
		return err
	}
	c.controllerManager = c.process(controllerManager, opts)
	return nil
}

func (c *Cluster) process(cmd command, opts Options) *Process {
	return &Process{
		command: cmd,
		path:    filepath.Join(opts.BinDir, cmd.name),
		logFile: c.paths.log(cmd.name),
		record:  c.paths.child(cmd.name),
		parents: c.parents,
		out:     opts.Out,
	}
}

// processes returns the processes of the control plane in the order in which they start.
func (c *Cluster) processes() []*Process {
	var all []*Process
	for _, p := range []*Process{c.etcd, c.apiServer, c.controllerManager} {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}

// Stop ends the programs, all at once, then the processes of the control plane in the reverse order of
// their start, and releases the lock of the folder. Data, ports and certificates stay for the next
// Start. Stopping again changes nothing.
func (c *Cluster) Stop() error { return c.stop() }

func (c *Cluster) stopAll() error {
	errs := make([]error, len(c.programs))
	var programs sync.WaitGroup
	for n, p := range c.programs {
		programs.Go(func() { errs[n] = p.end() })
	}
	programs.Wait()
	if c.controllerManager != nil {
		errs = append(errs, c.controllerManager.end())
	}
	if c.apiServer != nil {
		errs = append(errs, c.endAPIServer())
	}
	if c.etcd != nil {
		errs = append(errs, c.etcd.end())
	}
	c.parents.end()
	if c.lock != nil {
		errs = append(errs, c.lock.Release())
	}
	return errors.Join(errs...)
}

// endAPIServer stops kube-apiserver, which needs etcd for its shutdown: it resumes a paused etcd. It
// kills kube-apiserver if etcd does not run.
func (c *Cluster) endAPIServer() error {
	if c.etcd.Resume() == nil {
		return c.apiServer.end()
	}
	if err := c.apiServer.Kill(); !errors.Is(err, errNotRunning) {
		return err
	}
	return nil
}

// Config returns the configuration of a client that is a cluster administrator (group system:masters)
// and has no rate limit of client-go.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// UserConfig returns the configuration of a client that authenticates by a new client certificate
// as the user, who is a member of the groups. UserConfig grants no rights: these come from RBAC.
func (c *Cluster) UserConfig(user string, groups ...string) (*rest.Config, error) {
	return c.pki.userConfig(c.config, user, groups)
}

// Kubeconfig returns the path of a kubeconfig with the credentials of Config.
func (c *Cluster) Kubeconfig() string { return c.paths.kubeconfig() }

// AuditLog returns the path of kube-apiserver's audit log, in JSON lines. The file exists only if
// Options.AuditLog is set.
func (c *Cluster) AuditLog() string { return c.paths.auditLog() }

// FrontProxyCAFile returns the path of the CA that an aggregated API server must trust for requests
// that kube-apiserver proxies to it.
func (c *Cluster) FrontProxyCAFile() string { return c.pki.frontProxy.certFile }

// FrontProxyClientCert returns the path of the certificate that kube-apiserver presents to
// aggregated API servers.
func (c *Cluster) FrontProxyClientCert() string { return c.pki.proxyClient.certFile }

// FrontProxyClientKey returns the path of the key of FrontProxyClientCert.
func (c *Cluster) FrontProxyClientKey() string { return c.pki.proxyClient.keyFile }

// Etcd returns the etcd process.
func (c *Cluster) Etcd() *Process { return c.etcd }

// APIServer returns the kube-apiserver process.
func (c *Cluster) APIServer() *Process { return c.apiServer }

// ControllerManager returns the process of the controllers. It is nil if neither
// Options.ControllerManager nor Options.Controllers is set.
func (c *Cluster) ControllerManager() *Process { return c.controllerManager }
