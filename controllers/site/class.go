package site

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/apply"
)

// +kubebuilder:rbac:groups=paddock.health,resources=siteclasses,verbs=get;list;watch

// completeByClass writes className and storage to a new Site that does not set them (writeClass), and
// completes the Site by its class for the following phases. A Site whose class does not exist is not
// accepted, unless the Site is being deleted.
func (r *Reconciler) completeByClass(ctx context.Context, s *scope) (step, error) {
	deleting := !s.site.DeletionTimestamp.IsZero()
	name, err := r.classNameOf(ctx, s.site)
	if err != nil || name == nil || *name == "" {
		return proceed, err
	}
	if s.class, err = find[v1alpha1.SiteClass](ctx, r.Client, client.ObjectKey{Name: *name}); err != nil {
		return proceed, err
	}
	switch {
	case s.class == nil && deleting:
		return proceed, nil
	case s.class == nil:
		s.found.accepted = &verdict{
			metav1.ConditionFalse, v1alpha1.ReasonClassNotFound,
			fmt.Sprintf("There is no SiteClass %q. Create it, or correct spec.className.", *name),
		}
		return finish, nil
	case !deleting:
		if wrote, err := r.writeClass(ctx, s.site, s.class); wrote || err != nil {
			return leave, err
		}
	}
	s.site = s.class.Complete(s.site)
	return proceed, nil
}

// writeClass writes className to the Site. It writes the storage of the class, too, if the Site has the
// default storage, has not been served, and retains no records in the cluster. wrote reports whether it
// changed the Site, which means that site is out of date.
func (r *Reconciler) writeClass(ctx context.Context, site *v1alpha1.Site, class *v1alpha1.SiteClass) (wrote bool, err error) {
	changed := site.DeepCopy()
	changed.Spec.ClassName = &class.Name
	// During a move to another namespace, a Site that was served holds no siteID for a time, and then
	// has no site key although the Site is not new.
	if site.Status.SiteKey == "" && site.Status.Move == nil && equality.Semantic.DeepEqual(site.Spec.Storage, v1alpha1.Storage{Type: v1alpha1.StorageCluster}) {
		retained, err := r.retainsRecords(ctx, site)
		if err != nil {
			return false, err
		}
		if !retained {
			changed.Spec.Storage = class.NewStorage()
		}
	}
	if equality.Semantic.DeepEqual(site.Spec, changed.Spec) {
		return false, nil
	}
	patch := client.MergeFromWithOptions(site, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, changed, patch, apply.FieldOwner); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("set the class and storage of the Site: %w", err)
	}
	return true, nil
}

// retainsRecords reports whether the namespace has Record objects of an earlier Site of the same siteID
// and name. It does not look for retained data in databases.
func (r *Reconciler) retainsRecords(ctx context.Context, site *v1alpha1.Site) (bool, error) {
	claim, err := find[v1alpha1.SiteClaim](ctx, r.Live, client.ObjectKey{Name: site.SiteID()})
	if err != nil || claim == nil || claim.Spec.SiteRef.Namespace != site.Namespace || claim.Spec.SiteRef.Name != site.Name {
		return false, err
	}
	name, err := firstOf(ctx, r.Live, "Record", site.Namespace, fields.OneTermEqualSelector(siteKeyField, claim.Spec.SiteKey))
	return name != "", err
}

// classNameOf returns spec.className, or the name of the default class for a new Site that sets none.
// It returns nil if there is no default class, or if the Site is not new.
func (r *Reconciler) classNameOf(ctx context.Context, site *v1alpha1.Site) (*string, error) {
	if site.Spec.ClassName != nil || site.Status.ObservedGeneration != 0 {
		return site.Spec.ClassName, nil
	}
	classes := &v1alpha1.SiteClassList{}
	if err := r.Client.List(ctx, classes); err != nil {
		return nil, fmt.Errorf("list the SiteClasses: %w", err)
	}
	return defaultClass(classes.Items), nil
}

// defaultClass returns the name of the newest default class, or nil. If several were created in the same
// second, it returns the first name in alphabetical order, as Kubernetes does for StorageClasses. It
// ignores classes that are being deleted.
func defaultClass(classes []v1alpha1.SiteClass) *string {
	var newest *v1alpha1.SiteClass
	for i := range classes {
		class := &classes[i]
		if class.Annotations[v1alpha1.DefaultClassAnnotation] != "true" || !class.DeletionTimestamp.IsZero() {
			continue
		}
		if newest == nil || newest.CreationTimestamp.Before(&class.CreationTimestamp) ||
			newest.CreationTimestamp.Equal(&class.CreationTimestamp) && class.Name < newest.Name {
			newest = class
		}
	}
	if newest == nil {
		return nil
	}
	return &newest.Name
}

// otherSpec selects the events of SiteClasses after which the values of their Sites can differ. It ignores
// updates that change only how many Sites the databases take, which matters only to Sites without a
// database. A class can have thousands of Sites, and Sites that are moved from a drained database would
// have to wait until all of them are reconciled.
var otherSpec = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || !equality.Semantic.DeepEqual(specWithoutRoom(e.ObjectOld), specWithoutRoom(e.ObjectNew))
}}

// specWithoutRoom returns the spec of a SiteClass without the fields that decide how many Sites its
// databases take.
func specWithoutRoom(obj client.Object) v1alpha1.SiteClassSpec {
	class, ok := obj.(*v1alpha1.SiteClass)
	if !ok {
		return v1alpha1.SiteClassSpec{}
	}
	class = class.DeepCopy()
	if pool := class.Pool(); pool != nil {
		for i := range pool.Databases {
			pool.Databases[i].Capacity, pool.Databases[i].Drain = nil, false
		}
	}
	if template := class.Template(); template != nil {
		template.Capacity, template.MaxDatabases, template.Drain = nil, nil, nil
	}
	return class.Spec
}

// sitesOfClass returns the Sites of a SiteClass.
func (r *Reconciler) sitesOfClass(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.sitesOfClassThat(ctx, obj.GetName(), func(*v1alpha1.Site) bool { return true })
}

// unplacedSitesOfClass returns the Sites of a SiteClass that have no database of its pool. They wait for
// room, which the status of the class counts. That status changes with each Site of the class, so
// the other Sites must not be reconciled.
func (r *Reconciler) unplacedSitesOfClass(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.sitesOfClassThat(ctx, obj.GetName(), func(site *v1alpha1.Site) bool {
		postgres := site.Spec.Storage.Postgres
		return postgres != nil && postgres.Pool != nil && site.Status.Database == ""
	})
}

func (r *Reconciler) sitesOfClassThat(ctx context.Context, className string, selects func(*v1alpha1.Site) bool) []reconcile.Request {
	list := &v1alpha1.SiteList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		logf.FromContext(ctx).Error(err, "cannot list the Sites to reconcile after a change of a SiteClass", "siteClass", className)
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if site := &list.Items[i]; site.Class() == className && selects(site) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(site)})
		}
	}
	return requests
}
