// Package aggregated serves the records of every site as Kubernetes objects, to
// kube-apiserver's aggregator: the group r4.fhir.paddock.health. It translates
// between the API machinery and the storage contract, and knows no storage engine.
// See docs/decisions/0004-aggregated-api.md.
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
)

// Config is what the server is made of.
type Config struct {
	// Kubeconfig leads to the API server, which says who callers are and what they
	// may do. Empty: the pod's service account.
	Kubeconfig string
	// Address is where to listen, such as :6443.
	Address string
	// CertFile and KeyFile are read again when they change.
	CertFile, KeyFile string
	Sites             Sites
	// Authorizer tells which references callers may know of.
	Authorizer access.Authorizer
	// Facades are the other APIs of sites, by the names of the subresources that lead to
	// them.
	Facades map[string]Facade
	// Trace wraps what serves requests for resources; nil: nothing.
	Trace func(http.Handler) http.Handler
	// DrainTime is how long requests may take to finish once ctx has ended.
	DrainTime time.Duration
	// Started is called once the server serves.
	Started func()
}

// maxStreams is how many requests share a connection: the aggregator sends all it
// has over a few.
const maxStreams = 1000

// Run serves until ctx ends and then lets requests finish.
func Run(ctx context.Context, config Config) error {
	if err := awaitAuthentication(ctx, config.Kubeconfig); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // told to stop while it waited
		}
		return fmt.Errorf("serve the aggregated API: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", config.Address)
	if err != nil {
		return fmt.Errorf("serve the aggregated API: %w", err)
	}
	server, err := newServer(config, listener)
	if err != nil {
		return fmt.Errorf("serve the aggregated API: %w", err)
	}
	return server.PrepareRun().RunWithContext(ctx)
}

func newServer(config Config, listener net.Listener) (*genericapiserver.GenericAPIServer, error) {
	scheme, codecs, err := newScheme()
	if err != nil {
		return nil, err
	}
	generic := genericapiserver.NewRecommendedConfig(codecs)
	generic.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	generic.EnableProfiling = false
	describeAPI(generic, scheme)
	generic.BuildHandlerChainFunc = config.chain
	if err := secure(generic, config, listener); err != nil {
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

// chain is what requests pass before they are served. Only what comes after the library's own
// handlers is traced: theirs would tell queries, which may hold names and birth dates.
func (c *Config) chain(handler http.Handler, generic *genericapiserver.Config) http.Handler {
	handler = checkPatches(handler, generic.Serializer)
	if c.Trace != nil {
		handler = c.Trace(handler)
	}
	return genericapiserver.DefaultBuildHandlerChain(handler, generic)
}

// install serves the API group.
func install(server *genericapiserver.GenericAPIServer, scheme *runtime.Scheme, codecs serializer.CodecFactory, config Config, generic *genericapiserver.RecommendedConfig) error {
	living := livingSites{config.Sites, generic.SharedInformerFactory.Core().V1().Namespaces().Lister()}
	var served []*resource
	storage := map[string]rest.Storage{}
	for _, kind := range r4v1.Kinds {
		r := &resource{kind: kind, sites: living, authorizer: config.Authorizer, scheme: scheme, table: tables[kind.Name]}
		served, storage[kind.Plural] = append(served, r), r
	}
	parent := newFacades(living)
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

// secure sets how requests arrive, who sent them and what they may ask for.
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
	return authorization.ApplyTo(&generic.Authorization)
}

// newScheme makes a scheme of the kinds and of those that every group needs.
func newScheme() (*runtime.Scheme, serializer.CodecFactory, error) {
	scheme := runtime.NewScheme()
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, unversioned)
	scheme.AddUnversionedTypes(unversioned,
		&metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	if err := r4v1.AddToScheme(scheme); err != nil {
		return nil, serializer.CodecFactory{}, err
	}
	// What is written passes through the internal version, which is the same here.
	internal := schema.GroupVersion{Group: r4v1.GroupVersion.Group, Version: runtime.APIVersionInternal}
	for _, kind := range r4v1.Kinds {
		scheme.AddKnownTypeWithName(internal.WithKind(kind.Name), kind.New())
		scheme.AddKnownTypeWithName(internal.WithKind(kind.Name+"List"), kind.NewList())
	}
	return scheme, serializer.NewCodecFactory(scheme), nil
}

// newGroup is the API group with a storage for each resource.
func newGroup(scheme *runtime.Scheme, codecs serializer.CodecFactory, storage map[string]rest.Storage) *genericapiserver.APIGroupInfo {
	group := genericapiserver.NewDefaultAPIGroupInfo(r4v1.GroupVersion.Group, scheme, runtime.NewParameterCodec(scheme), codecs)
	group.NegotiatedSerializer = textSerializer{group.NegotiatedSerializer}
	group.VersionedResourcesStorageMap[r4v1.GroupVersion.Version] = storage
	return &group
}

// textSerializer offers JSON and YAML. The kinds have no protobuf, and a client
// that would take either must not be promised it.
type textSerializer struct{ runtime.NegotiatedSerializer }

func (s textSerializer) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes()), func(info runtime.SerializerInfo) bool {
		return info.MediaType != runtime.ContentTypeJSON && info.MediaType != runtime.ContentTypeYAML
	})
}
