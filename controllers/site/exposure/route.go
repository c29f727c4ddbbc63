package exposure

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

const gatewayGroup = "gateway.networking.k8s.io"

// The kinds of the Gateway API that the controller writes. ReferenceGrant is v1beta1, because
// release 1.0 of the Gateway API, the oldest supported one, has no v1 of it.
var (
	RouteKind = schema.GroupVersionKind{Group: gatewayGroup, Version: "v1", Kind: "HTTPRoute"}
	GrantKind = schema.GroupVersionKind{Group: gatewayGroup, Version: "v1beta1", Kind: "ReferenceGrant"}
)

// route returns the HTTPRoute of a Site. It is in the Site's namespace, so that each Gateway
// decides which namespaces can attach routes. All fields with defaults are set, so that apply.Same
// detects changes by other clients.
func route(site *v1alpha1.Site, o Options) *unstructured.Unstructured {
	asked := site.Spec.Exposure.HTTPRoute
	var parents, hostnames []any
	for _, ref := range asked.ParentRefs {
		parent := map[string]any{"group": gatewayGroup, "kind": "Gateway", "namespace": ref.Namespace, "name": ref.Name}
		if ref.SectionName != "" {
			parent["sectionName"] = ref.SectionName
		}
		parents = append(parents, parent)
	}
	for _, name := range asked.Hostnames {
		hostnames = append(hostnames, string(name))
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"parentRefs": parents,
		"hostnames":  hostnames,
		"rules": []any{map[string]any{
			"matches": []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": path(site)}}},
			"backendRefs": []any{map[string]any{
				"group": "", "kind": "Service", "namespace": o.Namespace, "name": service,
				"port": int64(o.Port), "weight": int64(1),
			}},
		}},
	}}}
	describe(object, RouteKind, about(site, site.Namespace, RouteName))
	isController := true
	object.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "Site", Name: site.Name, UID: site.UID, Controller: &isController,
	}})
	return object
}

// grant returns the ReferenceGrant that allows the HTTPRoutes of only the Site's namespace to route
// to the API servers' Service.
func grant(site *v1alpha1.Site, o Options) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"from": []any{map[string]any{"group": gatewayGroup, "kind": RouteKind.Kind, "namespace": site.Namespace}},
		"to":   []any{map[string]any{"group": "", "kind": "Service", "name": service}},
	}}}
	describe(object, GrantKind, about(site, o.Namespace, Name(site.Namespace)))
	return object
}

func describe(object *unstructured.Unstructured, kind schema.GroupVersionKind, meta metav1.ObjectMeta) {
	object.SetGroupVersionKind(kind)
	object.SetNamespace(meta.Namespace)
	object.SetName(meta.Name)
	object.SetLabels(meta.Labels)
	object.SetAnnotations(meta.Annotations)
}
