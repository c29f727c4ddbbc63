// Package localnode runs a real Kubernetes node on this machine: the control plane of
// localcluster, and containerd, a scheduler, a kubelet, kube-proxy and CoreDNS beside it. It is
// apart from localcluster because it needs what that does without: Linux, root, and Debian's
// containerd, runc, containernetworking-plugins, iptables, iproute2, conntrack and ethtool.
// It knows nothing of Paddock.
package localnode
