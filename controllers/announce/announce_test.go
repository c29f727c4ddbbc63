package announce

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditions reads conditions such as "Ready=True/Serving/The message.".
func conditions(texts ...string) []metav1.Condition {
	var all []metav1.Condition
	for _, text := range texts {
		kind, rest, _ := strings.Cut(text, "=")
		parts := strings.SplitN(rest, "/", 3)
		all = append(all, metav1.Condition{Type: kind, Status: metav1.ConditionStatus(parts[0]), Reason: parts[1], Message: parts[2]})
	}
	return all
}

func TestChanges(t *testing.T) {
	tests := map[string]struct {
		before, after []metav1.Condition
		// want are the Events: type, reason, note.
		want []string
	}{
		"a new object": {
			after: conditions("Accepted=True/Accepted/", "Ready=True/Serving/Served at x.", "Reconciling=False/Serving/", "Stalled=False/Serving/"),
			want:  []string{"Normal Accepted Accepted is True.", "Normal Serving Ready is True: Served at x."},
		},
		"nothing": {
			before: conditions("Ready=True/Serving/Served at x."),
			after:  conditions("Ready=True/Serving/Served at x."),
		},
		"only the message": {
			before: conditions("Ready=True/Serving/Served at x."),
			after:  conditions("Ready=True/Serving/Served at y."),
		},
		"a fault": {
			before: conditions("Ready=True/Serving/", "Stalled=False/Serving/"),
			after:  conditions("Ready=False/SecretNotFound/No Secret.", "Stalled=True/SecretNotFound/No Secret."),
			want:   []string{"Warning SecretNotFound Ready is False: No Secret.", "Warning SecretNotFound Stalled is True: No Secret."},
		},
		"the end of a fault": {
			before: conditions("Stalled=True/SecretNotFound/No Secret.", "StorageNearLimit=True/NearLimit/80 %."),
			after:  conditions("Stalled=False/Serving/", "StorageNearLimit=False/BelowLimit/70 %."),
			want:   []string{"Normal Serving Stalled is False.", "Normal BelowLimit StorageNearLimit is False: 70 %."},
		},
		"another reason": {
			before: conditions("StorageReady=False/Provisioning/"),
			after:  conditions("StorageReady=False/PodPending/No node."),
			want:   []string{"Warning PodPending StorageReady is False: No node."},
		},
		"what was chosen, and what is expected": {
			before: conditions("Active=True/Active/"),
			after:  conditions("Active=False/Inactive/Off.", "Ready=False/Provisioning/Starting."),
			want:   []string{"Normal Inactive Active is False: Off.", "Normal Provisioning Ready is False: Starting."},
		},
		"a Webhook that the delivery process disables": {
			before: conditions("Disabled=False/Enabled/"),
			after:  conditions("Disabled=True/Gone/410."),
		},
		"a Webhook that is enabled": {
			before: conditions("Disabled=True/Gone/410."),
			after:  conditions("Disabled=False/Enabled/On."),
			want:   []string{"Normal Enabled Disabled is False: On."},
		},
		"a condition that ends": {before: conditions("Exposed=True/Exposed/")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range changes(test.before, test.after) {
				got = append(got, eventType(c)+" "+c.Reason+" "+note(c))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNote(t *testing.T) {
	long := note(metav1.Condition{Type: "Ready", Status: "False", Message: strings.Repeat("é", 800)})
	if len(long) >= 1024 || !strings.HasSuffix(long, "é…") {
		t.Errorf("note: got %d bytes, ending in %q; want less than 1024", len(long), long[len(long)-6:])
	}
}
