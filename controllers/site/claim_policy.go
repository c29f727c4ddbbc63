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

// claimDecision is what to do, and why a Site is refused.
type claimDecision struct {
	action claimAction
	// message is for those who may read the Site, denial for anybody: it names nothing but
	// what was asked for.
	reason, message, denial string
	// passes: the refusal ends without anybody acting.
	passes bool
}

// claimCheck decides, or leaves it to the next check.
type claimCheck func(claimView) (claimDecision, bool)

var (
	// claimRules say what belongs to whom. The order matters: a Site that holds its
	// namespace is alone there, so only then may it take a siteID.
	claimRules  = []claimCheck{namespaceIsOurs, siteIDIsOurs}
	claimChecks = append([]claimCheck{bothHeld, siteIsCurrent}, claimRules...)
)

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

// refusal is what decideClaim would come to, after everything that it lets the Site take, if
// that is to refuse it. The Site may be one that is not there yet.
func refusal(v claimView) (d claimDecision, refused bool) {
	for _, check := range claimRules {
		if d, decided := check(v); decided && d.action == refuseSite {
			return d, true
		}
	}
	return claimDecision{}, false
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
			d := occupied(v.site.Namespace, fmt.Sprintf("is that of Site %q", ref.Name),
				"Create this Site in a namespace of its own, or delete the other one.")
			d.passes = v.holder.DeletionTimestamp != nil && v.holder.Spec.DeletionPolicy == v1alpha1.DeletionDelete
			return d, true
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
	message := fmt.Sprintf("siteID %q is taken by another Site, or by data retained from one. Create a Site with another siteID, "+
		"or have a cluster administrator free this one by deleting SiteClaim %q, which gives up the data.", siteID, siteID)
	return claimDecision{action: refuseSite, reason: v1alpha1.ReasonSiteIDTaken, message: message, denial: message}
}

func retained(namespace string, claim *v1alpha1.SiteClaim) claimDecision {
	return occupied(namespace,
		fmt.Sprintf("holds the data of Site %q with siteID %q", claim.Spec.SiteRef.Name, claim.Name),
		fmt.Sprintf("Create this Site in a namespace of its own, create Site %q again, or have a cluster administrator "+
			"give up its data by deleting SiteClaim %q.", claim.Spec.SiteRef.Name, claim.Name))
}

func occupied(namespace, why, remedy string) claimDecision {
	return claimDecision{
		action: refuseSite, reason: v1alpha1.ReasonNamespaceOccupied,
		message: fmt.Sprintf("namespace %q %s, and a namespace is for one Site. %s", namespace, why, remedy),
		denial: fmt.Sprintf("namespace %q has another Site, or data retained from one of another name or siteID, and a namespace is for one Site. "+
			"Create this Site in a namespace of its own, or with the name and siteID of the data.", namespace),
	}
}
