// Package aggregated serves the records of every Site as Kubernetes objects of the API group
// r4.fhir.paddock.health, to kube-apiserver's aggregator. It connects the API machinery to a
// store.Store. See docs/decisions/0004-aggregated-api.md.
package aggregated

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"

	r4v1 "github.com/paddock-health/paddock/api/r4/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/audit"
)

// Config configures the server.
type Config struct {
	// Kubeconfig is the path of a kubeconfig for kube-apiserver, which authenticates and authorizes
	// callers. If it is empty, the pod's service account is used.
	Kubeconfig string
	// Address is the address to listen at, such as :6443.
	Address string
	// CertFile and KeyFile are the paths of the PEM files of the TLS certificate and its private key.
	// Changed files are read again.
	CertFile, KeyFile string
	Sites             Sites
	// Authorizer determines to which records a write may refer, which records an error about
	// references may name, and who may patch an object.
	Authorizer access.Authorizer
	// Pages seals continue tokens.
	Pages Pages
	// Audit records requests. If nil, requests are not recorded.
	Audit *audit.Auditor
	// Facades are the other APIs of Sites, by the names of their subresources.
	Facades map[string]Facade
	// Trace, if set, wraps the handler of requests for resources.
	Trace func(http.Handler) http.Handler
	// DrainTime limits how long open requests may run after ctx has ended.
	DrainTime time.Duration
	// Started is called once the server serves requests.
	Started func()
}

// maxStreams is how many concurrent requests a connection may have. The aggregator sends all
// requests over a few connections.
const maxStreams = 1000

// Run serves until ctx ends. It then waits up to DrainTime for open requests.
func Run(ctx context.Context, config Config) error {
	if err := awaitAuthentication(ctx, config.Kubeconfig); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // ctx ended during the wait
		}
		return fmt.Errorf("serve the aggregated API: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", config.Address)
	if err != nil {
		return fmt.Errorf("serve the aggregated API: %w", err)
	}
	server, err := newServer(ctx, config, listener)
	if err != nil && ctx.Err() != nil {
		return nil //nolint:nilerr // ctx ended during the wait
	}
	if err != nil {
		return fmt.Errorf("serve the aggregated API: %w", err)
	}
	return server.PrepareRun().RunWithContext(ctx)
}

func newServer(ctx context.Context, config Config, listener net.Listener) (*genericapiserver.GenericAPIServer, error) {
	scheme, codecs, err := newScheme()
	if err != nil {
		return nil, err
	}
	generic := genericapiserver.NewRecommendedConfig(codecs)
	generic.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	generic.EnableProfiling = false
	describeAPI(generic, scheme)
	generic.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		return config.chain(handler, c, living(config, generic))
	}
	if err := secure(generic, config, listener); err != nil {
		return nil, err
	}
	if err := followAuthorities(ctx, generic.SecureServing, config.Kubeconfig); err != nil {
		return nil, err
	}
	if err := admit(generic, config.Kubeconfig); err != nil {
		return nil, err
	}
	server, err := generic.Complete().New("paddock", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, err
	}
	server.ShutdownTimeout = config.DrainTime
	server.AddPostStartHookOrDie("paddock-started", func(genericapiserver.PostStartHookContext) error {
		config.Started()
		return nil
	})
	return server, install(server, scheme, codecs, config, generic)
}

// chain wraps handler in the handlers of the API machinery and of this package. The spans of a
// trace begin after the handlers of the API machinery, because spans of those handlers would
// include query strings, which may contain names and birth dates.
func (c *Config) chain(handler http.Handler, generic *genericapiserver.Config, sites Sites) http.Handler {
	handler = checkPatches(handler, generic.Serializer)
	if c.Trace != nil {
		handler = c.Trace(handler)
	}
	return c.audited(genericapiserver.DefaultBuildHandlerChain(handler, generic), sites, generic.RequestInfoResolver, generic.Serializer)
}

// living returns the Sites of namespaces that are not terminating. A request to a terminating
// namespace must not wait for the Site's audit log either.
func living(config Config, generic *genericapiserver.RecommendedConfig) livingSites {
	return livingSites{config.Sites, generic.SharedInformerFactory.Core().V1().Namespaces().Lister()}
}

// install serves the API group.
func install(server *genericapiserver.GenericAPIServer, scheme *runtime.Scheme, codecs serializer.CodecFactory, config Config, generic *genericapiserver.RecommendedConfig) error {
	sites := living(config, generic)
	var served []*resource
	storage := map[string]rest.Storage{}
	for _, kind := range r4v1.Kinds {
		r := &resource{kind: kind, sites: sites, authorizer: config.Authorizer, pages: config.Pages, scheme: scheme, table: tables[kind.Name]}
		served, storage[kind.Plural] = append(served, r), r
	}
	parent := newFacades(sites)
	storage[r4v1.FacadeResource] = parent
	for name, serve := range config.Facades {
		storage[r4v1.FacadeResource+"/"+name] = &connection{parent, name, serve}
	}
	group := newGroup(scheme, codecs, storage)
	if err := server.InstallAPIGroup(group); err != nil {
		return err
	}
	// The schemas of the group are known once it is installed.
	types, err := managedfields.NewTypeConverter(group.StaticOpenAPISpec, false)
	if err != nil {
		return err
	}
	for _, r := range served {
		if r.fields, err = newFieldManager(scheme, types, r.kind); err != nil {
			return err
		}
	}
	return nil
}

// secure configures TLS, authentication and authorization.
func secure(generic *genericapiserver.RecommendedConfig, config Config, listener net.Listener) error {
	serving := options.NewSecureServingOptions()
	serving.Listener = listener
	serving.ServerCert.CertKey = options.CertKey{CertFile: config.CertFile, KeyFile: config.KeyFile}
	serving.HTTP2MaxStreamsPerConnection = maxStreams
	if err := serving.WithLoopback().ApplyTo(&generic.SecureServing, &generic.LoopbackClientConfig); err != nil {
		return err
	}
	authentication := options.NewDelegatingAuthenticationOptions()
	authentication.RemoteKubeConfigFile = config.Kubeconfig
	if err := authentication.ApplyTo(&generic.Authentication, generic.SecureServing, generic.OpenAPIConfig); err != nil {
		return err
	}
	authorization := options.NewDelegatingAuthorizationOptions()
	authorization.RemoteKubeConfigFile = config.Kubeconfig
	if err := authorization.ApplyTo(&generic.Authorization); err != nil {
		return err
	}
	generic.Authorization.Authorizer = noting{generic.Authorization.Authorizer}
	return nil
}

// newScheme returns a scheme of the group's kinds and of those that every group needs.
func newScheme() (*runtime.Scheme, serializer.CodecFactory, error) {
	scheme := runtime.NewScheme()
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, unversioned)
	scheme.AddUnversionedTypes(unversioned,
		&metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	if err := r4v1.AddToScheme(scheme); err != nil {
		return nil, serializer.CodecFactory{}, err
	}
	// Written objects are converted to the internal version, which is the same here.
	internal := schema.GroupVersion{Group: r4v1.GroupVersion.Group, Version: runtime.APIVersionInternal}
	for _, kind := range r4v1.Kinds {
		scheme.AddKnownTypeWithName(internal.WithKind(kind.Name), kind.New())
		scheme.AddKnownTypeWithName(internal.WithKind(kind.Name+"List"), kind.NewList())
	}
	return scheme, serializer.NewCodecFactory(scheme), nil
}

// newGroup returns the API group with a storage for each resource.
func newGroup(scheme *runtime.Scheme, codecs serializer.CodecFactory, storage map[string]rest.Storage) *genericapiserver.APIGroupInfo {
	group := genericapiserver.NewDefaultAPIGroupInfo(r4v1.GroupVersion.Group, scheme, runtime.NewParameterCodec(scheme), codecs)
	group.NegotiatedSerializer = textSerializer{group.NegotiatedSerializer}
	group.VersionedResourcesStorageMap[r4v1.GroupVersion.Version] = storage
	return &group
}

// textSerializer offers JSON and YAML. It does not offer protobuf to clients that accept it,
// because the kinds have none.
type textSerializer struct{ runtime.NegotiatedSerializer }

func (s textSerializer) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes()), func(info runtime.SerializerInfo) bool {
		return info.MediaType != runtime.ContentTypeJSON && info.MediaType != runtime.ContentTypeYAML
	})
}
