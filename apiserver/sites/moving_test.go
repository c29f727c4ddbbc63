package sites

import (
	"testing"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
)

// TestDescribeDuringSwitch describes a Site in Switching to processes that have its former store,
// and know of no earlier phase of the move.
func TestDescribeDuringSwitch(t *testing.T) {
	for name, test := range map[string]struct {
		delivery *Delivery
		served   bool
	}{
		"an API server serves reads":           {nil, true},
		"a delivery process delivers no event": {&Delivery{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Sites{options: Options{Delivery: test.delivery}}
			held := heldSite{key: "k"}
			held.object.Status.SiteKey = "k"
			held.object.Status.Move = &sitesv1.SiteMoveReference{Phase: sitesv1.MoveSwitching}
			before := &database{}
			got := s.describe(t.Context(), held, before)
			if served := got.Store == before; served != test.served {
				t.Errorf("the former store is open: %t, want %t", served, test.served)
			}
			if got.Store != nil && !before.paused.Load() {
				t.Error("the former store accepts writes")
			}
		})
	}
}
