package siteclass

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// demand is the number of Sites that need a place in another database of the pool, by the region in their
// spec, which may be empty.
type demand struct{ byRegion map[string]int32 }

// exceeds reports whether more Sites that a database of the template can take wait than its existing
// databases have free places, including databases that are being created.
func (d *demand) exceeds(class *v1alpha1.SiteClass, states templateStates, placed map[string]int32) bool {
	template := class.Template()
	var waiting int32
	for region, n := range d.byRegion {
		if region == "" || region == template.Region {
			waiting += n
		}
	}
	for number, state := range states {
		if state.phase == v1alpha1.PoolDatabaseUnavailable {
			continue
		}
		name := v1alpha1.TemplateDatabase(number)
		waiting -= class.Database(name).Free(placed[name])
	}
	return waiting > 0
}

// readDemand reads the demand, and the number of Sites in each database, from kube-apiserver.
func (r *Reconciler) readDemand(ctx context.Context, class *v1alpha1.SiteClass) (*demand, map[string]int32, error) {
	sites, claims, moves := &v1alpha1.SiteList{}, &v1alpha1.SiteClaimList{}, &v1alpha1.SiteMoveList{}
	for _, list := range []client.ObjectList{sites, claims, moves} {
		if err := r.Live.List(ctx, list); err != nil {
			return nil, nil, fmt.Errorf("list the objects that wait for a database of SiteClass %s: %w", class.Name, err)
		}
	}
	return demandOf(class, sites.Items, claims.Items, moves.Items), class.Placed(claims.Items), nil
}

// demandOf returns the demand of the Sites of a class for which the Site controller has found no room, of
// Sites in databases that are drained, if no other database has room, and of moves to the class's pool that
// have no place.
func demandOf(class *v1alpha1.SiteClass, sites []v1alpha1.Site, claims []v1alpha1.SiteClaim, moves []v1alpha1.SiteMove) *demand {
	d := &demand{byRegion: map[string]int32{}}
	bySite := map[types.UID]*v1alpha1.SiteClaim{}
	for i := range claims {
		bySite[claims[i].Spec.SiteRef.UID] = &claims[i]
	}
	reserved := map[types.NamespacedName]bool{} // whether a Site of the class has a place to which it is moved
	for i := range sites {
		site := &sites[i]
		if site.Class() != class.Name || !site.DeletionTimestamp.IsZero() {
			continue
		}
		claim := bySite[site.UID]
		reserved[client.ObjectKeyFromObject(site)] = claim != nil && claim.Spec.Reserved != nil
		if postgres := site.Spec.Storage.Postgres; postgres != nil && postgres.Pool != nil && needsDatabase(class, site, claim, claims) {
			d.byRegion[postgres.Pool.Region]++
		}
	}
	for i := range moves {
		move := &moves[i]
		to := move.Spec.To.Postgres
		has, ofClass := reserved[types.NamespacedName{Namespace: move.Namespace, Name: move.Spec.SiteName}]
		if ofClass && !has && to != nil && to.Pool != nil && !move.Status.Phase.Ended() && slices.ContainsFunc(move.Status.Conditions, saysNoRoom) {
			d.byRegion[to.Pool.Region]++
		}
	}
	return d
}

// needsDatabase reports whether a Site with storage in the class's pool waits for a database: either it has
// no database and the Site controller has found none with room, or its database is drained and no other
// database has room. claim is the SiteClaim of the Site, or nil.
func needsDatabase(class *v1alpha1.SiteClass, site *v1alpha1.Site, claim *v1alpha1.SiteClaim, claims []v1alpha1.SiteClaim) bool {
	if claim == nil || claim.Spec.Placement == nil {
		c := meta.FindStatusCondition(site.Status.Conditions, v1alpha1.ConditionStorageReady)
		return c != nil && saysNoRoom(*c)
	}
	database := class.Database(claim.Spec.Placement.Database)
	return claim.Spec.Placement.ClassName == class.Name && claim.Spec.Reserved == nil && database != nil && database.Drain && movable(site) &&
		class.RoomFor(site.Spec.Storage.Postgres.Pool.Region, claim.Spec.Placement, claims) == nil
}

// saysNoRoom reports whether a condition has a reason with which the Site controller reports that no database
// of the pool has room.
func saysNoRoom(c metav1.Condition) bool {
	return c.Reason == v1alpha1.ReasonNoCapacity || c.Reason == v1alpha1.ReasonProvisioning
}
