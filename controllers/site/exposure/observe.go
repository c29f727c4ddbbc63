package exposure

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// maxMessage bounds what is taken over of another controller's message, in characters.
const maxMessage = 500

// observedRoute is what is read of an HTTPRoute.
type observedRoute struct {
	Status struct {
		Parents []struct {
			ParentRef  parentRef          `json:"parentRef"`
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"parents"`
	} `json:"status"`
}

type parentRef struct {
	Group       string `json:"group"`
	Kind        string `json:"kind"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	SectionName string `json:"sectionName"`
}

// Observe says what the Gateways make of the Site's route; the reason is empty when all of
// them take it as it is now. A nil route is not there yet.
func Observe(site *v1alpha1.Site, live *unstructured.Unstructured) (reason, message string, err error) {
	if live == nil {
		return v1alpha1.ReasonRoutePending, "the HTTPRoute is being made", nil
	}
	var route observedRoute
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &route); err != nil {
		return "", "", fmt.Errorf("read the status of HTTPRoute %s/%s: %w", live.GetNamespace(), live.GetName(), err)
	}
	for _, ref := range site.Spec.Exposure.HTTPRoute.ParentRefs {
		wanted := parentRef{gatewayGroup, "Gateway", ref.Namespace, ref.Name, ref.SectionName}
		var conditions []metav1.Condition
		for _, parent := range route.Status.Parents {
			if parent.ParentRef == wanted {
				conditions = append(conditions, parent.Conditions...)
			}
		}
		if reason, message := observe(wanted, conditions, live.GetGeneration()); reason != "" {
			return reason, message, nil
		}
	}
	return "", "", nil
}

// observe says what one Gateway makes of a route. Several controllers may speak of it; one
// that refuses is heard before one that takes it.
func observe(gateway parentRef, conditions []metav1.Condition, generation int64) (reason, message string) {
	for _, kind := range []string{"Accepted", "ResolvedRefs"} {
		current := slices.DeleteFunc(slices.Clone(conditions), func(c metav1.Condition) bool {
			return c.Type != kind || c.ObservedGeneration != 0 && c.ObservedGeneration != generation
		})
		for _, c := range current {
			if c.Status == metav1.ConditionFalse {
				return v1alpha1.ReasonRouteNotAccepted, fmt.Sprintf("Gateway %s/%s: %s is False, %s: %s",
					gateway.Namespace, gateway.Name, kind, c.Reason, shortened(c.Message))
			}
		}
		if !slices.ContainsFunc(current, func(c metav1.Condition) bool { return c.Status == metav1.ConditionTrue }) {
			return v1alpha1.ReasonRoutePending, fmt.Sprintf(
				"the controller of Gateway %s/%s has not told yet what it makes of the HTTPRoute", gateway.Namespace, gateway.Name)
		}
	}
	return "", ""
}

func shortened(message string) string {
	runes := []rune(message)
	if len(runes) <= maxMessage {
		return message
	}
	return string(runes[:maxMessage]) + "…"
}
