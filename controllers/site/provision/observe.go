package provision

import (
	"cmp"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// Objects are what there is of a database; nil: it is not there.
type Objects struct {
	Volume      *corev1.PersistentVolumeClaim
	StatefulSet *appsv1.StatefulSet
	Pod         *corev1.Pod
	// Cluster is CloudNativePG's.
	Cluster *unstructured.Unstructured
}

// Data is the object that holds the data in that engine, nil if there is none.
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

// State is how far a database is. Reason and Message say why it is not up.
type State struct {
	Up              bool
	Reason, Message string
}

var up = State{Up: true}

// Observe reads the state of a Site's database. Up means that it is worth connecting to:
// whether it can be used is found out that way.
func Observe(site *v1alpha1.Site, o Objects) State {
	if site.Spec.Storage.Postgres.Provisioned.Engine == v1alpha1.EngineCloudNativePG {
		return observeCluster(o.Cluster)
	}
	for _, look := range []func(Objects) (State, bool){podReady, volumeLost, noPodYet, podLeaving, podPending, containerWaiting} {
		if state, decided := look(o); decided {
			return state
		}
	}
	return State{Reason: v1alpha1.ReasonUnavailable, Message: fmt.Sprintf(
		"Pod %s runs, and its database takes no connections yet: it is starting, or replays its log after a crash", o.Pod.Name)}
}

func podReady(o Objects) (State, bool) {
	return up, o.Pod != nil && o.Pod.DeletionTimestamp.IsZero() && podCondition(o.Pod, corev1.PodReady).Status == corev1.ConditionTrue
}

func volumeLost(o Objects) (State, bool) {
	lost := o.Volume != nil && o.Volume.Status.Phase == corev1.ClaimLost
	return State{Reason: v1alpha1.ReasonVolumeLost, Message: fmt.Sprintf(
		"the volume of PersistentVolumeClaim %s is gone: restore it, or delete the PersistentVolumeClaim to begin with an empty database", Name)}, lost
}

func noPodYet(o Objects) (State, bool) {
	if o.Pod != nil {
		return State{}, false
	}
	message := "the database is being made"
	if o.StatefulSet != nil && o.StatefulSet.Status.ObservedGeneration > 0 {
		message = fmt.Sprintf("StatefulSet %s has no Pod yet: its events say why if that lasts", Name)
	}
	return State{Reason: v1alpha1.ReasonProvisioning, Message: message}, true
}

func podLeaving(o Objects) (State, bool) {
	return State{Reason: v1alpha1.ReasonProvisioning, Message: fmt.Sprintf("Pod %s is being replaced", o.Pod.Name)},
		!o.Pod.DeletionTimestamp.IsZero()
}

func podPending(o Objects) (State, bool) {
	scheduled := podCondition(o.Pod, corev1.PodScheduled)
	return State{
		Reason:  v1alpha1.ReasonPodPending,
		Message: fmt.Sprintf("no node takes Pod %s: %s", o.Pod.Name, cmp.Or(scheduled.Message, scheduled.Reason)),
	}, scheduled.Status == corev1.ConditionFalse
}

func containerWaiting(o Objects) (State, bool) {
	for _, status := range o.Pod.Status.ContainerStatuses {
		switch waiting, last := status.State.Waiting, status.LastTerminationState.Terminated; {
		case waiting == nil:
		case waiting.Reason == "ContainerCreating":
			return State{Reason: v1alpha1.ReasonProvisioning, Message: fmt.Sprintf("Pod %s is being set up: its events say why if that lasts", o.Pod.Name)}, true
		case last != nil:
			return State{Reason: v1alpha1.ReasonUnavailable, Message: fmt.Sprintf(
				"Pod %s does not run: %s; it ended last with exit code %d, %d restarts so far: its log says why",
				o.Pod.Name, waiting.Reason, last.ExitCode, status.RestartCount)}, true
		default:
			return State{Reason: v1alpha1.ReasonUnavailable, Message: fmt.Sprintf("Pod %s does not run: %s", o.Pod.Name, join(waiting.Reason, waiting.Message))}, true
		}
	}
	started := len(o.Pod.Status.ContainerStatuses) > 0
	return State{Reason: v1alpha1.ReasonProvisioning, Message: fmt.Sprintf("Pod %s is being set up", o.Pod.Name)}, !started
}

func observeCluster(cluster *unstructured.Unstructured) State {
	if cluster == nil {
		return State{Reason: v1alpha1.ReasonProvisioning, Message: "the database is being made"}
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
		return State{Reason: v1alpha1.ReasonProvisioning, Message: "CloudNativePG has not begun with Cluster " + Name + ": does its operator run?"}
	case primary == "":
		return State{Reason: v1alpha1.ReasonProvisioning, Message: "CloudNativePG says: " + join(phase, why)}
	default:
		return State{Reason: v1alpha1.ReasonUnavailable, Message: "no instance is ready; CloudNativePG says: " + join(phase, why)}
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
