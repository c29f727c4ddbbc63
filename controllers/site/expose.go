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

// gatewayAPIDelay is the pause before the kinds of the Gateway API are looked for again:
// nothing tells when they are installed.
const gatewayAPIDelay = time.Minute

var (
	notExposed        = verdict{metav1.ConditionFalse, v1alpha1.ReasonNotAccepted, "a Site that is not accepted has no address"}
	gatewayAPIMissing = verdict{
		metav1.ConditionFalse, v1alpha1.ReasonGatewayAPIMissing,
		"the Gateway API is not installed: install release 1.0 or later of its standard channel (https://gateway-api.sigs.k8s.io)",
	}
)

// expose leads the address that the Site asks for to the API servers, as far as it may have
// it, and removes the way to one that it no longer asks for or may have. Storage plays no
// part: without it the API servers answer that it is away.
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
	if len(wanted) == 0 || bad != nil {
		s.found.exposed, s.found.url = bad, r.PublicURL+"/site/"+s.site.SiteID()
		return proceed, nil
	}
	// Links do not wait for Gateways: they would change with every word of theirs.
	s.found.url = exposure.URL(s.site, r.Exposure)
	s.found.exposed, err = r.observeExposure(ctx, s)
	return proceed, err
}

// decideExposure says which objects the Site gets, or why none; both are nil where it asks
// for none.
func (r *Reconciler) decideExposure(s *scope) (wanted []client.Object, bad *verdict, err error) {
	asked := s.site.Spec.Exposure
	// Also where no Site asks for a route any more: one may have been left by a crash.
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
	// Controllers, and the API server, add to an Ingress what is theirs.
	return r.ensure(ctx, r.exposureReader(kind), object, apply.Covers)
}

// exposureReader is the cache of a kind.
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

// observeExposure says whether the objects, all of which are there, lead to the site.
func (r *Reconciler) observeExposure(ctx context.Context, s *scope) (*verdict, error) {
	if s.site.Spec.Exposure.Ingress != nil {
		return &verdict{metav1.ConditionTrue, v1alpha1.ReasonExposed, "an Ingress leads from " + s.found.url}, nil
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
	return &verdict{metav1.ConditionTrue, v1alpha1.ReasonExposed, "an HTTPRoute leads from " + s.found.url}, nil
}

// withdrawOthers removes what exposes the Site and is not wanted.
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

// withdrawExposure removes what exposes a Site that is gone from the operator's namespace. Its
// HTTPRoute went with it.
func (r *Reconciler) withdrawExposure(ctx context.Context, site types.NamespacedName) error {
	known, err := r.gateways.installed(false)
	errs := []error{err, r.withdraw(ctx, site, &networkingv1.Ingress{}, r.Client)}
	if known {
		errs = append(errs, r.withdraw(ctx, site, newObject(exposure.GrantKind), r.gateways.grants.cache))
	}
	return errors.Join(errs...)
}

// withdraw deletes an object of the operator's namespace, if it is for that Site and not for
// one that has had the namespace since.
func (r *Reconciler) withdraw(ctx context.Context, site types.NamespacedName, object client.Object, from client.Reader) error {
	key := client.ObjectKey{Namespace: r.Namespace, Name: exposure.Name(site.Namespace)}
	there, err := findInto(ctx, from, key, object)
	if !there || object.GetAnnotations()[v1alpha1.SiteAnnotation] != site.String() {
		return err
	}
	if err := r.deleteAsRead(ctx, object); err != nil {
		return fmt.Errorf("withdraw the address of the site: %w", err)
	}
	return nil
}

func newObject(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

// siteOfAnnotation is the Site that an object of the operator's namespace is for, whether or
// not it still exists.
func siteOfAnnotation(_ context.Context, object client.Object) []reconcile.Request {
	namespace, name, ok := strings.Cut(object.GetAnnotations()[v1alpha1.SiteAnnotation], "/")
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}
