package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

const (
	recordsResource   = "records"
	historiesResource = "recordhistories"
	claimsResource    = "recordclaims"

	// requestTimeout bounds one request to the API server.
	requestTimeout = 15 * time.Second

	// metadataOnly asks the API server to answer a write with the object's
	// metadata: the writer knows the rest.
	metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
)

// noManagedFields, sent with a write, turns field tracking off for the object
// (server-side apply reference, "clearing managedFields"): nobody applies these
// objects, and tracking each version of a history would outweigh it.
var noManagedFields = []metav1.ManagedFieldsEntry{{}}

// client reads and writes the objects of this package's API group.
type client struct {
	rest rest.Interface
}

func newClient(config *rest.Config) (*client, error) {
	scheme := runtime.NewScheme()
	if err := recordsv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register kinds of %s: %w", recordsv1.GroupVersion, err)
	}
	config = rest.CopyConfig(config)
	config.GroupVersion = &recordsv1.GroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	// The API server's priority and fairness guards it; limits here would only
	// delay one site's requests behind another's.
	config.QPS = -1
	c, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", recordsv1.GroupVersion, err)
	}
	return &client{rest: c}, nil
}

func (c *client) get(ctx context.Context, resource, namespace, name string, into runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return c.rest.Get().Namespace(namespace).Resource(resource).Name(name).Do(ctx).Into(into)
}

func (c *client) list(ctx context.Context, resource string, options metav1.ListOptions, into runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return c.rest.Get().Resource(resource).VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(into)
}

// create stores obj and returns the metadata it got.
func (c *client) create(ctx context.Context, resource, namespace string, obj runtime.Object) (metav1.ObjectMeta, error) {
	return c.write(ctx, c.rest.Post().Namespace(namespace).Resource(resource).Body(obj))
}

// update replaces obj, guarded by the resourceVersion in it, and returns the new metadata.
func (c *client) update(ctx context.Context, resource, namespace, name string, obj runtime.Object) (metav1.ObjectMeta, error) {
	return c.write(ctx, c.rest.Put().Namespace(namespace).Resource(resource).Name(name).Body(obj))
}

// mergePatch applies a JSON merge patch (RFC 7396).
func (c *client) mergePatch(ctx context.Context, resource, namespace, name string, patch []byte) error {
	_, err := c.write(ctx, c.rest.Patch(types.MergePatchType).Namespace(namespace).Resource(resource).Name(name).Body(patch))
	return err
}

func (c *client) write(ctx context.Context, request *rest.Request) (metav1.ObjectMeta, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var answer metav1.PartialObjectMetadata
	raw, err := request.SetHeader("Accept", metadataOnly).Do(ctx).Raw()
	if err != nil {
		return metav1.ObjectMeta{}, err
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return metav1.ObjectMeta{}, fmt.Errorf("read the API server's answer: %w", err)
	}
	return answer.ObjectMeta, nil
}

// delete removes an object if it is still in the given state. What is gone already is no error.
func (c *client) delete(ctx context.Context, resource, namespace, name string, state *metav1.ObjectMeta) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	options := &metav1.DeleteOptions{}
	if state != nil {
		options.Preconditions = &metav1.Preconditions{UID: &state.UID, ResourceVersion: &state.ResourceVersion}
	}
	err := c.rest.Delete().Namespace(namespace).Resource(resource).Name(name).Body(options).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// storeError turns what a request to the API server failed with into an error of
// the storage contract. Only errors that no branch expected get here.
func storeError(doing string, err error) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case apierrors.IsRequestEntityTooLargeError(err):
		return &store.LimitError{Scope: store.LimitRecord, What: "bytes", Max: maxObjectCeiling}
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", doing, err)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		// Said too by an API server that is starting and does not know its roles yet.
		return fmt.Errorf("%s: %w: %w", doing, store.ErrUnavailable, err)
	case errors.As(err, &status) && status.Status().Code < 500 && !apierrors.IsTooManyRequests(err):
		return fmt.Errorf("%s: %w", doing, err)
	default:
		return fmt.Errorf("%s: %w: %w", doing, store.ErrUnavailable, err)
	}
}
