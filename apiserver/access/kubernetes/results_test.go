package kubernetes

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestIsCurrent(t *testing.T) {
	start := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	const lost = -1
	tests := []struct {
		name string
		// changed is when an object of RBAC changed in namespace. The review began a minute after start.
		namespace string
		changed   time.Duration
		watched   int
		// answered is how long before age the last review was answered.
		age, answered time.Duration
		want          bool
	}{
		{"watched, nothing changed", "", lost, 4, 4 * time.Minute, 0, true},
		{"watched, too old", "", lost, 4, watchedRightsTTL, 0, false},
		{"not watched, young", "", lost, 0, 9 * time.Second, time.Hour, true},
		{"not watched", "", lost, 0, rightsTTL, 0, false},
		{"one resource is not watched", "", lost, 3, rightsTTL, 0, false},
		{"no recent answer, young", "", lost, 4, 9 * time.Second, time.Hour, true},
		{"no recent answer", "", lost, 4, 2 * time.Minute, answerTTL, false},
		{"an answer within the limit", "", lost, 4, 2 * time.Minute, answerTTL - 1, true},
		{"changed afterwards", "oak", 61 * time.Second, 4, 2 * time.Second, 0, false},
		{"changed at the same time", "oak", 60 * time.Second, 4, 2 * time.Second, 0, false},
		{"changed afterwards in another namespace", "elm", 61 * time.Second, 4, 4 * time.Minute, 0, true},
		{"changed afterwards in the cluster", metav1.NamespaceAll, 61 * time.Second, 4, 2 * time.Second, 0, false},
		{"changed shortly before, young", "oak", 55 * time.Second, 4, 9 * time.Second, 0, true},
		{"changed shortly before", "oak", 55 * time.Second, 4, rightsTTL, 0, false},
		{"changed shortly before in the cluster", metav1.NamespaceAll, 55 * time.Second, 4, rightsTTL, 0, false},
		{"changed long before", "oak", 50 * time.Second, 4, 4 * time.Minute, 0, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			now := start
			a := &Access{now: func() time.Time { return now }}
			a.rbac = newRBACWatch(nil, a.now)
			for _, resource := range rbacResources[:test.watched] {
				a.rbac.setWatched(resource, true)
			}
			if test.changed != lost {
				now = start.Add(test.changed)
				if err := a.rbac.changed(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: test.namespace}}); err != nil {
					t.Fatal(err)
				}
			}
			reviewed := start.Add(time.Minute)
			now = reviewed.Add(test.age)
			a.answered.Store(now.Add(-test.answered).UnixNano())
			if got := a.isCurrent("oak", reviewed, rightsTTL, watchedRightsTTL); got != test.want {
				t.Errorf("isCurrent = %t, want %t", got, test.want)
			}
		})
	}
}

// TestFailedWatch shows that changes count as known for a while after a watch has failed, but not before the
// first list.
func TestFailedWatch(t *testing.T) {
	now := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	w := newRBACWatch(nil, func() time.Time { return now })
	expect := func(want bool) {
		t.Helper()
		if _, isWatched := w.last("oak"); isWatched != want {
			t.Errorf("watched: %t, want %t", isWatched, want)
		}
	}
	w.setWatched(rbacResources[0], false)
	expect(false)
	for _, resource := range rbacResources {
		if err := (rbacResource{w, resource}).Replace(nil, ""); err != nil {
			t.Fatal(err)
		}
	}
	expect(true)
	w.setWatched(rbacResources[0], false)
	now = now.Add(answerTTL - 1)
	w.setWatched(rbacResources[0], false) // again, which is no new beginning
	expect(true)
	now = now.Add(1)
	expect(false)
	w.setWatched(rbacResources[0], true)
	expect(true)
}

// TestManyChanges shows that no change is lost when more namespaces have changed than are known.
func TestManyChanges(t *testing.T) {
	now := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	w := newRBACWatch(nil, func() time.Time { return now })
	change := func(namespace string) {
		if err := w.changed(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}); err != nil {
			t.Fatal(err)
		}
	}
	change("first")
	for n := range maxChangedNamespaces {
		now = now.Add(time.Millisecond)
		change(time.Duration(n).String())
	}
	for _, namespace := range []string{"first", "0s", "another"} {
		if changed, _ := w.last(namespace); !changed.Equal(now) {
			t.Errorf("namespace %s changed at %s, want %s", namespace, changed, now)
		}
	}
	if len(w.namespaces) >= maxChangedNamespaces {
		t.Errorf("%d namespaces are known", len(w.namespaces))
	}
}
