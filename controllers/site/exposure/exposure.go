// Package exposure decides whether spec.exposure of a Site is allowed, renders the objects that
// route its host names to the API servers, and reads the state of its HTTPRoute. It uses no client
// and no clock.
package exposure

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// service is the Service of the API servers, in the controller's namespace.
const service = "paddock-facade"

// RouteName is the name of the HTTPRoute of each Site. A namespace has at most one Site, so one
// name suffices, and the controller's rights can be limited to it.
const RouteName = "paddock-facade"

// Name returns the name of the objects in the controller's namespace that expose the Site of a
// namespace.
func Name(namespace string) string { return "site-" + namespace }

// Options are the operator's settings for the exposure of Sites.
type Options struct {
	// Namespace is the namespace of the controller and of the API servers' Service.
	Namespace string
	// Port is the port of the API servers' Service.
	Port int32
	// Hosts are the hosts allowed for Ingresses. *.example.org allows any single label in place of *.
	// If empty, no Ingress is allowed.
	Hosts []string
	// Scheme is the scheme of the URLs of Ingresses: https or http.
	Scheme string
	// IngressClass is the class of Ingresses. If empty, the cluster's default class applies.
	IngressClass string
	// Annotations are the annotations of Ingresses.
	Annotations map[string]string
	// TLSSecret is the name of the Secret in Namespace with the certificate of Ingresses. If empty,
	// Ingresses have no TLS.
	TLSSecret string
	// Gateways are the Gateways allowed for HTTPRoutes. If empty, no HTTPRoute is allowed.
	Gateways []types.NamespacedName
}

// Render returns the objects that expose the Site as spec.exposure says, in the order of creation. It
// returns nil if spec.exposure is unset.
func Render(site *v1alpha1.Site, o Options) []client.Object {
	switch asked := site.Spec.Exposure; {
	case asked == nil:
		return nil
	case asked.Ingress != nil:
		return []client.Object{ingress(site, o)}
	default:
		// The ReferenceGrant is first, because Gateways reject an HTTPRoute without it.
		return []client.Object{grant(site, o), route(site, o)}
	}
}

// URL returns the base URL of the Site at the host name in spec.exposure, or "" if spec.exposure is
// unset.
func URL(site *v1alpha1.Site, o Options) string {
	switch asked := site.Spec.Exposure; {
	case asked == nil:
		return ""
	case asked.Ingress != nil:
		return o.Scheme + "://" + string(asked.Ingress.Host) + path(site)
	default:
		return "https://" + string(asked.HTTPRoute.Hostnames[0]) + path(site)
	}
}

// path returns the path of the Site. A siteID has no characters that need escaping.
func path(site *v1alpha1.Site) string { return "/site/" + site.SiteID() }

func about(site *v1alpha1.Site, namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Labels: map[string]string{
			"app.kubernetes.io/name":       "paddock",
			"app.kubernetes.io/component":  "exposure",
			"app.kubernetes.io/part-of":    "paddock",
			"app.kubernetes.io/managed-by": "paddock-controller",
		},
		Annotations: map[string]string{v1alpha1.SiteAnnotation: site.Namespace + "/" + site.Name},
	}
}
