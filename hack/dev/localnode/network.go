//go:build linux

package localnode

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
)

// These addresses cannot collide with those of the machine's networks, because the node's network
// namespace has no link to the outside.
var (
	nodeAddress = netip.MustParseAddr("172.31.255.1")
	podRange    = netip.MustParsePrefix("10.244.0.0/24")
)

const (
	serviceRange = "10.0.0.0/24"
	dnsAddress   = "10.0.0.10"
)

// preparedNetwork has the arguments of the ip commands that make the network: a link with the node's
// address, and a default route, which the addresses of Services need because no link has them.
var preparedNetwork = [][]string{
	{"link", "set", "lo", "up"},
	{"link", "add", "node0", "type", "veth", "peer", "name", "node1"},
	{"link", "set", "node1", "up"},
	{"address", "add", nodeAddress.String() + "/32", "dev", "node0"},
	{"link", "set", "node0", "up"},
	{"route", "add", "default", "dev", "node0"},
}

func prepareNetwork(ctx context.Context) error {
	for _, args := range preparedNetwork {
		if output, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("prepare the node's network: ip %v: %w: %s", args, err, output)
		}
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return fmt.Errorf("prepare the node's network: %w", err)
	}
	return nil
}
