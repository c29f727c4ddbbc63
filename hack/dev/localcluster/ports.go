package localcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/paddock-health/paddock/hack/dev/freeport"
)

const host = "127.0.0.1"

const portPatience = 5 * time.Second

// portSet has the ports of a control plane. They are stored for the next start, so that clients find
// the same addresses.
type portSet struct {
	APIServer  int `json:"apiServer"`
	EtcdClient int `json:"etcdClient"`
	EtcdPeer   int `json:"etcdPeer"`
}

func (o Options) ports() portSet {
	return portSet{APIServer: o.APIServerPort, EtcdClient: o.EtcdClientPort, EtcdPeer: o.EtcdPeerPort}
}

// choosePorts returns wanted with each zero replaced by the port in the file, or by a free port if the
// file has none. It writes the result to the file. It is an error if a port is in use for longer than
// portPatience.
func choosePorts(ctx context.Context, file string, wanted portSet) (portSet, error) {
	remembered, err := readPorts(file)
	if err != nil {
		return portSet{}, err
	}
	chosen := wanted
	for _, p := range []struct {
		port       *int
		remembered int
	}{
		{&chosen.APIServer, remembered.APIServer},
		{&chosen.EtcdClient, remembered.EtcdClient},
		{&chosen.EtcdPeer, remembered.EtcdPeer},
	} {
		if *p.port == 0 {
			*p.port = p.remembered
		}
		// The port stays open until all three are chosen, so that no two are the same.
		listener, err := awaitListen(ctx, *p.port)
		if err != nil {
			return portSet{}, fmt.Errorf("take port: %w: free it, or choose another port (%s has the ports of the last start)",
				err, file)
		}
		defer func() { _ = listener.Close() }()
		*p.port = listener.Addr().(*net.TCPAddr).Port
	}
	content, err := json.Marshal(chosen)
	if err != nil {
		return portSet{}, fmt.Errorf("remember the ports: %w", err)
	}
	if err := replaceFile(file, content); err != nil {
		return portSet{}, fmt.Errorf("remember the ports: %w", err)
	}
	return chosen, nil
}

func readPorts(file string) (portSet, error) {
	var ports portSet
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return ports, nil
	}
	if err != nil {
		return ports, fmt.Errorf("read the ports of the last start: %w", err)
	}
	if err := json.Unmarshal(content, &ports); err != nil {
		return ports, fmt.Errorf("read the ports of the last start: %s: %w: remove the file", file, err)
	}
	return ports, nil
}

// awaitListen waits up to portPatience for a port that is in use. The children of a killed process
// hold their sockets for a moment after its lock on the folder is free.
func awaitListen(ctx context.Context, port int) (net.Listener, error) {
	var listener net.Listener
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, portPatience, true, func(context.Context) (bool, error) {
		listener, last = listen(port)
		return last == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w (waiting for it: %w)", last, err)
	}
	return listener, nil
}

// listen takes the given port, or any free one for zero.
func listen(port int) (net.Listener, error) {
	if port != 0 {
		return net.Listen("tcp", address(port))
	}
	return freeport.Listen()
}

func address(port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

func baseURL(port int) string { return "https://" + address(port) }
