package site

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/apply"
	"github.com/paddock-health/paddock/controllers/site/exposure"
)

// refusedDelay is the delay before an object that kube-apiserver rejected is applied again. The quota or
// policy that rejected it is not watched.
const refusedDelay = 20 * time.Second

// gatewayAPIDelay is the delay before the next check whether the Gateway API is installed.
const gatewayAPIDelay = time.Minute

var (
	notExposed        = verdict{metav1.ConditionFalse, v1alpha1.ReasonNotAccepted, "The Site is not accepted, so it is not exposed. See the condition Accepted."}
	gatewayAPIMissing = verdict{
		metav1.ConditionFalse, v1alpha1.ReasonGatewayAPIMissing,
		"The Gateway API is not installed. Install release 1.0 or later of its standard channel (https://gateway-api.sigs.k8s.io).",
	}
)

// expose creates the Ingress or HTTPRoute for spec.exposure, if the operator allows it, and deletes
// objects of the exposure that are no longer wanted or allowed. It does not depend on the storage.
func (r *Reconciler) expose(ctx context.Context, s *scope) (step, error) {
	wanted, bad, err := r.decideExposure(s)
	if err != nil {
		return proceed, err
	}
	for _, object := range wanted {
		if bad, err = r.ensureExposure(ctx, object); err != nil {
			return proceed, err
		}
		if bad != nil {
			break
		}
	}
	if err := r.withdrawOthers(ctx, s.site, wanted); err != nil {
		return proceed, err
	}
	if bad != nil && bad.reason == v1alpha1.ReasonRefused {
		s.lookAgain(refusedDelay)
	}
	if len(wanted) == 0 || bad != nil {
		s.found.exposed, s.found.url = bad, r.PublicURL+"/site/"+s.site.SiteID()
		return proceed, nil
	}
	// The URL does not depend on the Gateways' status, so that links do not change with it.
	s.found.url = exposure.URL(s.site, r.Exposure)
	s.found.exposed, err = r.observeExposure(ctx, s)
	return proceed, err
}

// decideExposure returns the objects for the Site, or why there are none. Both are nil without
// spec.exposure.
func (r *Reconciler) decideExposure(s *scope) (wanted []client.Object, bad *verdict, err error) {
	asked := s.site.Spec.Exposure
	// The check is also needed without spec.exposure: withdrawOthers then deletes an HTTPRoute that was
	// left by a crash.
	installed, err := r.gateways.installed(asked != nil && asked.HTTPRoute != nil)
	switch {
	case err != nil:
		return nil, nil, err
	case asked == nil:
		return nil, nil, nil
	case s.siteClaim == nil:
		return nil, &notExposed, nil
	}
	if reason, message := exposure.Refused(s.site, r.Exposure); reason != "" {
		return nil, &verdict{metav1.ConditionFalse, reason, message}, nil
	}
	if asked.HTTPRoute != nil && !installed {
		s.lookAgain(gatewayAPIDelay)
		return nil, &gatewayAPIMissing, nil
	}
	return exposure.Render(s.site, r.Exposure), nil, nil
}

func (r *Reconciler) ensureExposure(ctx context.Context, object client.Object) (*verdict, error) {
	kind := object.GetObjectKind().GroupVersionKind()
	if _, untyped := object.(*unstructured.Unstructured); untyped {
		return r.ensure(ctx, r.exposureReader(kind), object, apply.Same)
	}
	// Ingress controllers and kube-apiserver add fields of their own.
	return r.ensure(ctx, r.exposureReader(kind), object, apply.Covers)
}

// exposureReader returns the cache for a kind.
func (r *Reconciler) exposureReader(kind schema.GroupVersionKind) client.Reader {
	switch kind {
	case exposure.RouteKind:
		return r.gateways.routes.cache
	case exposure.GrantKind:
		return r.gateways.grants.cache
	default:
		return r.Client
	}
}

// observeExposure returns the verdict of the condition Exposed for existing objects.
func (r *Reconciler) observeExposure(ctx context.Context, s *scope) (*verdict, error) {
	if s.site.Spec.Exposure.Ingress != nil {
		return &verdict{metav1.ConditionTrue, v1alpha1.ReasonExposed, "An Ingress routes " + s.found.url + " to the API servers."}, nil
	}
	route := newObject(exposure.RouteKind)
	key := client.ObjectKey{Namespace: s.site.Namespace, Name: exposure.RouteName}
	there, err := findInto(ctx, r.gateways.routes.cache, key, route)
	if err != nil {
		return nil, err
	}
	if !there {
		route = nil
	}
	reason, message, err := exposure.Observe(s.site, route)
	switch {
	case err != nil:
		return nil, err
	case reason != "":
		return &verdict{metav1.ConditionFalse, reason, message}, nil
	}
	return &verdict{metav1.ConditionTrue, v1alpha1.ReasonExposed, "An HTTPRoute routes " + s.found.url + " to the API servers."}, nil
}

// withdrawOthers deletes the objects that expose the Site and are not wanted.
func (r *Reconciler) withdrawOthers(ctx context.Context, site *v1alpha1.Site, wanted []client.Object) error {
	keep := map[schema.GroupVersionKind]bool{}
	for _, object := range wanted {
		keep[object.GetObjectKind().GroupVersionKind()] = true
	}
	var errs []error
	known, err := r.gateways.installed(false)
	if known && !keep[exposure.RouteKind] {
		route := newObject(exposure.RouteKind)
		key := client.ObjectKey{Namespace: site.Namespace, Name: exposure.RouteName}
		there, err := findInto(ctx, r.gateways.routes.cache, key, route)
		if there && metav1.IsControlledBy(route, site) {
			err = r.deleteAsRead(ctx, route)
		}
		errs = append(errs, err)
	}
	name := client.ObjectKeyFromObject(site)
	if known && !keep[exposure.GrantKind] {
		errs = append(errs, r.withdraw(ctx, name, newObject(exposure.GrantKind), r.gateways.grants.cache))
	}
	if !keep[networkingv1.SchemeGroupVersion.WithKind("Ingress")] {
		errs = append(errs, r.withdraw(ctx, name, &networkingv1.Ingress{}, r.Client))
	}
	return errors.Join(append(errs, err)...)
}

// withdrawExposure deletes the objects in the controller's namespace that expose a deleted Site.
// Its HTTPRoute has been deleted with the Site.
func (r *Reconciler) withdrawExposure(ctx context.Context, site types.NamespacedName) error {
	known, err := r.gateways.installed(false)
	errs := []error{err, r.withdraw(ctx, site, &networkingv1.Ingress{}, r.Client)}
	if known {
		errs = append(errs, r.withdraw(ctx, site, newObject(exposure.GrantKind), r.gateways.grants.cache))
	}
	return errors.Join(errs...)
}

// withdraw deletes an object in the controller's namespace if it is for that Site, and not for a
// later Site in the same namespace.
func (r *Reconciler) withdraw(ctx context.Context, site types.NamespacedName, object client.Object, from client.Reader) error {
	key := client.ObjectKey{Namespace: r.Namespace, Name: exposure.Name(site.Namespace)}
	there, err := findInto(ctx, from, key, object)
	if !there || object.GetAnnotations()[v1alpha1.SiteAnnotation] != site.String() {
		return err
	}
	if err := r.deleteAsRead(ctx, object); err != nil {
		return fmt.Errorf("remove the exposure of the site: %w", err)
	}
	return nil
}

func newObject(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

// siteOfAnnotation returns the Site in an object's SiteAnnotation, even if that Site no longer
// exists.
func siteOfAnnotation(_ context.Context, object client.Object) []reconcile.Request {
	namespace, name, ok := strings.Cut(object.GetAnnotations()[v1alpha1.SiteAnnotation], "/")
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}
