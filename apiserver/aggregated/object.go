package aggregated

import (
	"bytes"
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	r4v1 "github.com/paddock-health/paddock/api/r4/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/jsonwalk"
	"github.com/paddock-health/paddock/apiserver/store"
)

// fill sets the fields of object from a record. Kubernetes may refuse the name for a new object,
// because a FHIR id may start with a dash or a dot.
func fill(ctx context.Context, object r4v1.Object, namespace string, record store.Record) error {
	spec, err := specOf(record.Body.JSON)
	if err != nil {
		return err
	}
	keptOf(ctx, record).put(object)
	object.SetNamespace(namespace)
	object.SetName(strings.ToLower(record.Key.ID))
	object.SetUID(types.UID(record.UID))
	object.SetGeneration(record.Version)
	object.SetResourceVersion(record.Revision)
	object.SetCreationTimestamp(metav1.NewTime(record.Created))
	object.SetSpec(spec)
	return nil
}

// specOf returns a stored body without members that other fields of the object have: its type, its
// id, and its meta if meta is empty. The server adds versionId and lastUpdated to meta only in
// responses of other APIs.
func specOf(body []byte) ([]byte, error) {
	spec := append(make([]byte, 0, len(body)), '{')
	for m, err := range jsonwalk.Members(body) {
		if err != nil {
			return nil, err
		}
		name := string(m.RawName)
		if name == `"resourceType"` || name == `"id"` || name == `"meta"` && isEmptyObject(m.Value) {
			continue
		}
		if len(spec) > 1 {
			spec = append(spec, ',')
		}
		spec = append(append(append(spec, name...), ':'), m.Value...)
	}
	return append(spec, '}'), nil
}

func isEmptyObject(value []byte) bool {
	return value[0] == '{' && len(bytes.TrimSpace(value[1:])) == 1
}
