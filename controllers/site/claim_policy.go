package site

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// claimView is the state of a Site's claims in kube-apiserver. If the Site holds both claims, the
// fields after siteClaim are not read.
type claimView struct {
	// site is the Site when the reconcile began.
	site *v1alpha1.Site
	// namespaceClaim is the NamespaceClaim of the Site's namespace, or nil.
	namespaceClaim *v1alpha1.NamespaceClaim
	// siteClaim is the SiteClaim of the siteID, or nil.
	siteClaim *v1alpha1.SiteClaim
	// self is the current Site of that namespace and name, or nil.
	self *v1alpha1.Site
	// holder is the Site that namespaceClaim names, or nil. It is read after namespaceClaim.
	holder *v1alpha1.Site
	// siteClaims are all SiteClaims of the namespace. They are read after holder.
	siteClaims []v1alpha1.SiteClaim
}

func (v claimView) held() bool {
	return v.namespaceClaim != nil && v.namespaceClaim.HeldBy(v.site) &&
		v.siteClaim != nil && v.siteClaim.HeldBy(v.site)
}

// claimAction is what the controller does next.
type claimAction int

const (
	// keepClaims: the Site holds both claims.
	keepClaims claimAction = iota
	// refuseSite: the Site cannot get its claims.
	refuseSite
	// awaitSite: the Site was deleted or replaced after it was read.
	awaitSite
	// takeNamespace: create the NamespaceClaim, or set the Site in the existing one.
	takeNamespace
	// takeSiteID: create the SiteClaim, or set the Site in the existing one.
	takeSiteID
)

// claimDecision is the next action and, if the Site is refused, the reason and messages.
type claimDecision struct {
	action claimAction
	// message is for callers that can read the Site. denial is for any caller of the webhook, so it
	// contains no names except those in the request.
	reason, message, denial string
	// passes is true if the webhook admits the Site despite the refusal, which can end without a change
	// of this Site: the holder of the namespace is being deleted with its data, or the Site waits for a
	// SiteMove.
	passes bool
}

// claimCheck returns a decision, or false if the next check decides.
type claimCheck func(claimView) (claimDecision, bool)

var (
	// claimRules decide which Site gets a claim. The order matters: only a Site that holds its
	// namespace, and so is the only one there, can take a siteID.
	claimRules  = []claimCheck{namespaceIsOurs, siteIDIsOurs}
	claimChecks = append([]claimCheck{bothHeld, siteIsCurrent}, claimRules...)
)

// decideClaim returns the next action towards holding both claims. It does not compare creation
// times, because a restore from a backup changes them.
func decideClaim(v claimView) claimDecision {
	for _, check := range claimChecks {
		if d, decided := check(v); decided {
			return d
		}
	}
	return claimDecision{action: keepClaims}
}

// refusal returns the refusal that decideClaim would finally return for the Site, and whether there
// is one. The Site need not exist yet.
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

// siteIsCurrent returns awaitSite if the Site was deleted or replaced after it was read, or is being
// deleted, because such a Site must not take a claim. Otherwise an earlier Site of the same name,
// which a claim may still name, no longer exists.
func siteIsCurrent(v claimView) (claimDecision, bool) {
	current := lives(v.self, v.site.UID) && v.self.DeletionTimestamp.IsZero()
	return claimDecision{action: awaitSite}, !current
}

func namespaceIsOurs(v claimView) (claimDecision, bool) {
	var ref v1alpha1.NamespacedSiteReference
	if v.namespaceClaim != nil {
		ref = v.namespaceClaim.Spec.SiteRef
	}
	if ref.Name != v.site.Name && lives(v.holder, ref.UID) {
		d := occupied(v.site.Namespace, fmt.Sprintf("is held by Site %q", ref.Name),
			"Create this Site in another namespace, or delete the other Site.")
		d.passes = v.holder.DeletionTimestamp != nil && v.holder.Spec.DeletionPolicy == v1alpha1.DeletionDelete
		return d, true
	}
	if other := otherSiteClaim(v); other != nil {
		return retained(v.site.Namespace, other), true
	}
	return claimDecision{action: takeNamespace}, ref.Name != v.site.Name || ref.UID != v.site.UID
}

// siteIDIsOurs requires that the Site holds its namespace.
func siteIDIsOurs(v claimView) (claimDecision, bool) {
	if v.site.Spec.TakeOver != nil && (v.siteClaim == nil || v.siteClaim.Spec.SiteRef.Namespace != v.site.Namespace) {
		return awaitsMove, true
	}
	if v.siteClaim == nil {
		return claimDecision{action: takeSiteID}, true
	}
	switch ref := v.siteClaim.Spec.SiteRef; {
	case ref.Namespace != v.site.Namespace && wasHeld(v.siteClaim, v.site):
		return movedAway(v.siteClaim.Name), true
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

// otherSiteClaim returns a SiteClaim of the namespace with data that is not the Site's, or nil. A Site that
// has a SiteClaim to adopt ignores those of its name with other siteIDs, which a namespace can have from
// releases up to v0.1.
func otherSiteClaim(v claimView) *v1alpha1.SiteClaim {
	adopts := v.siteClaim != nil && v.siteClaim.Spec.SiteRef.Namespace == v.site.Namespace
	for i := range v.siteClaims {
		c := &v.siteClaims[i]
		if c.Spec.SiteRef.Name != v.site.Name || c.Name != v.site.SiteID() && !adopts {
			return c
		}
	}
	return nil
}

// awaitsMove refuses a Site with spec.takeOver until a SiteMove gives the SiteClaim to the Site. The text
// does not say whether the Site in spec.takeOver and its SiteMove exist, which may belong to another
// tenant.
var awaitsMove = claimDecision{
	action: refuseSite, reason: v1alpha1.ReasonAwaitingMove, passes: true,
	message: awaitsMoveText, denial: awaitsMoveText,
}

const awaitsMoveText = "The Site waits for a SiteMove of the Site in spec.takeOver to switch to it. To take the siteID without a move, remove spec.takeOver."

// wasHeld reports whether a Site with the namespace and name of site held the claim before a SiteMove.
func wasHeld(claim *v1alpha1.SiteClaim, site *v1alpha1.Site) bool {
	return slices.ContainsFunc(claim.Spec.Former, func(former v1alpha1.SiteReference) bool {
		return former.Namespace == site.Namespace && former.Name == site.Name
	})
}

func movedAway(siteID string) claimDecision {
	message := fmt.Sprintf("A SiteMove has moved siteID %q and its data to a Site of another namespace. When the move is confirmed, this Site can be deleted.", siteID)
	return claimDecision{action: refuseSite, reason: v1alpha1.ReasonMoved, message: message, denial: message}
}

// taken does not name the holder, which may belong to another tenant.
func taken(siteID string) claimDecision {
	message := fmt.Sprintf("siteID %q is taken by another Site or by retained data. Choose another siteID, "+
		"or ask a cluster administrator to release it by deleting SiteClaim %q, which abandons the data.", siteID, siteID)
	return claimDecision{action: refuseSite, reason: v1alpha1.ReasonSiteIDTaken, message: message, denial: message}
}

func retained(namespace string, claim *v1alpha1.SiteClaim) claimDecision {
	return occupied(namespace,
		fmt.Sprintf("has retained data of Site %q with siteID %q", claim.Spec.SiteRef.Name, claim.Name),
		fmt.Sprintf("Create this Site in another namespace, create Site %q with siteID %q again, or ask a cluster administrator "+
			"to abandon its data by deleting SiteClaim %q.", claim.Spec.SiteRef.Name, claim.Name, claim.Name))
}

func occupied(namespace, why, remedy string) claimDecision {
	return claimDecision{
		action: refuseSite, reason: v1alpha1.ReasonNamespaceOccupied,
		message: fmt.Sprintf("Namespace %q %s, and a namespace can have only one Site. %s", namespace, why, remedy),
		denial: fmt.Sprintf("Namespace %q has another Site, or retained data of another name or siteID, and a namespace can have only one Site. "+
			"Create this Site in another namespace, or with the name and siteID of the data.", namespace),
	}
}
