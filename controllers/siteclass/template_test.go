package siteclass

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// templateClass returns a class whose pool has a template for three databases with two places each in the
// region east, and a listed database without room in the region west that is drained.
func templateClass() *v1alpha1.SiteClass {
	class := &v1alpha1.SiteClass{ObjectMeta: metav1.ObjectMeta{Name: "grown"}}
	class.Spec.Storage = &v1alpha1.ClassStorage{Type: v1alpha1.StoragePostgres, Postgres: &v1alpha1.ClassPostgres{Pool: &v1alpha1.PostgresPool{
		Databases: []v1alpha1.PoolDatabase{{Name: "old", Region: "west", Capacity: ptr.To[int32](9), Drain: true}},
		Template:  &v1alpha1.PoolTemplate{Capacity: ptr.To[int32](2), MaxDatabases: ptr.To[int32](3), Region: "east", Drain: []string{"auto-2"}},
	}}}
	return class
}

func TestNextDatabase(t *testing.T) {
	tests := map[string]struct {
		states templateStates
		want   int
	}{
		"none":                            {templateStates{}, 1},
		"not one that is drained":         {templateStates{1: {}}, 3},
		"the first gap":                   {templateStates{3: {}}, 1},
		"the maximum":                     {templateStates{1: {}, 3: {}, 4: {}}, 0},
		"one more than drained databases": {templateStates{1: {}, 3: {}}, 4},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := nextDatabase(templateClass(), test.states); got != test.want {
				t.Errorf("next database %d, want %d", got, test.want)
			}
		})
	}
}

func TestDemand(t *testing.T) {
	waiting := func(uid, region, reason string) v1alpha1.Site {
		site := v1alpha1.Site{ObjectMeta: metav1.ObjectMeta{Namespace: uid, Name: "oak", UID: types.UID(uid)}}
		site.Spec.ClassName = ptr.To("grown")
		site.Spec.Storage = v1alpha1.Storage{Type: v1alpha1.StoragePostgres, Postgres: &v1alpha1.PostgresStorage{Pool: &v1alpha1.PooledPostgres{Region: region}}}
		site.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStorageReady, Status: metav1.ConditionFalse, Reason: reason}}
		return site
	}
	claim := func(uid, database string) v1alpha1.SiteClaim {
		return v1alpha1.SiteClaim{Spec: v1alpha1.SiteClaimSpec{
			SiteRef: v1alpha1.SiteReference{Namespace: uid, Name: "oak", UID: types.UID(uid)}, Placement: &v1alpha1.Placement{ClassName: "grown", Database: database},
		}}
	}
	served := waiting("a", "", v1alpha1.ReasonPostgresStorage)
	served.Status.Conditions[0].Status = metav1.ConditionTrue
	other := waiting("a", "", v1alpha1.ReasonNoCapacity)
	other.Spec.ClassName = ptr.To("other")
	move := v1alpha1.SiteMove{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "in"}, Spec: v1alpha1.SiteMoveSpec{SiteName: "oak", To: served.Spec.Storage}}
	move.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonNoCapacity}}
	inCluster := waiting("a", "", v1alpha1.ReasonNoCapacity)
	inCluster.Spec.Storage = v1alpha1.Storage{Type: v1alpha1.StorageCluster}

	tests := map[string]struct {
		sites  []v1alpha1.Site
		claims []v1alpha1.SiteClaim
		moves  []v1alpha1.SiteMove
		states templateStates
		want   bool
	}{
		"none":                                {},
		"a Site without room":                 {sites: []v1alpha1.Site{waiting("a", "", v1alpha1.ReasonNoCapacity)}, want: true},
		"one that waits for a database":       {sites: []v1alpha1.Site{waiting("a", "east", v1alpha1.ReasonProvisioning)}, want: true},
		"of another region":                   {sites: []v1alpha1.Site{waiting("a", "west", v1alpha1.ReasonNoCapacity)}},
		"of another class":                    {sites: []v1alpha1.Site{other}},
		"without a claim yet":                 {sites: []v1alpha1.Site{waiting("a", "", v1alpha1.ReasonForeignRecords)}},
		"placed, by a newer claim":            {sites: []v1alpha1.Site{waiting("a", "", v1alpha1.ReasonNoCapacity)}, claims: []v1alpha1.SiteClaim{claim("a", "auto-1")}},
		"room in one that is created":         {sites: []v1alpha1.Site{waiting("a", "", v1alpha1.ReasonNoCapacity), waiting("b", "", v1alpha1.ReasonNoCapacity)}, states: templateStates{1: {}}},
		"no room in one that is unavailable":  {sites: []v1alpha1.Site{waiting("a", "", v1alpha1.ReasonProvisioning)}, states: templateStates{1: {phase: v1alpha1.PoolDatabaseUnavailable}}, want: true},
		"more than one that is created takes": {sites: []v1alpha1.Site{waiting("a", "", v1alpha1.ReasonNoCapacity), waiting("b", "", v1alpha1.ReasonNoCapacity)}, claims: []v1alpha1.SiteClaim{claim("c", "auto-1")}, states: templateStates{1: {}}, want: true},
		"no room in one that is drained":      {sites: []v1alpha1.Site{waiting("a", "", v1alpha1.ReasonNoCapacity)}, states: templateStates{2: {}}, want: true},
		"a served Site of a drained database": {sites: []v1alpha1.Site{served}, claims: []v1alpha1.SiteClaim{claim("a", "old")}, want: true},
		"a served Site of another database":   {sites: []v1alpha1.Site{served}, claims: []v1alpha1.SiteClaim{claim("a", "auto-1")}},
		"a move without room":                 {sites: []v1alpha1.Site{inCluster}, moves: []v1alpha1.SiteMove{move}, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			class := templateClass()
			if got := demandOf(class, test.sites, test.claims, test.moves).exceeds(class, test.states, class.Placed(test.claims)); got != test.want {
				t.Errorf("exceeds %t, want %t", got, test.want)
			}
		})
	}
}
