package webhookstore

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

const created = "user.created"

func metadata(name, uid, version string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "oak", Name: name, UID: types.UID(uid), ResourceVersion: version}
}

func hook(name, uid, version string, active bool) *v1alpha1.Webhook {
	return &v1alpha1.Webhook{ObjectMeta: metadata(name, uid, version), Spec: v1alpha1.WebhookSpec{EventType: created, Active: &active}}
}

func toggle(name, uid, version string, enabled bool) *v1alpha1.WebhookEvent {
	return &v1alpha1.WebhookEvent{ObjectMeta: metadata(name, uid, version), Spec: v1alpha1.WebhookEventSpec{EventType: created, Enabled: &enabled}}
}

func TestTargets(t *testing.T) {
	deleted := hook("a", "1", "12", true)
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	other := hook("a", "1", "12", true)
	other.Spec.EventType = "user.updated"
	elsewhere := hook("a", "3", "12", true)
	elsewhere.Namespace = "elm"
	on := func(t *targets) { t.put(toggle("e", "9", "1", true), true) }
	for name, test := range map[string]struct {
		steps []func(*targets)
		want  []string
	}{
		"nothing":                          {nil, nil},
		"a webhook, its type off":          {[]func(*targets){func(t *targets) { t.put(hook("a", "1", "10", true), true) }}, nil},
		"its type on":                      {[]func(*targets){on, func(t *targets) { t.put(hook("a", "1", "10", true), true) }}, []string{"a"}},
		"its type on later":                {[]func(*targets){func(t *targets) { t.put(hook("a", "1", "10", true), true) }, on}, []string{"a"}},
		"on by one of two":                 {[]func(*targets){func(t *targets) { t.put(toggle("f", "8", "1", false), true) }, on, func(t *targets) { t.put(hook("a", "1", "10", true), true) }}, []string{"a"}},
		"two webhooks":                     {[]func(*targets){on, func(t *targets) { t.put(hook("b", "2", "10", true), true) }, func(t *targets) { t.put(hook("a", "1", "11", true), true) }}, []string{"a", "b"}},
		"an inactive one":                  {[]func(*targets){on, func(t *targets) { t.put(hook("a", "1", "10", false), true) }}, nil},
		"one of another namespace":         {[]func(*targets){on, func(t *targets) { t.put(elsewhere, true) }}, nil},
		"one that is being deleted":        {[]func(*targets){on, func(t *targets) { t.put(hook("a", "1", "10", true), true) }, func(t *targets) { t.put(deleted, true) }}, nil},
		"one of another type since":        {[]func(*targets){on, func(t *targets) { t.put(hook("a", "1", "10", true), true) }, func(t *targets) { t.put(other, true) }}, nil},
		"the type switched off":            {[]func(*targets){on, func(t *targets) { t.put(hook("a", "1", "10", true), true) }, func(t *targets) { t.put(toggle("e", "9", "2", false), true) }}, nil},
		"the switch is gone":               {[]func(*targets){on, func(t *targets) { t.put(hook("a", "1", "10", true), true) }, func(t *targets) { t.drop(toggle("e", "9", "1", true), true) }}, nil},
		"an old state comes late":          {[]func(*targets){on, func(t *targets) { t.put(hook("a", "1", "10", false), true) }, func(t *targets) { t.put(hook("a", "1", "9", true), true) }}, nil},
		"an old state after a long number": {[]func(*targets){on, func(t *targets) { t.put(hook("a", "1", "10", true), true) }, func(t *targets) { t.put(hook("a", "1", "9", false), true) }}, []string{"a"}},
		"a state after our deletion":       {[]func(*targets){on, func(t *targets) { t.put(hook("a", "1", "10", true), true) }, func(t *targets) { t.drop(hook("a", "1", "10", true), false) }, func(t *targets) { t.put(hook("a", "1", "10", true), true) }}, nil},
		"our write before the watch":       {[]func(*targets){on, func(t *targets) { t.put(hook("b", "2", "9", true), true) }, func(t *targets) { t.put(hook("a", "1", "10", true), false) }}, []string{"a", "b"}},
		"our first write of all":           {[]func(*targets){on, func(t *targets) { t.put(hook("a", "1", "10", true), false) }}, []string{"a"}},
		"our creation, deleted already":    {[]func(*targets){on, func(t *targets) { t.put(hook("a", "1", "10", true), true) }, func(t *targets) { t.drop(hook("a", "1", "11", true), true) }, func(t *targets) { t.put(hook("a", "1", "10", true), false) }}, nil},
		"our update, deleted already":      {[]func(*targets){on, func(t *targets) { t.put(hook("a", "1", "10", true), true) }, func(t *targets) { t.drop(hook("a", "1", "12", true), true) }, func(t *targets) { t.put(hook("a", "1", "11", true), false) }}, nil},
		"the same name after our deletion": {[]func(*targets){on, func(t *targets) { t.put(hook("a", "1", "10", true), true) }, func(t *targets) { t.drop(hook("a", "1", "10", true), false) }, func(t *targets) { t.put(hook("a", "2", "12", true), true) }, func(t *targets) { t.drop(hook("a", "1", "11", true), true) }}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			known := newTargets()
			for _, step := range test.steps {
				step(known)
			}
			var want []string
			for _, name := range test.want {
				want = append(want, v1alpha1.ResourceID(webhooks.resource, "oak", name))
			}
			slices.Sort(want)
			if got := known.of("oak", created); !slices.Equal(got, want) {
				t.Errorf("the targets are %v, want %v", got, want)
			}
		})
	}
}

// TestTargetsForget everything about objects that are gone.
func TestTargetsForget(t *testing.T) {
	known := newTargets()
	known.put(toggle("e", "9", "1", true), true)
	known.put(hook("a", "1", "10", true), true)
	known.drop(hook("a", "1", "10", true), false)
	known.drop(hook("a", "1", "11", true), true)
	known.drop(toggle("e", "9", "1", true), true)
	known.drop(toggle("e", "9", "1", true), false) // the answer comes after the watch
	if len(known.known)+len(known.gone)+len(known.byType) != 0 {
		t.Errorf("%+v is left", known)
	}
}
