package webhookstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/ahds/webhook"
	"github.com/paddock-health/paddock/apiserver/store"
)

// serviceDataAnnotation is the annotation with the ServiceData of a webhook.Resource.
const serviceDataAnnotation = "paddock.health/ahds"

// Create implements ahds.ResourceStore. The secret is always empty, because only Webhooks have a
// secret.
func (r *Resources) Create(ctx context.Context, resource webhook.Resource) (made webhook.Resource, secret string, err error) {
	made, err = r.create(ctx, resource, func(client.Object) error { return nil })
	return made, "", err
}

// create creates an object after prepare has completed it.
func (r *Resources) create(ctx context.Context, resource webhook.Resource, prepare func(client.Object) error) (webhook.Resource, error) {
	switch _, err := r.find(ctx, resource.ID); { // an object with another name can have the id
	case err == nil:
		return webhook.Resource{}, &store.PreconditionError{Key: store.Key{Type: r.kind.resource, ID: resource.ID}}
	case !errors.Is(err, store.ErrNotFound):
		return webhook.Resource{}, err
	}
	object := r.kind.object()
	object.SetNamespace(r.namespace)
	object.SetName(strings.ToLower(resource.ID))
	if err := r.kind.write(resource.Content, object); err != nil {
		return webhook.Resource{}, err
	}
	annotate(object, serviceDataAnnotation, resource.ServiceData)
	if err := prepare(object); err != nil {
		return webhook.Resource{}, err
	}
	if err := r.client.objects.Create(ctx, object, fieldOwner); err != nil {
		return webhook.Resource{}, r.errorOf(operationCreate, err)
	}
	r.client.targets.put(object, false)
	return r.resource(object)
}

// Change implements ahds.ResourceStore.
func (r *Resources) Change(ctx context.Context, id string, edit func(webhook.Resource) (webhook.Resource, error)) (webhook.Resource, error) {
	object, err := r.change(ctx, id, func(object client.Object) error {
		before, err := r.resource(object)
		if err != nil {
			return err
		}
		after, err := edit(before)
		if err != nil {
			return err
		}
		if after.ServiceData != before.ServiceData {
			annotate(object, serviceDataAnnotation, after.ServiceData)
		}
		if after.Enable {
			r.enable(object)
		}
		if after.Content.Equal(before.Content) {
			return nil
		}
		return r.kind.write(after.Content, object)
	})
	if err != nil {
		return webhook.Resource{}, err
	}
	return r.resource(object)
}

// enable sets the annotation that enables a Webhook that the server disabled. The annotation has a
// time after that of the disabling.
func (r *Resources) enable(object client.Object) {
	hook, ok := object.(*v1alpha1.Webhook)
	if !ok || !hook.IsDisabled() {
		return
	}
	at, disabled := r.client.now(), disabledAt(hook)
	if !at.After(disabled) {
		at = disabled.Add(time.Millisecond)
	}
	annotate(hook, v1alpha1.EnabledAtAnnotation, schema.Stamp(at))
}

// change edits an object and writes it unless it is unchanged. It retries after a conflict with
// another write. If the spec changes, it sets the annotation with the time of the change.
func (r *Resources) change(ctx context.Context, id string, edit func(client.Object) error) (client.Object, error) {
	for {
		before, err := r.find(ctx, id)
		if err != nil {
			return nil, err
		}
		after, ok := before.DeepCopyObject().(client.Object)
		if !ok {
			return nil, wrongType(before)
		}
		if err := edit(after); err != nil {
			return nil, err
		}
		same, err := sameSpec(before, after)
		if err != nil {
			return nil, err
		}
		switch {
		case !same:
			annotate(after, v1alpha1.ChangedAnnotation, v1alpha1.Changed(before.GetGeneration()+1, r.nextTime(before)))
		case equality.Semantic.DeepEqual(before.GetAnnotations(), after.GetAnnotations()):
			return before, nil
		}
		err = r.errorOf("update", r.client.objects.Update(ctx, after, fieldOwner))
		if err == nil {
			r.client.targets.put(after, false)
			return after, nil
		}
		if conflict := new(store.PreconditionError); !errors.As(err, &conflict) {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// nextTime returns the current time, or a time just after the last change if that is later.
func (r *Resources) nextTime(object client.Object) time.Time {
	last, _ := v1alpha1.ChangedAt(object)
	if now := r.client.now(); now.After(last.Add(time.Millisecond)) {
		return now
	}
	return last.Add(time.Millisecond)
}

// sameSpec reports whether two objects have the same spec, as the API server compares them.
func sameSpec(one, other client.Object) (bool, error) {
	var specs [2]any
	for i, object := range []client.Object{one, other} {
		text, err := json.Marshal(object)
		if err != nil {
			return false, fmt.Errorf("encode %s/%s: %w", object.GetNamespace(), object.GetName(), err)
		}
		var fields map[string]any
		if err := utiljson.Unmarshal(text, &fields); err != nil {
			return false, fmt.Errorf("decode %s/%s: %w", object.GetNamespace(), object.GetName(), err)
		}
		specs[i] = fields["spec"]
	}
	return equality.Semantic.DeepEqual(specs[0], specs[1]), nil
}

// Delete implements ahds.ResourceStore.
func (r *Resources) Delete(ctx context.Context, id string, check func(webhook.Resource) error) error {
	for {
		object, err := r.find(ctx, id)
		if err != nil {
			return err
		}
		resource, err := r.resource(object)
		if err == nil {
			err = check(resource)
		}
		if err != nil {
			return err
		}
		uid, version := object.GetUID(), object.GetResourceVersion()
		err = r.errorOf("delete", r.client.objects.Delete(ctx, object, client.Preconditions(metav1.Preconditions{UID: &uid, ResourceVersion: &version})))
		if err == nil {
			r.client.targets.drop(object, false)
		}
		if conflict := new(store.PreconditionError); !errors.As(err, &conflict) || ctx.Err() != nil {
			return err
		}
	}
}

func annotate(object client.Object, name, value string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	object.SetAnnotations(annotations)
}
