package webhookstore

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/store"
)

func TestErrors(t *testing.T) {
	resource := schema.GroupResource{Group: "paddock.health", Resource: "webhooks"}
	var (
		conflict *store.PreconditionError
		errs     fielderror.Errors
	)
	is := func(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }
	as := func(target any) func(error) bool { return func(err error) bool { return errors.As(err, target) } }
	for name, test := range map[string]struct {
		doing string
		err   error
		want  func(error) bool
	}{
		"not there":              {"read", apierrors.NewNotFound(resource, "x"), is(store.ErrNotFound)},
		"no namespace":           {operationCreate, apierrors.NewNotFound(resource, "x"), is(store.ErrUnavailable)},
		"there already":          {operationCreate, apierrors.NewAlreadyExists(resource, "x"), as(&conflict)},
		"changed meanwhile":      {"update", apierrors.NewConflict(resource, "x", nil), as(&conflict)},
		"invalid":                {"update", apierrors.NewInvalid(schema.GroupKind{Kind: "Webhook"}, "x", nil), as(&errs)},
		"too many":               {operationCreate, apierrors.NewForbidden(resource, "x", errors.New("exceeded quota: q")), as(&errs)},
		"not allowed":            {operationCreate, apierrors.NewForbidden(resource, "x", errors.New("no")), is(store.ErrUnavailable)},
		"away":                   {"list", errors.New("connection refused"), is(store.ErrUnavailable)},
		"asked too much":         {"list", apierrors.NewTooManyRequests("wait", 1), is(store.ErrUnavailable)},
		"the client gave up":     {"list", context.Canceled, is(context.Canceled)},
		"it took too long":       {"list", context.DeadlineExceeded, is(context.DeadlineExceeded)},
		"nothing, when all went": {"list", nil, func(err error) bool { return err == nil }},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Resources{kind: webhooks}
			if got := r.errorOf(test.doing, test.err); !test.want(got) {
				t.Errorf("%v became %v", test.err, got)
			}
		})
	}
}

func TestSameSpec(t *testing.T) {
	event := func(raw string) *v1alpha1.WebhookEvent {
		return &v1alpha1.WebhookEvent{Spec: v1alpha1.WebhookEventSpec{EventType: "user.created", Extensions: &runtime.RawExtension{Raw: []byte(raw)}}}
	}
	for name, test := range map[string]struct {
		one, other string
		want       bool
	}{
		"the same":     {`{"a":1}`, `{"a":1}`, true},
		"other spaces": {`{"a":1}`, `{ "a" : 1 }`, true},
		"other order":  {`{"a":1,"b":"<"}`, `{"b":"\u003c","a":1}`, true},
		"other values": {`{"a":1}`, `{"a":2}`, false},
		"null":         {`{"a":null}`, `{}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			one, other := event(test.one), event(test.other)
			other.Status.Webhooks = 5
			got, err := sameSpec(one, other)
			if err != nil || got != test.want {
				t.Errorf("sameSpec = %t, %v", got, err)
			}
		})
	}
}
