// Package objects reads and writes the custom resources of records.paddock.health, which hold the
// data of sites. It handles requests and their errors. It does not interpret the objects.
package objects

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
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

// The names of the resources in the API group.
const (
	Records   = "records"
	Histories = "recordhistories"
	Claims    = "recordclaims"
	Segments  = "auditsegments"
	Delivery  = "webhookdeliveries"
	Logs      = "webhookdeliverylogs"
)

const (
	// Timeout is the maximum duration of a request of a Client, except for a watch.
	Timeout = 15 * time.Second
	// MaxSize is the maximum size of an object in bytes that cluster.Limits may allow. etcd refuses
	// requests over 1.5 MiB.
	MaxSize = 1 << 20

	// metadataOnly is the Accept header by which the API server responds to a write with only the
	// metadata of the object. The writer knows the rest.
	metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	// metadataListOnly is the Accept header for a list of only the metadata of objects.
	metadataListOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// NoManagedFields is the value of metadata.managedFields that turns off field tracking for the
// object that is written (Kubernetes documentation of server-side apply, "Clearing managedFields").
// No client applies these objects, and the tracked fields of a history would be larger than its
// content.
var NoManagedFields = []metav1.ManagedFieldsEntry{{}}

// Client reads and writes objects of the group records.paddock.health. Its methods return the errors
// of kube-apiserver unchanged. It is safe for concurrent use.
type Client struct {
	rest rest.Interface
}

// HistoryName returns the name of the RecordHistory of a Record. The name contains the lineage of the
// Record, so a record that is created again after a purge has another RecordHistory.
func HistoryName(record *recordsv1.Record) string {
	return record.Name + "." + record.Spec.Lineage
}

// New returns a Client that sends requests without a rate limit. It ignores config.QPS.
func New(config *rest.Config) (*Client, error) {
	scheme := runtime.NewScheme()
	if err := recordsv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register kinds of %s: %w", recordsv1.GroupVersion, err)
	}
	config = rest.CopyConfig(config)
	config.GroupVersion = &recordsv1.GroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	// API Priority and Fairness protects the API server. A rate limit here would only delay the
	// requests of one site behind those of another.
	config.QPS = -1
	c, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", recordsv1.GroupVersion, err)
	}
	return &Client{rest: c}, nil
}

// Get reads an object into the variable into.
func (c *Client) Get(ctx context.Context, resource, namespace, name string, into runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	return c.rest.Get().Namespace(namespace).Resource(resource).Name(name).Do(ctx).Into(into)
}

// List reads one page of the objects of a resource in all namespaces.
func (c *Client) List(ctx context.Context, resource string, options metav1.ListOptions, into runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	return c.rest.Get().Resource(resource).VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(into)
}

// Watch watches the objects of a resource in all namespaces.
func (c *Client) Watch(ctx context.Context, resource string, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return c.rest.Get().Resource(resource).VersionedParams(&options, metav1.ParameterCodec).Watch(ctx)
}

// ListMetadata reads one page of the metadata of a resource's objects in a namespace.
func (c *Client) ListMetadata(ctx context.Context, resource, namespace string, options metav1.ListOptions) (metav1.PartialObjectMetadataList, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	var list metav1.PartialObjectMetadataList
	raw, err := c.rest.Get().Namespace(namespace).Resource(resource).VersionedParams(&options, metav1.ParameterCodec).
		SetHeader("Accept", metadataListOnly).Do(ctx).Raw()
	if err != nil {
		return list, err
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return list, fmt.Errorf("decode the response of kube-apiserver: %w", err)
	}
	return list, nil
}

// ListIn reads one page of the objects of a resource in a namespace.
func (c *Client) ListIn(ctx context.Context, resource, namespace string, options metav1.ListOptions, into runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	return c.rest.Get().Namespace(namespace).Resource(resource).VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(into)
}

// Create creates obj and returns the metadata of the created object.
func (c *Client) Create(ctx context.Context, resource, namespace string, obj runtime.Object) (metav1.ObjectMeta, error) {
	return c.write(ctx, c.rest.Post().Namespace(namespace).Resource(resource).Body(obj))
}

// Update replaces the object with a name by obj and returns its new metadata. It fails with a conflict
// if the resourceVersion of obj is not the current resourceVersion of the object.
func (c *Client) Update(ctx context.Context, resource, namespace, name string, obj runtime.Object) (metav1.ObjectMeta, error) {
	return c.write(ctx, c.rest.Put().Namespace(namespace).Resource(resource).Name(name).Body(obj))
}

// MergePatch applies a JSON merge patch (RFC 7396) to an object and returns its new metadata.
func (c *Client) MergePatch(ctx context.Context, resource, namespace, name string, patch []byte) (metav1.ObjectMeta, error) {
	return c.write(ctx, c.rest.Patch(types.MergePatchType).Namespace(namespace).Resource(resource).Name(name).Body(patch))
}

func (c *Client) write(ctx context.Context, request *rest.Request) (metav1.ObjectMeta, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	var answer metav1.PartialObjectMetadata
	raw, err := request.SetHeader("Accept", metadataOnly).Do(ctx).Raw()
	if err != nil {
		return metav1.ObjectMeta{}, err
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return metav1.ObjectMeta{}, fmt.Errorf("decode the response of kube-apiserver: %w", err)
	}
	return answer.ObjectMeta, nil
}

// Delete deletes an object. It fails with a conflict if the object no longer has the UID and
// resourceVersion of state. If state is nil, the object is deleted in any state. Delete returns nil if
// the object does not exist.
func (c *Client) Delete(ctx context.Context, resource, namespace, name string, state *metav1.ObjectMeta) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
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

// StoreError returns an error of the storage contract for a failed request to kube-apiserver, or
// nil if err is nil. doing names the operation that failed. Callers handle the errors that they
// expect before they call StoreError. Errors: *store.LimitError if the request was too large. Any
// other result wraps err. It is also store.ErrUnavailable, unless err is context.Canceled, or a
// status below 500 other than 401, 403 and 429.
func StoreError(doing string, err error) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case apierrors.IsRequestEntityTooLargeError(err):
		return &store.LimitError{Scope: store.LimitRecord, What: "bytes", Max: MaxSize}
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", doing, err)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		// An API server that is starting and has not read its roles yet also responds so.
		return fmt.Errorf("%s: %w: %w", doing, store.ErrUnavailable, err)
	case errors.As(err, &status) && status.Status().Code < 500 && !apierrors.IsTooManyRequests(err):
		return fmt.Errorf("%s: %w", doing, err)
	default:
		return fmt.Errorf("%s: %w: %w", doing, store.ErrUnavailable, err)
	}
}
