package announce

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cacheTimeout limits the wait for the cache of Namespaces, which is filled when the process starts.
const cacheTimeout = time.Second

// recorder drops Events in namespaces that are being deleted.
type recorder struct {
	events.EventRecorder
	namespaces client.Reader
}

// NewRecorder returns an EventRecorder that drops Events about objects of namespaces that are being deleted.
// kube-apiserver refuses them, and the client would log an error for each Event. namespaces is a cache of the
// metadata of Namespaces.
func NewRecorder(next events.EventRecorder, namespaces client.Reader) events.EventRecorder {
	return recorder{next, namespaces}
}

// Eventf implements events.EventRecorder.
func (r recorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	if !r.terminating(regarding) {
		r.EventRecorder.Eventf(regarding, related, eventtype, reason, action, note, args...)
	}
}

// terminating reports whether the namespace of an object is being deleted. It returns false
// if the namespace cannot be read.
func (r recorder) terminating(regarding runtime.Object) bool {
	object, err := meta.Accessor(regarding)
	if err != nil || object.GetNamespace() == "" {
		return false
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	ctx, cancel := context.WithTimeout(context.Background(), cacheTimeout)
	defer cancel()
	err = r.namespaces.Get(ctx, client.ObjectKey{Name: object.GetNamespace()}, namespace)
	return err == nil && namespace.DeletionTimestamp != nil
}
