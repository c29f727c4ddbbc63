package webhookstore

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// targets is a cache of the Webhooks and WebhookEvents of all namespaces. It answers which webhooks
// receive the events of a type. A watch and the writes of this process update it in any order. It
// is safe for concurrent use.
type targets struct {
	mu sync.RWMutex
	// known has the newest observed state of each object, by namespace.
	known map[string]map[objectName]state
	// gone has the objects that this process deleted, until the watch reports their deletion.
	gone map[types.UID]bool
	// watched has the newest resourceVersion that the watch reported of each kind. If a write of this
	// process has an older resourceVersion, and its object is not known, the object has been deleted.
	watched map[string]string
	// byType has the ids of the webhooks that receive events. Its slices are replaced, never modified.
	byType map[namespacedType][]string
}

// objectName identifies an object in a namespace. A Webhook and a WebhookEvent may have the same
// name.
type objectName struct{ kind, name string }

type namespacedType struct {
	namespace string
	eventType v1alpha1.EventType
}

// state is the part of an object that targets depend on.
type state struct {
	uid       types.UID
	version   string
	eventType v1alpha1.EventType
	// on is set if the Webhook is active or the WebhookEvent is enabled, and is not being deleted.
	on bool
	// id is the id of a Webhook in the AHDS API. It is empty for a WebhookEvent.
	id string
}

func newTargets() *targets {
	return &targets{
		known: map[string]map[objectName]state{}, gone: map[types.UID]bool{},
		watched: map[string]string{}, byType: map[namespacedType][]string{},
	}
}

// of returns the ids of the webhooks that receive events of a type, in ascending order. The caller
// must not modify the slice.
func (t *targets) of(namespace, eventType string) []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byType[namespacedType{namespace, v1alpha1.EventType(eventType)}]
}

// put stores the state of an object unless a newer one is known. watched is set if the watch reported
// the state. Otherwise it is the result of a write of this process.
func (t *targets) put(object client.Object, watched bool) {
	namespace := object.GetNamespace()
	name, now := describe(object)
	t.mu.Lock()
	defer t.mu.Unlock()
	if watched {
		t.reported(name.kind, now.version)
	}
	before, seen := t.known[namespace][name]
	switch {
	case t.gone[now.uid], seen && isNewer(before.version, now.version):
		return
	case !watched && !seen && isNewer(t.watched[name.kind], now.version):
		return // the object was deleted since
	}
	if t.known[namespace] == nil {
		t.known[namespace] = map[objectName]state{}
	}
	t.known[namespace][name] = now
	if seen {
		t.refresh(namespace, before.eventType)
	}
	t.refresh(namespace, now.eventType)
}

// drop removes a deleted object. watched is set if the watch reported the deletion. After that report,
// the watch reports no earlier state of the object.
func (t *targets) drop(object client.Object, watched bool) {
	namespace := object.GetNamespace()
	name, last := describe(object)
	t.mu.Lock()
	defer t.mu.Unlock()
	if watched {
		t.reported(name.kind, last.version)
		delete(t.gone, last.uid)
	}
	before, seen := t.known[namespace][name]
	if !seen || before.uid != last.uid {
		return
	}
	if !watched {
		t.gone[last.uid] = true
	}
	delete(t.known[namespace], name)
	if len(t.known[namespace]) == 0 {
		delete(t.known, namespace)
	}
	t.refresh(namespace, before.eventType)
}

// reported updates watched after the watch reported an object of a kind. The caller holds mu.
func (t *targets) reported(kind, version string) {
	if before, known := t.watched[kind]; !known || isNewer(version, before) {
		t.watched[kind] = version
	}
}

// refresh recomputes which webhooks receive events of a type. The caller holds mu.
func (t *targets) refresh(namespace string, eventType v1alpha1.EventType) {
	enabled, ids := false, []string(nil)
	for name, s := range t.known[namespace] {
		switch {
		case s.eventType != eventType || !s.on:
		case name.kind == events.resource:
			enabled = true
		default:
			ids = append(ids, s.id)
		}
	}
	key := namespacedType{namespace, eventType}
	if !enabled || len(ids) == 0 {
		delete(t.byType, key)
		return
	}
	slices.Sort(ids)
	t.byType[key] = ids
}

// isNewer reports whether one resourceVersion is newer than another. If they cannot be compared, it
// returns false.
func isNewer(one, other string) bool {
	order, err := resourceversion.CompareResourceVersion(one, other)
	return err == nil && order > 0
}

// describe returns the name and the state of an object.
func describe(object client.Object) (objectName, state) {
	name := objectName{name: object.GetName()}
	s := state{uid: object.GetUID(), version: object.GetResourceVersion()}
	is := func(flag *bool) bool { return flag != nil && *flag && object.GetDeletionTimestamp() == nil }
	switch object := object.(type) {
	case *v1alpha1.Webhook:
		name.kind, s.eventType, s.on = webhooks.resource, object.Spec.EventType, is(object.Spec.Active)
		s.id = v1alpha1.ResourceID(webhooks.resource, object.GetNamespace(), object.GetName())
	case *v1alpha1.WebhookEvent:
		name.kind, s.eventType, s.on = events.resource, object.Spec.EventType, is(object.Spec.Enabled)
	}
	return name, s
}
