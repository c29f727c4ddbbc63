package exposure

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// maxMessage is the maximum number of characters that a condition quotes from another controller's
// message. The rest is cut off.
const maxMessage = 500

// observedRoute has the fields of an HTTPRoute that Observe reads.
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

// Observe returns why a Gateway does not accept the Site's current HTTPRoute. The reason is empty if
// all Gateways in spec.exposure accept it. live is nil if the HTTPRoute does not exist yet.
func Observe(site *v1alpha1.Site, live *unstructured.Unstructured) (reason, message string, err error) {
	if live == nil {
		return v1alpha1.ReasonRoutePending, "The HTTPRoute is being created.", nil
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

// observe returns why one Gateway does not accept an HTTPRoute. If several controllers report about
// it, a rejection takes precedence.
func observe(gateway parentRef, conditions []metav1.Condition, generation int64) (reason, message string) {
	for _, kind := range []string{"Accepted", "ResolvedRefs"} {
		current := slices.DeleteFunc(slices.Clone(conditions), func(c metav1.Condition) bool {
			return c.Type != kind || c.ObservedGeneration != 0 && c.ObservedGeneration != generation
		})
		for _, c := range current {
			if c.Status == metav1.ConditionFalse {
				return v1alpha1.ReasonRouteNotAccepted, fmt.Sprintf("Gateway %s/%s does not accept the HTTPRoute: condition %s is False, %s: %s",
					gateway.Namespace, gateway.Name, kind, c.Reason, shortened(c.Message))
			}
		}
		if !slices.ContainsFunc(current, func(c metav1.Condition) bool { return c.Status == metav1.ConditionTrue }) {
			return v1alpha1.ReasonRoutePending, fmt.Sprintf(
				"The controller of Gateway %s/%s has not reported on the HTTPRoute yet. If this persists, check that the Gateway exists and its controller runs.", gateway.Namespace, gateway.Name)
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
