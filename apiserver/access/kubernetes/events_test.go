package kubernetes

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/apiserver/access"
)

var _ = Describe("Events", func() {
	It("show each caller that breaks the glass, with each reason", func(ctx SpecContext) {
		events, err := NewEvents(control.Config())
		Expect(err).NotTo(HaveOccurred())
		go func() { _ = events.Run(ctx) }()
		notes := func(g Gomega) []string {
			list, err := clients.EventsV1().Events("clinic").List(ctx, metav1.ListOptions{FieldSelector: "reason=BrokenGlass"})
			g.Expect(err).NotTo(HaveOccurred())
			var notes []string
			for _, event := range list.Items {
				notes = append(notes, event.Note)
			}
			return notes
		}
		patients := access.Action{Verb: "breakglass", Group: group, Resource: "patients"}
		Eventually(func(g Gomega) { // Run starts to receive events at some later time
			events.BrokenGlass(site, access.Caller{Name: "anna"}, patients, "bleeding")
			g.Expect(notes(g)).NotTo(BeEmpty())
		}).Should(Succeed())
		events.BrokenGlass(site, access.Caller{Name: "anna"}, patients, "bitten")
		events.BrokenGlass(site, access.Caller{Name: "ben"}, patients, "bleeding")
		Eventually(notes).Should(ConsistOf(
			"anna bypassed the privacy rules for patients: bleeding",
			"anna bypassed the privacy rules for patients: bitten",
			"ben bypassed the privacy rules for patients: bleeding",
		))
	})
})

// TestReasons shows how many reasons of a caller have Events of their own.
func TestReasons(t *testing.T) {
	var r reasons
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for n := range maxReasons {
		if !r.accept("clinic/anna", fmt.Sprint(n), now) {
			t.Errorf("reason %d is not accepted", n)
		}
	}
	for name, test := range map[string]struct {
		of, note string
		want     bool
	}{
		"a repeated reason": {"clinic/anna", "3", true},
		"a further reason":  {"clinic/anna", "more", false},
		"of another caller": {"clinic/ben", "more", true},
	} {
		if got := r.accept(test.of, test.note, now); got != test.want {
			t.Errorf("%s: accepted %t, want %t", name, got, test.want)
		}
	}
	if !r.accept("clinic/anna", "more", now.Add(reasonsPeriod)) {
		t.Error("a further reason in the next period is not accepted")
	}
}
