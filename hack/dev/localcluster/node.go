package localcluster

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"time"
)

// serviceRange is where Services get their addresses from, serviceAddress that of the
// Service by which pods find the API server.
const (
	serviceRange   = "10.0.0.0/24"
	serviceAddress = "10.0.0.1"
)

// Node says where the kubelet and the pods of this machine find the control plane.
type Node struct {
	// Address is one of the machine's own, not loopback. The API server listens on all of them.
	Address netip.Addr
	// PodRange is where pods get their addresses from.
	PodRange netip.Prefix
}

// addresses are those that the API server's certificate names beside loopback.
func (n *Node) addresses() []net.IP {
	if n == nil {
		return nil
	}
	return []net.IP{net.IP(n.Address.AsSlice()), net.ParseIP(serviceAddress)}
}

// apiServerArgs are for a cluster that has a node; without one, nothing but this machine's
// programs reaches the API server, and no Service leads to it.
func (n *Node) apiServerArgs(pki pki) []string {
	if n == nil {
		return []string{
			"--bind-address=" + host,
			"--advertise-address=" + host,
			"--authorization-mode=RBAC",
			"--endpoint-reconciler-type=none",
		}
	}
	return []string{
		"--bind-address=0.0.0.0",
		"--advertise-address=" + n.Address.String(),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--kubelet-preferred-address-types=InternalIP", // the node's name does not resolve
		"--kubelet-certificate-authority=" + pki.cluster.certFile,
		"--kubelet-client-certificate=" + pki.admin.certFile,
		"--kubelet-client-key=" + pki.admin.keyFile,
	}
}

func (n *Node) controllerManagerArgs() []string {
	if n == nil {
		return nil
	}
	return []string{"--allocate-node-cidrs=true", "--cluster-cidr=" + n.PodRange.String()}
}

// CAFile is the certificate authority of clients and servers of the cluster.
func (c *Cluster) CAFile() string { return c.pki.cluster.certFile }

// ServingCertificate makes a certificate, signed by that authority, for a server with the
// given names and addresses, and returns the paths of it and of its key.
func (c *Cluster) ServingCertificate(name string, dnsNames []string, addresses ...netip.Addr) (certFile, keyFile string, err error) {
	l := leaf{commonName: name, usages: serverUsage, dnsNames: dnsNames}
	for _, address := range addresses {
		l.ips = append(l.ips, net.IP(address.AsSlice()))
	}
	pair, err := c.pki.cluster.ensure(filepath.Join(c.paths.pki(), strings.ReplaceAll(name, ":", "-")), l, time.Now())
	if err != nil {
		return "", "", fmt.Errorf("make a certificate for %s: %w", name, err)
	}
	return pair.certFile, pair.keyFile, nil
}
