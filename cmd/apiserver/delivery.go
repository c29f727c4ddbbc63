package main

import (
	"flag"

	"github.com/paddock-health/paddock/apiserver/egress"
)

// deliveryOptions are the flags of a process with --serve=delivery.
type deliveryOptions struct {
	// webhookNetworks are allowed for receivers in addition to public addresses. Receivers in
	// clusterNetworks are refused even if webhookNetworks has them.
	webhookNetworks, clusterNetworks egress.Networks
	clusterDomain                    string
	// webhooksNamespace is where the controller stores the Secrets of webhooks.
	webhooksNamespace string
	// namespace is the namespace of the Leases with which delivery processes divide the work.
	namespace string
}

func (o *deliveryOptions) addFlags(flags *flag.FlagSet) {
	flags.Var(&o.webhookNetworks, "webhook-networks", "comma-separated `CIDRs` allowed for receivers of webhooks in addition to public addresses, such as 10.0.0.0/8; loopback and link-local addresses are allowed only by networks that lie within their ranges, such as 127.0.0.0/8")
	flags.Var(&o.clusterNetworks, "cluster-networks", "comma-separated `CIDRs` of the cluster's Pods and Services; receivers with addresses in these networks are refused even if --webhook-networks allows them")
	flags.StringVar(&o.clusterDomain, "cluster-domain", "cluster.local", "DNS `domain` of the cluster; receivers with host names in this domain are refused")
	flags.StringVar(&o.webhooksNamespace, "webhooks-namespace", "paddock-webhooks", "`namespace` in which the controller stores the Secrets of webhooks for processes with --serve=delivery")
	flags.StringVar(&o.namespace, "namespace", "paddock-system", "`namespace` of the Leases with which processes with --serve=delivery divide the work")
}
