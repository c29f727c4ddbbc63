package exposure

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

const gatewayGroup = "gateway.networking.k8s.io"

// The kinds of the Gateway API that we write. ReferenceGrants got version v1 later than the
// oldest release that we work with.
var (
	RouteKind = schema.GroupVersionKind{Group: gatewayGroup, Version: "v1", Kind: "HTTPRoute"}
	GrantKind = schema.GroupVersionKind{Group: gatewayGroup, Version: "v1beta1", Kind: "ReferenceGrant"}
)

// route is in the Site's namespace: which namespaces may attach is for each Gateway to say.
// Every default is written out, so that a change of anybody's is told from one.
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

// grant lets HTTPRoutes of the Site's namespace, and of no other, lead to the API servers.
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
