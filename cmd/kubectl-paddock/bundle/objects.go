package bundle

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// annotationPrefix begins the names of Paddock's annotations and labels. Annotations and labels with other
// names can have any content.
const annotationPrefix = "paddock.health/"

// Site returns the object of a Site without managed fields, and with Paddock's own annotations and
// labels only, because other clients can write anything into the rest. The key sets of issuers are
// redacted, and their discovery URLs have no path and query, because these can contain secrets.
func Site(site *v1alpha1.Site) *v1alpha1.Site {
	selected := site.DeepCopy()
	selected.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Site"}
	selected.ObjectMeta = metaOf(site.ObjectMeta)
	for i := range selected.Spec.Access.Issuers {
		issuer := &selected.Spec.Access.Issuers[i]
		if issuer.JWKS != "" {
			issuer.JWKS = redacted
		}
		if issuer.DiscoveryURL != "" {
			issuer.DiscoveryURL = Origin(issuer.DiscoveryURL)
		}
	}
	return selected
}

func metaOf(from metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: from.Namespace, Name: from.Name, UID: from.UID, Generation: from.Generation, ResourceVersion: from.ResourceVersion,
		CreationTimestamp: from.CreationTimestamp, DeletionTimestamp: from.DeletionTimestamp, Finalizers: from.Finalizers,
		Annotations: own(from.Annotations), Labels: own(from.Labels),
	}
}

// own returns the entries whose names begin with annotationPrefix.
func own(from map[string]string) map[string]string {
	selected := map[string]string{}
	for name, value := range from {
		if strings.HasPrefix(name, annotationPrefix) {
			selected[name] = value
		}
	}
	return selected
}

// Webhook is the part of a Webhook that a support bundle has. It omits the path of the URL, and
// spec.fields, spec.description and spec.extensions, which can have any content.
type Webhook struct {
	Namespace string                 `json:"namespace"`
	Name      string                 `json:"name"`
	EventType v1alpha1.EventType     `json:"eventType"`
	Receiver  string                 `json:"receiver"`
	Active    *bool                  `json:"active"`
	Clearance v1alpha1.Clearance     `json:"clearance,omitempty"`
	Signing   v1alpha1.Signing       `json:"signing,omitempty"`
	Timeout   int32                  `json:"timeoutSeconds,omitempty"`
	Retry     *v1alpha1.WebhookRetry `json:"retry,omitempty"`
	Ordering  v1alpha1.Ordering      `json:"ordering,omitempty"`
	Status    v1alpha1.WebhookStatus `json:"status"`
}

// SelectWebhook returns the part of a Webhook that a support bundle has.
func SelectWebhook(hook *v1alpha1.Webhook) Webhook {
	return Webhook{
		Namespace: hook.Namespace, Name: hook.Name, EventType: hook.Spec.EventType, Receiver: Origin(hook.Spec.URL), Active: hook.Spec.Active,
		Clearance: hook.Spec.Clearance, Signing: hook.Spec.Signing, Timeout: hook.Spec.TimeoutSeconds, Retry: hook.Spec.Retry,
		Ordering: hook.Spec.Ordering, Status: hook.Status,
	}
}

// Pod is the part of a Pod that a support bundle has: its state, without environment, arguments and
// the messages of terminated containers, which can be the end of their logs.
type Pod struct {
	Namespace  string            `json:"namespace"`
	Name       string            `json:"name"`
	Component  string            `json:"component,omitempty"`
	Phase      corev1.PodPhase   `json:"phase"`
	Reason     string            `json:"reason,omitempty"`
	Node       string            `json:"node,omitempty"`
	Started    *metav1.Time      `json:"started,omitempty"`
	Conditions map[string]string `json:"conditions,omitempty"`
	Containers []Container       `json:"containers,omitempty"`
}

// Container is the state of a container in a Pod.
type Container struct {
	Name     string              `json:"name"`
	Image    string              `json:"image"`
	Ready    bool                `json:"ready"`
	Restarts int32               `json:"restarts"`
	State    string              `json:"state,omitempty"`
	LastExit string              `json:"lastExit,omitempty"`
	ExitCode *int32              `json:"lastExitCode,omitempty"`
	Limits   corev1.ResourceList `json:"limits,omitempty"`
	Requests corev1.ResourceList `json:"requests,omitempty"`
}

// SelectPod returns the part of a Pod that a support bundle has.
func SelectPod(pod *corev1.Pod) Pod {
	selected := Pod{
		Namespace: pod.Namespace, Name: pod.Name, Component: pod.Labels["app.kubernetes.io/component"], Phase: pod.Status.Phase,
		Reason: pod.Status.Reason, Node: pod.Spec.NodeName, Started: pod.Status.StartTime, Conditions: map[string]string{},
	}
	for _, condition := range pod.Status.Conditions {
		selected.Conditions[string(condition.Type)] = strings.TrimSpace(string(condition.Status) + " " + condition.Reason)
	}
	for _, container := range pod.Spec.Containers {
		c := Container{Name: container.Name, Image: container.Image, Limits: container.Resources.Limits, Requests: container.Resources.Requests}
		at := slices.IndexFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == container.Name })
		if at >= 0 {
			status := pod.Status.ContainerStatuses[at]
			c.Ready, c.Restarts, c.State = status.Ready, status.RestartCount, stateOf(status.State)
			if last := status.LastTerminationState.Terminated; last != nil {
				c.LastExit, c.ExitCode = last.Reason, &last.ExitCode
			}
		}
		selected.Containers = append(selected.Containers, c)
	}
	return selected
}

func stateOf(state corev1.ContainerState) string {
	switch {
	case state.Running != nil:
		return "Running"
	case state.Waiting != nil:
		return "Waiting " + state.Waiting.Reason
	case state.Terminated != nil:
		return "Terminated " + state.Terminated.Reason
	default:
		return ""
	}
}

// Event is the part of an Event that a support bundle has.
type Event struct {
	Namespace string      `json:"namespace"`
	Object    string      `json:"object"`
	Type      string      `json:"type"`
	Reason    string      `json:"reason"`
	Message   string      `json:"message"`
	Count     int32       `json:"count,omitempty"`
	LastSeen  metav1.Time `json:"lastSeen"`
}

// databaseNames are the names of databases that the controller provisions. All objects of a database have
// its name.
var databaseNames = []string{"paddock-postgres", "paddock-postgres-b"}

// brokenGlass is the reason of Events about callers that bypass the privacy rules of a Site. Their
// messages end with the free text that the caller gives as its reason, which can name patients.
const brokenGlass = "BrokenGlass"

// SelectEvent returns the part of an Event that a support bundle has, and whether the bundle has the
// Event. A bundle has the Events of objects of the group paddock.health (which has no records), of
// the objects of provisioned databases, and of the given Pods. The keys of pods are namespace/name.
// Events with the reason BrokenGlass have no message.
func SelectEvent(event *corev1.Event, pods map[string]bool) (Event, bool) {
	about := event.InvolvedObject
	ours := strings.HasPrefix(about.APIVersion, v1alpha1.GroupVersion.Group+"/") ||
		about.Kind == "Pod" && pods[about.Namespace+"/"+about.Name] ||
		slices.Contains(databaseNames, about.Name) && slices.Contains([]string{"StatefulSet", "PersistentVolumeClaim", "Cluster"}, about.Kind)
	if !ours {
		return Event{}, false
	}
	seen := event.LastTimestamp
	if seen.IsZero() {
		seen = metav1.NewTime(event.EventTime.Time)
	}
	message := event.Message
	if event.Reason == brokenGlass {
		message = ""
	}
	return Event{event.Namespace, about.Kind + "/" + about.Name, event.Type, event.Reason, message, event.Count, seen}, true
}

// Limits are the limits that the spec of a Site sets. Limits that are not set have their defaults.
type Limits struct {
	Namespace string                   `json:"namespace"`
	Name      string                   `json:"name"`
	Requests  v1alpha1.Limits          `json:"requests"`
	Cluster   *v1alpha1.ClusterStorage `json:"cluster,omitempty"`
	NearLimit string                   `json:"nearLimit,omitempty"`
}
