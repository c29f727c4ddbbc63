package aggregated

import (
	"context"
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	r4v1 "github.com/paddock-health/paddock/api/r4/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/access"
)

// Facade serves delegated requests to the FHIR or AHDS API of a Site.
type Facade func(w http.ResponseWriter, r *http.Request, delegated DelegatedRequest)

// DelegatedRequest is a request to the FHIR or AHDS API of a Site through kube-apiserver, which has
// authenticated the caller and authorized the connection. The API must authorize the request
// itself.
type DelegatedRequest struct {
	SiteID string
	Caller access.Caller
	// Base is the path of the API in the aggregated API. Path is the rest of the request's path: empty,
	// or beginning with a slash. Both are escaped.
	Base, Path string
}

// facades serves the objects that represent the FHIR and AHDS APIs of Sites.
type facades struct {
	rest.TableConvertor
	sites Sites
}

var (
	_ rest.Getter               = (*facades)(nil)
	_ rest.Scoper               = (*facades)(nil)
	_ rest.SingularNameProvider = (*facades)(nil)
)

var facadeResource = r4v1.GroupVersion.WithResource(r4v1.FacadeResource).GroupResource()

func newFacades(sites Sites) *facades {
	return &facades{rest.NewDefaultTableConvertor(facadeResource), sites}
}

// New implements rest.Storage.
func (f *facades) New() runtime.Object { return &r4v1.Facade{} }

// Destroy implements rest.Storage.
func (f *facades) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (f *facades) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (f *facades) GetSingularName() string { return "facade" }

// Get implements rest.Getter.
func (f *facades) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	site, err := f.site(ctx, name)
	if err != nil {
		return nil, err
	}
	return &r4v1.Facade{ObjectMeta: metav1.ObjectMeta{Name: site.Access.Name, Namespace: site.Access.Namespace}}, nil
}

// site returns the Site of the request, whose name must be that of the facade. Its errors are those
// of the API machinery.
func (f *facades) site(ctx context.Context, name string) (Backend, error) {
	site, err := f.sites.Site(request.NamespaceValue(ctx))
	switch {
	case errors.Is(err, ErrNoSite), err == nil && site.Access.Name != name:
		return Backend{}, apierrors.NewNotFound(facadeResource, name)
	case err != nil:
		answer := apierrors.NewServiceUnavailable("the sites are being listed; retry later")
		answer.ErrStatus.Details = &metav1.StatusDetails{Group: facadeResource.Group, Kind: facadeResource.Resource, Name: name, RetryAfterSeconds: retryAfter}
		return Backend{}, answer
	default:
		return site, nil
	}
}

// connection is a subresource of facades. It does not embed facades, because it must not implement
// rest.Getter.
type connection struct {
	parent *facades
	name   string
	serve  Facade
}

var _ rest.Connecter = (*connection)(nil)

// New implements rest.Storage.
func (c *connection) New() runtime.Object { return &r4v1.Facade{} }

// Destroy implements rest.Storage.
func (c *connection) Destroy() {}

// NewConnectOptions implements rest.Connecter. A path may follow the subresource.
func (c *connection) NewConnectOptions() (options runtime.Object, subpath bool, subpathKey string) {
	return &r4v1.FacadeOptions{}, true, "path"
}

// ConnectMethods implements rest.Connecter. Each method is authorized as a verb of RBAC: GET and
// HEAD as get, POST as create, PUT as update, PATCH as patch, DELETE as delete.
func (c *connection) ConnectMethods() []string {
	return []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
}

// Connect implements rest.Connecter.
func (c *connection) Connect(ctx context.Context, name string, _ runtime.Object, _ rest.Responder) (http.Handler, error) {
	site, err := c.parent.site(ctx, name)
	if err != nil {
		return nil, err
	}
	caller, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	base := "/apis/" + r4v1.GroupVersion.String() + "/namespaces/" + site.Access.Namespace + "/" + r4v1.FacadeResource + "/" + name + "/" + c.name
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, below := strings.CutPrefix(r.URL.EscapedPath(), base)
		if !below || path != "" && path[0] != '/' {
			http.NotFound(w, r) // the path has needless escapes
			return
		}
		c.serve(w, r, DelegatedRequest{SiteID: site.ID, Caller: caller, Base: base, Path: path})
	}), nil
}
