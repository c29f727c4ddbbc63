package exposure

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

func TestObserve(t *testing.T) {
	site := readSite(t, "testdata/route.in.yaml")
	// says is what a controller says of one Gateway.
	says := func(gateway, accepted, resolved, generation string) string {
		return `
  - controllerName: example.org/gateway
    parentRef: {group: gateway.networking.k8s.io, kind: Gateway, namespace: infra, ` + gateway + `}
    conditions:
    - {type: Accepted, status: "` + accepted + `", reason: A, message: "first", observedGeneration: ` + generation + `, lastTransitionTime: "2026-01-01T00:00:00Z"}
    - {type: ResolvedRefs, status: "` + resolved + `", reason: R, message: "second", observedGeneration: ` + generation + `, lastTransitionTime: "2026-01-01T00:00:00Z"}
    - {type: Programmed, status: "False", reason: P, message: "third", observedGeneration: ` + generation + `, lastTransitionTime: "2026-01-01T00:00:00Z"}`
	}
	const public, partners = "name: public, sectionName: https", "name: partners"
	tests := map[string]struct {
		parents         string
		reason, message string
	}{
		"no controller reported": {"", v1alpha1.ReasonRoutePending, "Gateway infra/public has not reported on the HTTPRoute yet"},
		"both take it":           {says(public, "True", "True", "3") + says(partners, "True", "True", "3"), "", ""},
		"one has not reported":   {says(public, "True", "True", "3"), v1alpha1.ReasonRoutePending, "Gateway infra/partners has not reported on the HTTPRoute yet"},
		"one spoke of an older":  {says(public, "True", "True", "3") + says(partners, "True", "True", "2"), v1alpha1.ReasonRoutePending, "infra/partners"},
		"one refuses":            {says(public, "True", "True", "3") + says(partners, "False", "True", "3"), v1alpha1.ReasonRouteNotAccepted, "Gateway infra/partners does not accept the HTTPRoute: condition Accepted is False, A: first"},
		"one may not refer":      {says(public, "True", "False", "3") + says(partners, "True", "True", "3"), v1alpha1.ReasonRouteNotAccepted, "Gateway infra/public does not accept the HTTPRoute: condition ResolvedRefs is False, R: second"},
		"one does not know":      {says(public, "Unknown", "True", "3") + says(partners, "True", "True", "3"), v1alpha1.ReasonRoutePending, "infra/public"},
		"of another listener":    {says("name: public, sectionName: http", "True", "True", "3") + says(partners, "True", "True", "3"), v1alpha1.ReasonRoutePending, "infra/public"},
		"two, one refuses":       {says(public, "True", "True", "3") + says(public, "False", "True", "3") + says(partners, "True", "True", "3"), v1alpha1.ReasonRouteNotAccepted, "infra/public"},
		"without the generation": {says(public, "True", "True", "0") + says(partners, "True", "True", "0"), "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			object := map[string]any{}
			if err := yaml.Unmarshal([]byte("metadata: {generation: 3}\nstatus:\n  parents:"+tt.parents), &object); err != nil {
				t.Fatal(err)
			}
			if tt.parents == "" {
				delete(object, "status")
			}
			live := &unstructured.Unstructured{Object: object}
			live.SetGeneration(3)
			reason, message, err := Observe(site, live)
			if err != nil || reason != tt.reason || !strings.Contains(message, tt.message) {
				t.Errorf("got %q, %q, %v, want %q, %q", reason, message, err, tt.reason, tt.message)
			}
		})
	}
	if reason, _, err := Observe(site, nil); reason != v1alpha1.ReasonRoutePending || err != nil {
		t.Errorf("without a route: got %q, %v", reason, err)
	}
	if got := shortened(strings.Repeat("é", 2*maxMessage)); len([]rune(got)) != maxMessage+1 {
		t.Errorf("a long message has %d characters left", len([]rune(got)))
	}
}
