package site

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/access/oidc/discovery"
	"github.com/paddock-health/paddock/apiserver/egress"
)

func TestDecideIssuers(t *testing.T) {
	specs := []v1alpha1.Issuer{{Name: "clinic"}, {Name: "partner"}}
	for name, test := range map[string]struct {
		problems []error
		reason   string
		// parts of the message
		parts []string
	}{
		"all known":       {problems: []error{nil, nil}, reason: v1alpha1.ReasonKeysKnown, parts: []string{"all issuers"}},
		"one not allowed": {problems: []error{nil, fmt.Errorf("dial: %w", egress.ErrProhibited)}, reason: v1alpha1.ReasonIssuerNotAllowed, parts: []string{`issuer "partner"`, "--issuer-networks", "operator"}},
		"one invalid":     {problems: []error{fmt.Errorf("fetch: %w", discovery.ErrInvalid), nil}, reason: v1alpha1.ReasonInvalidIssuer, parts: []string{`issuer "clinic"`, "spec.access.issuers"}},
		"both away": {
			problems: []error{errors.New("dial tcp 10.1.2.3:443: secret"), errors.New("secret")}, reason: v1alpha1.ReasonIssuerUnreachable,
			parts: []string{`issuer "clinic"`, `issuer "partner"`, "retried"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := decideIssuers(specs, test.problems)
			if got.reason != test.reason || (got.status == metav1.ConditionTrue) != (test.reason == v1alpha1.ReasonKeysKnown) {
				t.Errorf("decided %v", got)
			}
			for _, part := range test.parts {
				if !strings.Contains(got.message, part) {
					t.Errorf("message %q, want %q in it", got.message, part)
				}
			}
			if strings.Contains(got.message, "secret") || strings.Contains(got.message, "10.1.2.3") {
				t.Errorf("message %q holds what errors say", got.message)
			}
		})
	}
}

func TestIssuerChecks(t *testing.T) {
	var checks issuerChecks
	site := oak.DeepCopy()
	site.Spec.Access.Issuers = []v1alpha1.Issuer{{Name: "clinic", URL: "https://clinic.example.org"}}
	good := issuerCheck{uid: site.UID, issuers: site.Spec.Access.Issuers, at: earlier, verdict: keysKnown}
	bad := good
	bad.verdict.status = metav1.ConditionFalse
	checks.remember(nameOf(site), good)
	if _, fresh := checks.find(site, earlier.Add(issuerInterval-time.Second)); !fresh {
		t.Error("keys that are known are fetched at each reconcile")
	}
	if _, fresh := checks.find(site, earlier.Add(issuerInterval)); fresh {
		t.Error("they are never fetched again")
	}
	checks.remember(nameOf(site), bad)
	if _, fresh := checks.find(site, earlier.Add(issuerDelay)); fresh {
		t.Error("an issuer that is away is not tried again soon")
	}
	checks.remember(nameOf(site), good)
	changed, another := site.DeepCopy(), site.DeepCopy()
	changed.Spec.Access.Issuers[0].URL = "https://other.example.org" // by the Site or its class
	another.UID = "another"
	for _, other := range []*v1alpha1.Site{changed, another} {
		if _, fresh := checks.find(other, earlier); fresh {
			t.Error("what was found out of another Site, or an earlier one, counts")
		}
	}
	checks.forget(nameOf(site))
	if _, fresh := checks.find(site, earlier); fresh {
		t.Error("a Site that is gone is remembered")
	}
}

func TestIssuersDoNotDecideReady(t *testing.T) {
	site := oak.DeepCopy()
	site.Spec.Access.Issuers = []v1alpha1.Issuer{{Name: "clinic"}}
	found := findings{accepted: holds, storageReady: stored, siteKey: "key", issuersReady: &verdict{metav1.ConditionFalse, v1alpha1.ReasonIssuerUnreachable, "away"}}
	status := statusOf(site, found, "https://fhir.example.org", earlier)
	got := map[string]string{}
	for _, condition := range status.Conditions {
		got[condition.Type] = string(condition.Status) + " " + condition.Reason
	}
	if got["Ready"] != "True Serving" || got["IssuersReady"] != "False IssuerUnreachable" || got["Stalled"] != "False Serving" {
		t.Errorf("conditions %v", got)
	}
	site.Spec.Access.Issuers, site.Status = nil, status
	for _, condition := range statusOf(site, findings{accepted: holds, storageReady: stored, siteKey: "key"}, "https://fhir.example.org", earlier).Conditions {
		if condition.Type == v1alpha1.ConditionIssuersReady {
			t.Error("a Site without issuers says that they are not ready")
		}
	}
}
