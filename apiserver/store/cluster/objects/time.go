package objects

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ToMicro returns a time as the value of an optional field of an object. It returns nil for the zero
// time.
func ToMicro(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	m := metav1.NewMicroTime(t.UTC())
	return &m
}

// FromMicro returns the time, in UTC, in an optional field of an object. It returns the zero time for
// nil.
func FromMicro(t *metav1.MicroTime) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
