package localcluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/paddock-health/paddock/hack/dev/module"
)

// binDirVariable names a folder with the binaries, for machines that have them already.
const binDirVariable = "PADDOCK_BIN"

// Options say where the control plane lives and what it consists of. Only Dir is required.
type Options struct {
	// Dir holds the state: etcd's data, keys and certificates, kubeconfig, ports, logs. It is created if
	// missing, with the mode 0700.
	Dir string
	// BinDir holds etcd, kube-apiserver and the program of the controllers. Default: $PADDOCK_BIN,
	// else bin/ of the Paddock module around the working directory.
	BinDir string

	// The ports on 127.0.0.1. Zero means the port of the last start, which is stored in Dir, or a free
	// port if there was none.
	APIServerPort  int
	EtcdClientPort int
	EtcdPeerPort   int

	// ControllerManager runs kube-controller-manager too: garbage collection, namespace deletion,
	// quota, service accounts. Without ControllerManager and Controllers, the admission plugins that
	// need these controllers are off.
	ControllerManager bool
	// Controllers runs cluster-controllers instead, which is built in a fraction of the time and has
	// those controllers of kube-controller-manager that are of use without nodes and volumes.
	// Cluster.ControllerManager is its process. Controllers is ignored if ControllerManager is set.
	Controllers bool
	// Node makes the control plane one that a kubelet of this machine can join. Default: no kubelet
	// can join.
	Node *Node
	// AuditLog writes the metadata of every request to the file of Cluster.AuditLog.
	AuditLog bool
	// UnsafeNoFsync lets etcd acknowledge a write before the write is on disk. The write survives a
	// crash of processes, but not of the machine. For tests.
	UnsafeNoFsync bool

	// Out gets a line when a process is ready and when one had to be killed. Default: nowhere.
	Out io.Writer
}

// complete checks the options and fills in the defaults.
func (o Options) complete() (Options, error) {
	if o.Dir == "" {
		return o, errors.New("start control plane: Options.Dir is empty: set it to a folder for the state")
	}
	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return o, fmt.Errorf("start control plane: %w", err)
	}
	if o.BinDir == "" {
		o.BinDir = os.Getenv(binDirVariable)
	}
	if o.BinDir == "" {
		if o.BinDir, err = module.Bin(); err != nil {
			return o, fmt.Errorf("find the control plane's binaries: %w, or set %s to their folder", err, binDirVariable)
		}
	}
	if o.BinDir, err = filepath.Abs(o.BinDir); err != nil {
		return o, fmt.Errorf("start control plane: %w", err)
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	return o, o.checkBinaries()
}

func (o Options) checkBinaries() error {
	names := []string{nameEtcd, nameAPIServer}
	if name := o.controllersName(); name != "" {
		names = append(names, name)
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(o.BinDir, name)); err != nil {
			return fmt.Errorf("find the control plane's binaries: %w: run `make tools`, or set %s to a folder that has them",
				err, binDirVariable)
		}
	}
	return nil
}

// controllersName is the name of the program that runs controllers, or empty.
func (o Options) controllersName() string {
	switch {
	case o.ControllerManager:
		return nameControllerManager
	case o.Controllers:
		return nameControllers
	default:
		return ""
	}
}
