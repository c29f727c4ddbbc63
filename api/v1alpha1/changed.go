package v1alpha1

import (
	"bytes"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ChangedAnnotation records when the spec of an object was changed: the generation, a space, and a
// time. The AHDS API sets the annotation in the request that changes the spec. After changes by other
// writers the controller sets it.
const ChangedAnnotation = "paddock.health/changed"

const changedLayout = "2006-01-02T15:04:05.000Z07:00"

// Changed returns the value of ChangedAnnotation for a generation of an object whose spec was changed
// at a time.
func Changed(generation int64, at time.Time) string {
	return fmt.Sprintf("%d %s", generation, at.UTC().Format(changedLayout))
}

// ChangedAt returns when the spec of the object last changed. recorded reports whether the time is
// exact: it is in ChangedAnnotation, or in creationTimestamp if the spec never changed. Otherwise
// the time is an estimate from managedFields.
func ChangedAt(object metav1.Object) (at time.Time, recorded bool) {
	created := object.GetCreationTimestamp().Time
	if object.GetGeneration() <= 1 {
		return created, true
	}
	generation, last, ok := parseChanged(object.GetAnnotations()[ChangedAnnotation])
	if !ok || last.Before(created) { // the annotation was copied from another object
		last = created
	} else if generation == object.GetGeneration() {
		return last, true
	}
	at = last.Add(time.Millisecond)
	for _, entry := range object.GetManagedFields() {
		if written := writtenSpec(entry); written.After(at) {
			at = written
		}
	}
	return at, false
}

func parseChanged(value string) (generation int64, at time.Time, ok bool) {
	var text string
	if _, err := fmt.Sscanf(value, "%d %s", &generation, &text); err != nil {
		return 0, time.Time{}, false
	}
	at, err := time.Parse(changedLayout, text)
	return generation, at, err == nil
}

// writtenSpec returns the time of a managedFields entry that owns fields of the spec, and zero for
// other entries.
func writtenSpec(entry metav1.ManagedFieldsEntry) time.Time {
	if entry.Subresource != "" || entry.Time == nil || entry.FieldsV1 == nil || !bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:spec"`)) {
		return time.Time{}
	}
	return entry.Time.Time
}
