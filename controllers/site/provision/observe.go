package provision

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// Objects are the objects of a provisioned database as read from the cluster. A field is nil if the
// object does not exist.
type Objects struct {
	Volume      *corev1.PersistentVolumeClaim
	StatefulSet *appsv1.StatefulSet
	Pod         *corev1.Pod
	// Cluster is the Cluster of CloudNativePG.
	Cluster *unstructured.Unstructured
}

// Data returns the object that has the data of a database with this engine: a PersistentVolumeClaim
// or a Cluster. It returns nil if there is none.
func (o Objects) Data(engine v1alpha1.PostgresEngine) client.Object {
	switch {
	case engine == v1alpha1.EngineCloudNativePG && o.Cluster != nil:
		return o.Cluster
	case engine == v1alpha1.EngineStatefulSet && o.Volume != nil:
		return o.Volume
	default:
		return nil
	}
}

// Any reports whether there is data of a database with any engine.
func (o Objects) Any() bool {
	return slices.ContainsFunc(Engines, func(engine v1alpha1.PostgresEngine) bool { return o.Data(engine) != nil })
}

// State is the state of a provisioned database. Up reports whether a connection can be attempted. If
// Up is false, Reason and Message are the reason and message of the condition StorageReady.
type State struct {
	Up              bool
	Reason, Message string
}

var up = State{Up: true}

// Observe returns the state of a Site's provisioned database. Only a connection shows whether the
// database can be used.
func Observe(site *v1alpha1.Site, o Objects) State {
	if site.Spec.Storage.Postgres.Provisioned.Engine == v1alpha1.EngineCloudNativePG {
		return observeCluster(NameOf(site), o.Cluster)
	}
	for _, look := range []func(string, Objects) (State, bool){podReady, volumeLost, noPodYet, podLeaving, podPending, containerWaiting} {
		if state, decided := look(NameOf(site), o); decided {
			return state
		}
	}
	return State{Reason: v1alpha1.ReasonUnavailable, Message: fmt.Sprintf(
		"Pod %s runs, but Postgres accepts no connections yet. It may be starting, or replaying its log after a crash. If this persists, see the log of the Pod.", o.Pod.Name)}
}

func podReady(_ string, o Objects) (State, bool) {
	return up, o.Pod != nil && o.Pod.DeletionTimestamp.IsZero() && podCondition(o.Pod, corev1.PodReady).Status == corev1.ConditionTrue
}

func volumeLost(name string, o Objects) (State, bool) {
	lost := o.Volume != nil && o.Volume.Status.Phase == corev1.ClaimLost
	return State{Reason: v1alpha1.ReasonVolumeLost, Message: fmt.Sprintf(
		"The volume of PersistentVolumeClaim %s no longer exists. Restore the volume, or delete the PersistentVolumeClaim to start with an empty database.", name)}, lost
}

func noPodYet(name string, o Objects) (State, bool) {
	if o.Pod != nil {
		return State{}, false
	}
	message := "The database is being created."
	if o.StatefulSet != nil && o.StatefulSet.Status.ObservedGeneration > 0 {
		message = fmt.Sprintf("StatefulSet %s has no Pod yet. If this persists, see its events.", name)
	}
	return State{Reason: v1alpha1.ReasonProvisioning, Message: message}, true
}

func podLeaving(_ string, o Objects) (State, bool) {
	return State{Reason: v1alpha1.ReasonProvisioning, Message: fmt.Sprintf("Pod %s is being replaced.", o.Pod.Name)},
		!o.Pod.DeletionTimestamp.IsZero()
}

func podPending(_ string, o Objects) (State, bool) {
	scheduled := podCondition(o.Pod, corev1.PodScheduled)
	return State{
		Reason:  v1alpha1.ReasonPodPending,
		Message: fmt.Sprintf("Pod %s cannot be scheduled: %s", o.Pod.Name, cmp.Or(scheduled.Message, scheduled.Reason)),
	}, scheduled.Status == corev1.ConditionFalse
}

func containerWaiting(_ string, o Objects) (State, bool) {
	for _, status := range o.Pod.Status.ContainerStatuses {
		switch waiting, last := status.State.Waiting, status.LastTerminationState.Terminated; {
		case waiting == nil:
		case waiting.Reason == "ContainerCreating":
			return State{Reason: v1alpha1.ReasonProvisioning, Message: fmt.Sprintf("Pod %s is being set up. If this persists, see its events.", o.Pod.Name)}, true
		case last != nil:
			return State{Reason: v1alpha1.ReasonUnavailable, Message: fmt.Sprintf(
				"Pod %s does not run: %s. It last ended with exit code %d and was restarted %d times. See its log.",
				o.Pod.Name, waiting.Reason, last.ExitCode, status.RestartCount)}, true
		default:
			return State{Reason: v1alpha1.ReasonUnavailable, Message: fmt.Sprintf("Pod %s does not run: %s", o.Pod.Name, join(waiting.Reason, waiting.Message))}, true
		}
	}
	started := len(o.Pod.Status.ContainerStatuses) > 0
	return State{Reason: v1alpha1.ReasonProvisioning, Message: fmt.Sprintf("Pod %s is being set up.", o.Pod.Name)}, !started
}

func observeCluster(name string, cluster *unstructured.Unstructured) State {
	if cluster == nil {
		return State{Reason: v1alpha1.ReasonProvisioning, Message: "The database is being created."}
	}
	ready, _, _ := unstructured.NestedInt64(cluster.Object, "status", "readyInstances")
	if ready > 0 {
		return up
	}
	phase, _, _ := unstructured.NestedString(cluster.Object, "status", "phase")
	why, _, _ := unstructured.NestedString(cluster.Object, "status", "phaseReason")
	primary, _, _ := unstructured.NestedString(cluster.Object, "status", "currentPrimary")
	switch {
	case phase == "":
		return State{Reason: v1alpha1.ReasonProvisioning, Message: "CloudNativePG has not processed Cluster " + name + " yet. If this persists, check that its operator runs."}
	case primary == "":
		return State{Reason: v1alpha1.ReasonProvisioning, Message: "CloudNativePG reports: " + join(phase, why)}
	default:
		return State{Reason: v1alpha1.ReasonUnavailable, Message: "No instance is ready. CloudNativePG reports: " + join(phase, why)}
	}
}

func join(reason, message string) string {
	if message == "" {
		return reason
	}
	return reason + ": " + message
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}
