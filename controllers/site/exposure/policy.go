package exposure

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// Refused says why the Site may not have the address that it asks for; the reason is empty
// when it may. What others may have is not told.
func Refused(site *v1alpha1.Site, o Options) (reason, message string) {
	switch asked := site.Spec.Exposure; {
	case asked == nil:
		return "", ""
	case asked.Ingress != nil:
		if host := string(asked.Ingress.Host); !allowed(host, o.Hosts) {
			return v1alpha1.ReasonHostNotAllowed, fmt.Sprintf(
				"the operator does not allow host %q: choose another, or have it added to the chart's value ingress.siteHosts", host)
		}
	case asked.HTTPRoute != nil:
		for _, ref := range asked.HTTPRoute.ParentRefs {
			gateway := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
			if !slices.Contains(o.Gateways, gateway) {
				return v1alpha1.ReasonGatewayNotAllowed, fmt.Sprintf(
					"the operator does not allow Gateway %q: choose another, or have it added to the chart's value gateways", gateway)
			}
		}
	}
	return "", ""
}

// allowed reports whether one of the patterns is for the host. As in certificates, an
// asterisk stands for one label.
func allowed(host string, patterns []string) bool {
	_, parent, _ := strings.Cut(host, ".")
	return slices.Contains(patterns, host) || parent != "" && slices.Contains(patterns, "*."+parent)
}
