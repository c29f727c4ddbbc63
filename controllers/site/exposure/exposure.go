// Package exposure says which objects lead the address that a Site asks for to the API
// servers, whether it may have that address, and what Gateways make of its route. All of it
// is pure: no client, no clock; who applies the objects is the reconciler.
package exposure

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// service is that of the API servers, in the operator's namespace.
const service = "paddock-facade"

// RouteName is the name of every HTTPRoute. A namespace has one Site, so one name is enough,
// and the controller's rights can be bound to it.
const RouteName = "paddock-facade"

// Name is that of an object in the operator's namespace for the Site of a namespace.
func Name(namespace string) string { return "site-" + namespace }

// Options are what a Site has no say in.
type Options struct {
	// Namespace is the operator's own, where the API servers' Service is.
	Namespace string
	// Port is that of the Service.
	Port int32
	// Hosts may be chosen for Ingresses: names, or *. before a name for any one label there.
	Hosts []string
	// Scheme, IngressClass, Annotations and TLSSecret are those of Ingresses.
	Scheme       string
	IngressClass string
	Annotations  map[string]string
	TLSSecret    string
	// Gateways may be chosen for HTTPRoutes.
	Gateways []types.NamespacedName
}

// Render returns the objects that the Site asks for, in the order in which they are made.
func Render(site *v1alpha1.Site, o Options) []client.Object {
	switch asked := site.Spec.Exposure; {
	case asked == nil:
		return nil
	case asked.Ingress != nil:
		return []client.Object{ingress(site, o)}
	default:
		// A route without its grant would be told off first.
		return []client.Object{grant(site, o), route(site, o)}
	}
}

// URL is the address that the Site asks for, empty if it asks for none.
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

// path is all that leads to the Site: siteIDs have no characters that mean anything in it.
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
