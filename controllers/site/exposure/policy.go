package exposure

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// Refused returns why the operator does not allow spec.exposure. The reason is empty if spec.exposure
// is allowed or unset. The message does not list the allowed hosts and Gateways, which may belong to
// other tenants.
func Refused(site *v1alpha1.Site, o Options) (reason, message string) {
	switch asked := site.Spec.Exposure; {
	case asked == nil:
		return "", ""
	case asked.Ingress != nil:
		if host := string(asked.Ingress.Host); !allowed(host, o.Hosts) {
			return v1alpha1.ReasonHostNotAllowed, fmt.Sprintf(
				"The operator does not allow host %q. Choose another host, or ask the operator to add it to the chart's value ingress.siteHosts.", host)
		}
	case asked.HTTPRoute != nil:
		for _, ref := range asked.HTTPRoute.ParentRefs {
			gateway := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
			if !slices.Contains(o.Gateways, gateway) {
				return v1alpha1.ReasonGatewayNotAllowed, fmt.Sprintf(
					"The operator does not allow Gateway %q. Choose another Gateway, or ask the operator to add it to the chart's value gateways.", gateway)
			}
		}
	}
	return "", ""
}

// allowed reports whether one of the patterns matches the host. As in certificates, an asterisk
// matches one label.
func allowed(host string, patterns []string) bool {
	_, parent, _ := strings.Cut(host, ".")
	return slices.Contains(patterns, host) || parent != "" && slices.Contains(patterns, "*."+parent)
}
