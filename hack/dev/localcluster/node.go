package localcluster

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"time"
)

// serviceRange is the range of the addresses of Services. serviceAddress is the address of the Service
// kubernetes, by which pods reach kube-apiserver.
const (
	serviceRange   = "10.0.0.0/24"
	serviceAddress = "10.0.0.1"
)

// Node says where the kubelet and the pods of this machine find the control plane.
type Node struct {
	// Address is an address of the machine that is not loopback. kube-apiserver listens on all
	// addresses.
	Address netip.Addr
	// PodRange is the range of the addresses of pods.
	PodRange netip.Prefix
}

// addresses returns the addresses, in addition to loopback, in the certificate of kube-apiserver.
func (n *Node) addresses() []net.IP {
	if n == nil {
		return nil
	}
	return []net.IP{net.IP(n.Address.AsSlice()), net.ParseIP(serviceAddress)}
}

// apiServerArgs returns flags of kube-apiserver. Without a node, only programs of this machine reach
// kube-apiserver, and no Service leads to it.
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

// CAFile returns the path of the certificate of the authority for clients and servers of the cluster.
func (c *Cluster) CAFile() string { return c.pki.cluster.certFile }

// ServingCertificate returns the paths of a certificate, and of its key, for a server with the
// given names and addresses. The authority of CAFile signs the certificate. The certificate is
// stored, and a later call with the same arguments returns it again unless it expires within 30
// days.
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
