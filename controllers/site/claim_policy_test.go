package site

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// oak is the Site that the tables decide for; its siteID is 1042.
var oak = liveSite("oak", "uid-oak")

func liveSite(name string, uid types.UID) *v1alpha1.Site {
	return &v1alpha1.Site{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clinic", Name: name, UID: uid},
		Spec:       v1alpha1.SiteSpec{SiteID: "1042"},
	}
}

func namespaceClaimOf(name string, uid types.UID) *v1alpha1.NamespaceClaim {
	return &v1alpha1.NamespaceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "clinic"},
		Spec:       v1alpha1.NamespaceClaimSpec{SiteRef: v1alpha1.NamespacedSiteReference{Name: name, UID: uid}},
	}
}

func siteClaimOf(siteID, namespace, name string, uid types.UID) *v1alpha1.SiteClaim {
	return &v1alpha1.SiteClaim{
		ObjectMeta: metav1.ObjectMeta{Name: siteID},
		Spec: v1alpha1.SiteClaimSpec{
			SiteRef: v1alpha1.SiteReference{Namespace: namespace, Name: name, UID: uid},
			SiteKey: "key",
		},
	}
}

func TestDecideClaim(t *testing.T) {
	deleted := metav1.NewTime(time.Unix(0, 0))
	leaving := liveSite("oak", "uid-oak")
	leaving.DeletionTimestamp = &deleted
	ours := namespaceClaimOf("oak", "uid-oak")

	tests := map[string]struct {
		view   claimView
		action claimAction
		reason string
		// words of the message, and words that it must not have
		says, keepsQuiet []string
	}{
		"both held": {
			view:   claimView{namespaceClaim: ours, siteClaim: siteClaimOf("1042", "clinic", "oak", "uid-oak")},
			action: keepClaims,
		},
		"gone since it was read": {
			view:   claimView{},
			action: awaitSite,
		},
		"replaced since it was read": {
			view:   claimView{self: liveSite("oak", "uid-newer"), siteClaim: siteClaimOf("1042", "clinic", "oak", "uid-newest")},
			action: awaitSite,
		},
		"being deleted since it was read": {
			view:   claimView{self: leaving},
			action: awaitSite,
		},
		"nothing is claimed": {
			view:   claimView{self: oak},
			action: takeNamespace,
		},
		"the NamespaceClaim was lost, the SiteClaim was not": {
			view: claimView{
				self: oak, siteClaim: siteClaimOf("1042", "clinic", "oak", "uid-oak"),
				siteClaims: []v1alpha1.SiteClaim{*siteClaimOf("1042", "clinic", "oak", "uid-oak")},
			},
			action: takeNamespace,
		},
		"namespace of an earlier namesake": {
			view:   claimView{self: oak, namespaceClaim: namespaceClaimOf("oak", "uid-before")},
			action: takeNamespace,
		},
		"namespace of an earlier namesake with retained data": {
			view: claimView{
				self: oak, namespaceClaim: namespaceClaimOf("oak", "uid-before"), siteClaim: siteClaimOf("1042", "clinic", "oak", "uid-before"),
				siteClaims: []v1alpha1.SiteClaim{*siteClaimOf("1042", "clinic", "oak", "uid-before")},
			},
			action: takeNamespace,
		},
		"namespace of a live neighbour": {
			view:   claimView{self: oak, namespaceClaim: namespaceClaimOf("elm", "uid-elm"), holder: liveSite("elm", "uid-elm")},
			action: refuseSite, reason: v1alpha1.ReasonNamespaceOccupied, says: []string{`Site "elm"`},
		},
		"namespace of a neighbour that is being deleted": {
			view: claimView{self: oak, namespaceClaim: namespaceClaimOf("elm", "uid-elm"), holder: func() *v1alpha1.Site {
				s := liveSite("elm", "uid-elm")
				s.DeletionTimestamp = &deleted
				return s
			}()},
			action: refuseSite, reason: v1alpha1.ReasonNamespaceOccupied,
		},
		"namespace of a neighbour that is gone and left nothing": {
			view:   claimView{self: oak, namespaceClaim: namespaceClaimOf("elm", "uid-elm")},
			action: takeNamespace,
		},
		"namespace of a neighbour whose namesake never held it": {
			view:   claimView{self: oak, namespaceClaim: namespaceClaimOf("elm", "uid-elm"), holder: liveSite("elm", "uid-newer")},
			action: takeNamespace,
		},
		"namespace with data retained from a neighbour": {
			view: claimView{
				self: oak, namespaceClaim: namespaceClaimOf("elm", "uid-elm"),
				siteClaims: []v1alpha1.SiteClaim{*siteClaimOf("7", "clinic", "elm", "uid-elm")},
			},
			action: refuseSite, reason: v1alpha1.ReasonNamespaceOccupied, says: []string{`Site "elm"`, `SiteClaim "7"`},
		},
		"namespace with data retained from the same siteID under another name": {
			view: claimView{
				self: oak, siteClaim: siteClaimOf("1042", "clinic", "elm", "uid-elm"),
				siteClaims: []v1alpha1.SiteClaim{*siteClaimOf("1042", "clinic", "elm", "uid-elm")},
			},
			action: refuseSite, reason: v1alpha1.ReasonNamespaceOccupied, says: []string{`SiteClaim "1042"`},
		},
		"namespace with data retained from the same name under another siteID": {
			view:   claimView{self: oak, siteClaims: []v1alpha1.SiteClaim{*siteClaimOf("7", "clinic", "oak", "uid-before")}},
			action: refuseSite, reason: v1alpha1.ReasonNamespaceOccupied, says: []string{`SiteClaim "7"`},
		},
		"namespace of an earlier namesake with data retained under another siteID": {
			view: claimView{
				self: oak, namespaceClaim: namespaceClaimOf("oak", "uid-before"),
				siteClaims: []v1alpha1.SiteClaim{*siteClaimOf("7", "clinic", "oak", "uid-before")},
			},
			action: refuseSite, reason: v1alpha1.ReasonNamespaceOccupied, says: []string{`SiteClaim "7"`, `Site "oak" with siteID "7"`},
		},
		"namespace is ours, with data retained from the same name under another siteID": {
			view: claimView{
				self: oak, namespaceClaim: ours, holder: oak,
				siteClaims: []v1alpha1.SiteClaim{*siteClaimOf("7", "clinic", "oak", "uid-before")},
			},
			action: refuseSite, reason: v1alpha1.ReasonNamespaceOccupied, says: []string{`SiteClaim "7"`},
		},
		"namespace with data retained from the same name under both siteIDs": {
			view: claimView{
				self: oak, siteClaim: siteClaimOf("1042", "clinic", "oak", "uid-before"),
				siteClaims: []v1alpha1.SiteClaim{*siteClaimOf("1042", "clinic", "oak", "uid-before"), *siteClaimOf("7", "clinic", "oak", "uid-first")},
			},
			action: takeNamespace,
		},
		"namespace is ours, with data retained from the same name under both siteIDs": {
			view: claimView{
				self: oak, namespaceClaim: ours, holder: oak, siteClaim: siteClaimOf("1042", "clinic", "oak", "uid-before"),
				siteClaims: []v1alpha1.SiteClaim{*siteClaimOf("1042", "clinic", "oak", "uid-before"), *siteClaimOf("7", "clinic", "oak", "uid-first")},
			},
			action: takeSiteID,
		},
		"namespace is ours, siteID is free": {
			view:   claimView{self: oak, namespaceClaim: ours, holder: oak},
			action: takeSiteID,
		},
		"siteID of an earlier namesake": {
			view:   claimView{self: oak, namespaceClaim: ours, holder: oak, siteClaim: siteClaimOf("1042", "clinic", "oak", "uid-before")},
			action: takeSiteID,
		},
		"siteID of another namespace": {
			view:   claimView{self: oak, namespaceClaim: ours, holder: oak, siteClaim: siteClaimOf("1042", "rival", "willow", "uid-willow")},
			action: refuseSite, reason: v1alpha1.ReasonSiteIDTaken,
			says: []string{`"1042"`, "administrator"}, keepsQuiet: []string{"rival", "willow"},
		},
		"siteID of another namespace, under the same name": {
			view:   claimView{self: oak, namespaceClaim: ours, holder: oak, siteClaim: siteClaimOf("1042", "rival", "oak", "uid-oak")},
			action: refuseSite, reason: v1alpha1.ReasonSiteIDTaken,
		},
		"siteID given to a neighbour by hand": {
			view:   claimView{self: oak, namespaceClaim: ours, holder: oak, siteClaim: siteClaimOf("1042", "clinic", "elm", "uid-elm")},
			action: refuseSite, reason: v1alpha1.ReasonNamespaceOccupied,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.view.site = oak
			got := decideClaim(tt.view)
			if got.action != tt.action || got.reason != tt.reason {
				t.Fatalf("got action %d, reason %q; want %d, %q", got.action, got.reason, tt.action, tt.reason)
			}
			if (got.message != "") != (tt.action == refuseSite) {
				t.Errorf("message %q with action %d", got.message, got.action)
			}
			for _, words := range tt.says {
				if !strings.Contains(got.message, words) {
					t.Errorf("message %q does not say %q", got.message, words)
				}
			}
			for _, words := range tt.keepsQuiet {
				if strings.Contains(got.message, words) {
					t.Errorf("message %q gives away %q", got.message, words)
				}
			}
			early, refused := refusal(tt.view)
			if refused != (tt.action == refuseSite) || early.reason != tt.reason {
				t.Errorf("as it is applied: refused %v for %q", refused, early.reason)
			}
			for _, words := range []string{"elm", "willow", "rival", `"7"`} {
				if strings.Contains(early.denial, words) {
					t.Errorf("what anybody is told, %q, gives away %q", early.denial, words)
				}
			}
		})
	}
}

func TestObjectToClaims(t *testing.T) {
	leaving := liveSite("elm", "uid-elm")
	leaving.DeletionTimestamp, leaving.Spec.DeletionPolicy = &metav1.Time{}, v1alpha1.DeletionDelete
	staying := liveSite("elm", "uid-elm")
	staying.DeletionTimestamp = &metav1.Time{}
	unnamed := liveSite("1042", "uid-oak")
	unnamed.Spec.SiteID = ""
	elms := namespaceClaimOf("elm", "uid-elm")
	tests := map[string]struct {
		view          claimView
		reason, field string // empty: nothing to say
		passes        bool
	}{
		"nothing is claimed":        {view: claimView{site: oak}},
		"a neighbour":               {claimView{site: oak, namespaceClaim: elms, holder: liveSite("elm", "uid-elm")}, "NamespaceOccupied", "metadata.namespace", false},
		"one that goes":             {claimView{site: oak, namespaceClaim: elms, holder: leaving}, "NamespaceOccupied", "metadata.namespace", true},
		"one that leaves its data":  {claimView{site: oak, namespaceClaim: elms, holder: staying}, "NamespaceOccupied", "metadata.namespace", false},
		"another's siteID":          {claimView{site: oak, siteClaim: siteClaimOf("1042", "rival", "oak", "a")}, "SiteIDTaken", "spec.siteID", false},
		"another's siteID, by name": {claimView{site: unnamed, siteClaim: siteClaimOf("1042", "rival", "oak", "a")}, "SiteIDTaken", "metadata.name", false},
		"its own data":              {view: claimView{site: oak, siteClaim: siteClaimOf("1042", "clinic", "oak", "before")}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, passes := objectToClaims(tt.view)
			if got == nil {
				got = &objection{}
			}
			field := ""
			if got.field != nil {
				field = got.field.String()
			}
			if got.reason != tt.reason || field != tt.field || passes != tt.passes {
				t.Errorf("got %q of %q, passes %v; want %q of %q, %v", got.reason, field, passes, tt.reason, tt.field, tt.passes)
			}
		})
	}
}

// A Site with spec.takeOver gets a siteID by a SiteMove only. The Site that lost it keeps quiet about the
// new one.
func TestDecideClaimOfMoves(t *testing.T) {
	taking := liveSite("oak", "uid-oak")
	taking.Spec.TakeOver = &v1alpha1.SiteName{Namespace: "former", Name: "elm"}
	ours := namespaceClaimOf("oak", "uid-oak")
	moved := siteClaimOf("1042", "elsewhere", "elm", "uid-elm")
	moved.Spec.Former = []v1alpha1.SiteReference{{Namespace: "clinic", Name: "oak", UID: "uid-oak"}}
	for name, test := range map[string]struct {
		site   *v1alpha1.Site
		claim  *v1alpha1.SiteClaim
		action claimAction
		reason string
	}{
		"waits for the move":       {taking, siteClaimOf("1042", "former", "elm", "uid-elm"), refuseSite, v1alpha1.ReasonAwaitingMove},
		"does not take a free one": {taking, nil, refuseSite, v1alpha1.ReasonAwaitingMove},
		"holds it after the move":  {taking, siteClaimOf("1042", "clinic", "oak", "uid-oak"), keepClaims, ""},
		"adopts its own data":      {taking, siteClaimOf("1042", "clinic", "oak", "uid-former"), takeSiteID, ""},
		"was moved away":           {oak, moved, refuseSite, v1alpha1.ReasonMoved},
	} {
		t.Run(name, func(t *testing.T) {
			d := decideClaim(claimView{site: test.site, self: test.site, namespaceClaim: ours, siteClaim: test.claim})
			if d.action != test.action || d.reason != test.reason {
				t.Errorf("action %d, reason %q; expected %d and %q", d.action, d.reason, test.action, test.reason)
			}
			if strings.Contains(d.message, "elsewhere") || strings.Contains(d.message, "elm") {
				t.Errorf("the message names the Site of another tenant: %s", d.message)
			}
		})
	}
}
