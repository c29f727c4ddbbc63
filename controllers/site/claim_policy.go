package site

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// claimView is what the API server said about a Site's claims. When the Site
// holds both claims, nothing else was asked.
type claimView struct {
	// site as the reconcile began.
	site *v1alpha1.Site
	// namespaceClaim named after the Site's namespace, nil if there is none.
	namespaceClaim *v1alpha1.NamespaceClaim
	// siteClaim named after the siteID, nil if there is none.
	siteClaim *v1alpha1.SiteClaim
	// self is the Site of that namespace and name now, nil if it is gone.
	self *v1alpha1.Site
	// holder is the Site that namespaceClaim names, nil if it is gone. It was
	// read after namespaceClaim.
	holder *v1alpha1.Site
	// siteClaims of the namespace, of whatever siteID, read after holder.
	siteClaims []v1alpha1.SiteClaim
}

func (v claimView) held() bool {
	return v.namespaceClaim != nil && v.namespaceClaim.HeldBy(v.site) &&
		v.siteClaim != nil && v.siteClaim.HeldBy(v.site)
}

// claimAction is what a claim decision asks the controller to do.
type claimAction int

const (
	// keepClaims: the Site holds both.
	keepClaims claimAction = iota
	// refuseSite: the Site gets neither until somebody acts.
	refuseSite
	// awaitSite: the Site was deleted or replaced since it was read.
	awaitSite
	// takeNamespace: create the NamespaceClaim, or enter the Site in the one there is.
	takeNamespace
	// takeSiteID: create the SiteClaim, or enter the Site in the one there is.
	takeSiteID
)

type claimDecision struct {
	action          claimAction
	reason, message string
}

// claimCheck decides, or leaves it to the next check.
type claimCheck func(claimView) (claimDecision, bool)

// The order matters: a Site that holds its namespace is alone there, so only
// then may it take a siteID.
var claimChecks = []claimCheck{bothHeld, siteIsCurrent, namespaceIsOurs, siteIDIsOurs}

// decideClaim says what the Site has to do next to hold its claims. Time plays
// no part: creation times are new after a restore from a backup.
func decideClaim(v claimView) claimDecision {
	for _, check := range claimChecks {
		if d, decided := check(v); decided {
			return d
		}
	}
	return claimDecision{action: keepClaims}
}

func bothHeld(v claimView) (claimDecision, bool) {
	return claimDecision{action: keepClaims}, v.held()
}

// siteIsCurrent keeps a Site that is gone or leaving from taking anything, and
// makes sure that a namesake with another uid is gone.
func siteIsCurrent(v claimView) (claimDecision, bool) {
	current := lives(v.self, v.site.UID) && v.self.DeletionTimestamp.IsZero()
	return claimDecision{action: awaitSite}, !current
}

func namespaceIsOurs(v claimView) (claimDecision, bool) {
	if v.namespaceClaim != nil {
		ref := v.namespaceClaim.Spec.SiteRef
		if ref.Name == v.site.Name {
			return claimDecision{action: takeNamespace}, ref.UID != v.site.UID
		}
		if lives(v.holder, ref.UID) {
			return occupied(v.site.Namespace, fmt.Sprintf("is that of Site %q", ref.Name),
				"Create this Site in a namespace of its own, or delete the other one."), true
		}
	}
	if other := otherSiteClaim(v); other != nil {
		return retained(v.site.Namespace, other), true
	}
	return claimDecision{action: takeNamespace}, true
}

// siteIDIsOurs runs for a Site that holds its namespace.
func siteIDIsOurs(v claimView) (claimDecision, bool) {
	if v.siteClaim == nil {
		return claimDecision{action: takeSiteID}, true
	}
	switch ref := v.siteClaim.Spec.SiteRef; {
	case ref.Namespace != v.site.Namespace:
		return taken(v.siteClaim.Name), true
	case ref.Name != v.site.Name:
		return retained(v.site.Namespace, v.siteClaim), true
	default:
		return claimDecision{action: takeSiteID}, ref.UID != v.site.UID
	}
}

func lives(site *v1alpha1.Site, uid types.UID) bool {
	return site != nil && site.UID == uid
}

// otherSiteClaim is a claim of the namespace that is not, and cannot become, the Site's.
func otherSiteClaim(v claimView) *v1alpha1.SiteClaim {
	for i := range v.siteClaims {
		c := &v.siteClaims[i]
		if c.Name != v.site.SiteID() || c.Spec.SiteRef.Name != v.site.Name {
			return c
		}
	}
	return nil
}

// taken does not say by whom: that is another tenant.
func taken(siteID string) claimDecision {
	return claimDecision{refuseSite, v1alpha1.ReasonSiteIDTaken, fmt.Sprintf(
		"siteID %q is taken by another Site, or by data retained from one. Create a Site with another siteID, "+
			"or have a cluster administrator free this one by deleting SiteClaim %q, which gives up the data.",
		siteID, siteID)}
}

func retained(namespace string, claim *v1alpha1.SiteClaim) claimDecision {
	return occupied(namespace,
		fmt.Sprintf("holds the data of Site %q with siteID %q", claim.Spec.SiteRef.Name, claim.Name),
		fmt.Sprintf("Create this Site in a namespace of its own, create Site %q again, or have a cluster administrator "+
			"give up its data by deleting SiteClaim %q.", claim.Spec.SiteRef.Name, claim.Name))
}

func occupied(namespace, why, remedy string) claimDecision {
	return claimDecision{refuseSite, v1alpha1.ReasonNamespaceOccupied, fmt.Sprintf(
		"namespace %q %s, and a namespace is for one Site. %s", namespace, why, remedy)}
}
