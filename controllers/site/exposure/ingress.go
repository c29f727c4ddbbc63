package exposure

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// settingsAnnotation has the hash of the operator's settings with which an Ingress was applied.
// After a change of the settings, the Ingress is applied again, which removes the fields of the
// previous settings.
const settingsAnnotation = "paddock.health/ingress-settings"

// ingress returns the Ingress of a Site. It is in the controller's namespace, because an Ingress
// can use only Services and Secrets of its own namespace.
func ingress(site *v1alpha1.Site, o Options) *networkingv1.Ingress {
	host := string(site.Spec.Exposure.Ingress.Host)
	meta := about(site, o.Namespace, Name(site.Namespace))
	meta.Annotations[settingsAnnotation] = settings(o)
	for name, value := range o.Annotations {
		if _, ours := meta.Annotations[name]; !ours {
			meta.Annotations[name] = value
		}
	}
	object := &networkingv1.Ingress{
		TypeMeta:   metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "Ingress"},
		ObjectMeta: meta,
		Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
			Host: host,
			IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
				Paths: []networkingv1.HTTPIngressPath{{
					Path: path(site), PathType: ptr.To(networkingv1.PathTypePrefix),
					Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
						Name: service, Port: networkingv1.ServiceBackendPort{Number: o.Port},
					}},
				}},
			}},
		}}},
	}
	if o.IngressClass != "" {
		object.Spec.IngressClassName = ptr.To(o.IngressClass)
	}
	if o.TLSSecret != "" {
		object.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{host}, SecretName: o.TLSSecret}}
	}
	return object
}

func settings(o Options) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q", o.IngressClass, o.TLSSecret)
	for _, name := range slices.Sorted(maps.Keys(o.Annotations)) {
		fmt.Fprintf(sum, " %q=%q", name, o.Annotations[name])
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}
