package v1alpha1_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

func TestChangedAt(t *testing.T) {
	created := time.Date(2031, 3, 1, 9, 0, 0, 0, time.UTC)
	after := created.Add
	written := func(at time.Time, fields, subresource string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Time: &metav1.Time{Time: at}, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	for name, test := range map[string]struct {
		generation int64
		annotation string
		fields     []metav1.ManagedFieldsEntry
		want       time.Time
		recorded   bool
	}{
		"new":                          {1, "", nil, created, true},
		"new, copied from another one": {1, v1alpha1.Changed(1, after(-time.Hour)), nil, created, true},
		"changed and recorded":         {3, v1alpha1.Changed(3, after(1500*time.Millisecond)), nil, after(1500 * time.Millisecond), true},
		"changed by kubectl": {
			3, v1alpha1.Changed(2, after(time.Second)),
			[]metav1.ManagedFieldsEntry{written(after(5*time.Second), `{"f:spec":{"f:enabled":{}}}`, ""), written(after(3*time.Second), `{"f:spec":{}}`, "")},
			after(5 * time.Second), false,
		},
		"changed by kubectl within the second": {
			3, v1alpha1.Changed(2, after(1500*time.Millisecond)),
			[]metav1.ManagedFieldsEntry{written(after(time.Second), `{"f:spec":{}}`, "")},
			after(1501 * time.Millisecond), false,
		},
		"status and metadata do not count": {
			2, "",
			[]metav1.ManagedFieldsEntry{written(after(5*time.Second), `{"f:status":{}}`, "status"), written(after(6*time.Second), `{"f:metadata":{}}`, "")},
			after(time.Millisecond), false,
		},
		"a record of another object": {2, v1alpha1.Changed(2, after(-time.Hour)), nil, after(time.Millisecond), false},
		"no record":                  {2, "2 yesterday", nil, after(time.Millisecond), false},
	} {
		t.Run(name, func(t *testing.T) {
			object := &v1alpha1.WebhookEvent{ObjectMeta: metav1.ObjectMeta{Generation: test.generation, CreationTimestamp: metav1.NewTime(created), ManagedFields: test.fields}}
			if test.annotation != "" {
				object.Annotations = map[string]string{v1alpha1.ChangedAnnotation: test.annotation}
			}
			got, recorded := v1alpha1.ChangedAt(object)
			if !got.Equal(test.want) || recorded != test.recorded {
				t.Errorf("ChangedAt = %v, %t; want %v, %t", got, recorded, test.want, test.recorded)
			}
		})
	}
}
