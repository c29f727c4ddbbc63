// Package localnode runs a real Kubernetes cluster of one node on this machine: the control plane of
// localcluster, containerd, a scheduler, a kubelet, kube-proxy and CoreDNS. It is a package of its
// own, because unlike localcluster it needs root and the Debian packages containerd, runc,
// containernetworking-plugins, iptables, iproute2, conntrack and ethtool. It knows nothing of Paddock.
package localnode
