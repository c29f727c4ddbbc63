package v1alpha1

import (
	"bytes"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ChangedAnnotation tells when the spec of an object got its generation: the generation,
// a space and a time. Who writes through the AHDS API sets it with the spec; after other
// writes the controller does.
const ChangedAnnotation = "paddock.health/changed"

const changedLayout = "2006-01-02T15:04:05.000Z07:00"

// Changed is the value of ChangedAnnotation for a generation.
func Changed(generation int64, at time.Time) string {
	return fmt.Sprintf("%d %s", generation, at.UTC().Format(changedLayout))
}

// ChangedAt is when the object's spec got the generation it has, and whether the object
// says so itself. One that was never changed needs not: it says when it was created.
func ChangedAt(object metav1.Object) (at time.Time, recorded bool) {
	created := object.GetCreationTimestamp().Time
	if object.GetGeneration() <= 1 {
		return created, true
	}
	generation, last, ok := parseChanged(object.GetAnnotations()[ChangedAnnotation])
	if !ok || last.Before(created) { // of another object, from which this one was copied
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

// writtenSpec is when an owner of fields of the spec last wrote, zero for others.
func writtenSpec(entry metav1.ManagedFieldsEntry) time.Time {
	if entry.Subresource != "" || entry.Time == nil || entry.FieldsV1 == nil || !bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:spec"`)) {
		return time.Time{}
	}
	return entry.Time.Time
}
