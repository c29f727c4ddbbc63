package siteclass

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// movesOnly is a client of SiteMoves. It refuses to create those in the namespaces of refused.
type movesOnly struct {
	client.Client
	moves            []v1alpha1.SiteMove
	refused          map[string]error
	created, deleted []string
}

func (c *movesOnly) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1alpha1.SiteMoveList).Items = c.moves
	return nil
}

func (c *movesOnly) Create(_ context.Context, move client.Object, _ ...client.CreateOption) error {
	if err := c.refused[move.GetNamespace()]; err != nil {
		return err
	}
	c.created = append(c.created, move.GetNamespace())
	return nil
}

func (c *movesOnly) Delete(_ context.Context, move client.Object, _ ...client.DeleteOption) error {
	c.deleted = append(c.deleted, move.GetNamespace())
	return nil
}

// TestDrainContinues drains a database with the Sites of tenants a, b, c, d and e.
func TestDrainContinues(t *testing.T) {
	resource := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "sitemoves"}
	pending := func(namespace string, stalledFor time.Duration) v1alpha1.SiteMove {
		move := v1alpha1.SiteMove{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "drain-old"}}
		move.Status.Phase = v1alpha1.MovePending
		move.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now().Add(-stalledFor)),
		}}
		return move
	}
	tests := map[string]struct {
		client           *movesOnly
		created, deleted []string
		message          string
	}{
		"two at a time": {client: &movesOnly{}, created: []string{"a", "b"}},
		"an object of a tenant has the name, and a quota is used up": {
			client: &movesOnly{refused: map[string]error{
				"a": apierrors.NewAlreadyExists(resource, "drain-old"), "b": apierrors.NewForbidden(resource, "drain-old", nil),
			}},
			created: []string{"c", "d"}, message: "kube-apiserver refused the SiteMoves for 2 of the Sites.",
		},
		"moves are stalled":          {client: &movesOnly{moves: []v1alpha1.SiteMove{pending("a", time.Minute), pending("b", time.Minute)}}},
		"moves are stalled for long": {client: &movesOnly{moves: []v1alpha1.SiteMove{pending("a", time.Hour), pending("b", time.Hour)}}, created: []string{"c", "d"}, deleted: []string{"a", "b"}},
	}
	class := &v1alpha1.SiteClass{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}
	class.Spec.Storage = &v1alpha1.ClassStorage{Type: v1alpha1.StoragePostgres, Postgres: &v1alpha1.ClassPostgres{Pool: &v1alpha1.PostgresPool{
		Databases: []v1alpha1.PoolDatabase{{Name: "old", Capacity: ptr.To[int32](9), Drain: true}, {Name: "new", Capacity: ptr.To[int32](9)}},
	}}}
	var sites []v1alpha1.Site
	var claims []v1alpha1.SiteClaim
	for _, tenant := range []string{"a", "b", "c", "d", "e"} {
		site := v1alpha1.Site{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "oak", UID: types.UID(tenant)}}
		site.Spec.Storage = v1alpha1.Storage{Type: v1alpha1.StoragePostgres, Postgres: &v1alpha1.PostgresStorage{Pool: &v1alpha1.PooledPostgres{}}}
		site.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStorageReady, Status: metav1.ConditionTrue}}
		sites = append(sites, site)
		claim := v1alpha1.SiteClaim{ObjectMeta: metav1.ObjectMeta{Name: tenant}}
		claim.Spec.SiteRef = v1alpha1.SiteReference{Namespace: tenant, Name: "oak", UID: site.UID}
		claim.Spec.Placement = &v1alpha1.Placement{ClassName: "shared", Database: "old"}
		claims = append(claims, claim)
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			messages, err := (&Reconciler{Client: test.client}).drain(t.Context(), test.client, class, sites, claims)
			if err != nil || !strings.HasPrefix(messages["old"], test.message) || test.message == "" && len(messages) > 0 {
				t.Errorf("got %v and error %v, want message %q", messages, err, test.message)
			}
			if !slices.Equal(test.client.created, test.created) || !slices.Equal(test.client.deleted, test.deleted) {
				t.Errorf("created %v and deleted %v, want %v and %v", test.client.created, test.client.deleted, test.created, test.deleted)
			}
		})
	}
}
