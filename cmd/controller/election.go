package main

import (
	"fmt"
	"os"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

// newLock returns the Lease for leader election, with an identity of this process. The Site controller compares
// the identity with that of the Lease before it places a Site.
func newLock(config *rest.Config, scheme *runtime.Scheme, namespace string) (resourcelock.Interface, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find the host name: %w", err)
	}
	identity := host + "_" + uuid.NewString()
	core, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a client for events of the leader election: %w", err)
	}
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: core.Events(namespace)})
	return resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, leaseName, resourcelock.ResourceLockConfig{
		Identity:      identity,
		EventRecorder: broadcaster.NewRecorder(scheme, corev1.EventSource{Component: identity}),
	}, config, renewDeadline)
}
