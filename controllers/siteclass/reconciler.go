// Package siteclass reconciles SiteClasses: it reports how many Sites use them and the databases of
// their pools, creates databases by the templates of pools, moves Sites away from databases that are
// drained, and keeps a SiteClass that is being deleted while Sites use it. With a deleted SiteClass it
// deletes the databases of a template whose deletionPolicy is Delete.
package siteclass

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/apply"
)

// countInterval is the minimum interval between two reconciles of a SiteClass whose spec has not changed.
// A reconcile reads all Sites and SiteClaims, and each Site that is created causes several reconciles.
const countInterval = time.Second

// Reconciler reconciles SiteClasses.
type Reconciler struct {
	// Client reads from a cache, and writes to kube-apiserver.
	Client client.Client
	// Live reads from kube-apiserver. With a stale cache, a SiteClass could be deleted although a new
	// Site uses it, or a Site could be moved again that has already left a database.
	Live client.Reader
	// Namespace is the controller's namespace, which has the databases of templates.
	Namespace string
	// CloudNativePGImage is the image of the databases of templates, without a tag.
	CloudNativePGImage string
	// Now is the clock.
	Now func() time.Time

	// checked has the last check of the template of each class, by the name of the class. SiteClasses are
	// reconciled one after the other, so checked and counted need no lock.
	checked map[string]*checkedTemplate
	// counted has the last reconcile of each class, by the name of the class. A reconcile that failed is
	// removed, except after a conflict.
	counted map[string]count
}

// count is a reconcile of a SiteClass with a uid and generation.
type count struct {
	at         time.Time
	uid        types.UID
	generation int64
}

// +kubebuilder:rbac:groups=paddock.health,resources=siteclasses,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=paddock.health,resources=siteclasses/status,verbs=patch

// SetupWithManager registers the controller. A SiteClass is reconciled when it, a Site of the class or
// a SiteClaim with a placement in its pool changes.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.checked, r.counted = map[string]*checkedTemplate{}, map[string]count{}
	return ctrl.NewControllerManagedBy(mgr).
		Named("siteclass").
		For(&v1alpha1.SiteClass{}).
		Watches(&v1alpha1.Site{}, handler.EnqueueRequestsFromMapFunc(classOfSite)).
		Watches(&v1alpha1.SiteClaim{}, handler.EnqueueRequestsFromMapFunc(classOfClaim)).
		WithOptions(controller.Options{UsePriorityQueue: ptr.To(false)}). // for the reason in SetupWithManager of the Site controller
		Complete(r)
}

func classOfSite(_ context.Context, obj client.Object) []reconcile.Request {
	if site, ok := obj.(*v1alpha1.Site); ok && site.Class() != "" {
		return requestFor(site.Class())
	}
	return nil
}

func classOfClaim(_ context.Context, obj client.Object) []reconcile.Request {
	if claim, ok := obj.(*v1alpha1.SiteClaim); ok && claim.Spec.Placement != nil {
		return requestFor(claim.Spec.Placement.ClassName)
	}
	return nil
}

func requestFor(className string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: className}}}
}

// Reconcile reconciles one SiteClass: the moves away from drained databases, the databases of its
// template, its finalizer and its status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	class := &v1alpha1.SiteClass{}
	if err := r.Client.Get(ctx, req.NamespacedName, class); err != nil {
		delete(r.checked, req.Name)
		delete(r.counted, req.Name)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	now, last := r.Now(), r.counted[req.Name]
	if wait := last.at.Add(countInterval).Sub(now); wait > 0 && last.uid == class.UID && last.generation == class.Generation {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	r.counted[req.Name] = count{now, class.UID, class.Generation}
	err := r.update(ctx, class)
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: apply.ConflictDelay}, nil
	case err == nil:
		return ctrl.Result{RequeueAfter: r.interval(class)}, nil
	}
	delete(r.counted, req.Name) // a retry waits only for the backoff of the queue
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// interval returns the interval until the next reconcile, or 0 if only changes matter.
func (r *Reconciler) interval(class *v1alpha1.SiteClass) time.Duration {
	switch checked := r.checked[class.Name]; {
	case class.Template() != nil && !class.DeletionTimestamp.IsZero():
		return creationInterval // the deletion of its databases is checked
	case class.Template() != nil && checked != nil && checked.interval() < drainInterval:
		return checked.interval()
	case class.Template() != nil || drains(class):
		return drainInterval
	default:
		return 0
	}
}

// drains reports whether a database of the class's pool is drained.
func drains(class *v1alpha1.SiteClass) bool {
	pool, template := class.Pool(), class.Template()
	return pool != nil && slices.ContainsFunc(pool.Databases, func(d v1alpha1.PoolDatabase) bool { return d.Drain }) || template != nil && len(template.Drain) > 0
}

func (r *Reconciler) update(ctx context.Context, class *v1alpha1.SiteClass) error {
	reader := client.Reader(r.Client)
	if !class.DeletionTimestamp.IsZero() || drains(class) {
		reader = r.Live
	}
	sites, claims := &v1alpha1.SiteList{}, &v1alpha1.SiteClaimList{}
	if err := reader.List(ctx, sites); err != nil {
		return err
	}
	if err := reader.List(ctx, claims); err != nil {
		return err
	}
	messages, err := r.drain(ctx, reader, class, sites.Items, claims.Items)
	if err != nil {
		return err
	}
	states, err := r.templateDatabases(ctx, class, sites.Items, claims.Items)
	if err != nil {
		return err
	}
	status := statusOf(class, sites.Items, claims.Items, messages, states)
	if !class.DeletionTimestamp.IsZero() && !inUse(status) {
		if left, err := r.deleteDatabases(ctx, class); left != "" || err != nil {
			return err // until all are deleted, the class is reconciled in intervals
		}
	}
	// A class without Sites has the finalizer too, until it is deleted: a Site can be created at any time.
	if used := class.DeletionTimestamp.IsZero() || inUse(status); controllerutil.ContainsFinalizer(class, v1alpha1.SiteClassFinalizer) != used {
		_, err := apply.Finalizer(ctx, r.Client, class, v1alpha1.SiteClassFinalizer, used)
		return err // the write triggers another reconcile
	}
	if equality.Semantic.DeepEqual(class.Status, status) {
		return nil
	}
	return apply.Status(ctx, r.Client, class, &status)
}
