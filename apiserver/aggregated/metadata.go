package aggregated

import (
	"context"
	"encoding/json"
	"log/slog"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"

	r4v1 "github.com/paddock-health/paddock/api/r4/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

// maxMetadata is the maximum size in bytes of the metadata stored with a record. Larger metadata is
// refused. The API machinery limits annotations to half of maxMetadata, but neither labels nor
// managed fields. etcd limits the size of records, and Postgres does not.
const maxMetadata = 512 << 10

// kept is the metadata of an object that cannot be derived from its record. It is stored with the
// record. The FHIR and AHDS APIs do not show or change it. Exports in the native format include it.
type kept struct {
	GenerateName  string                      `json:"generateName,omitempty"`
	Labels        map[string]string           `json:"labels,omitempty"`
	Annotations   map[string]string           `json:"annotations,omitempty"`
	ManagedFields []metav1.ManagedFieldsEntry `json:"managedFields,omitempty"`
}

// keptOf returns the metadata stored with a record. An import in the native format stores any text.
// Text that is not valid metadata is logged and counts as no metadata, so that the record can still
// be read and written.
func keptOf(ctx context.Context, record store.Record) kept {
	if len(record.Metadata) == 0 {
		return kept{}
	}
	var k kept
	if err := json.Unmarshal(record.Metadata, &k); err != nil {
		slog.WarnContext(ctx, "cannot decode the metadata of a record; the record is served without it", "namespace", request.NamespaceValue(ctx), "type", record.Key.Type, "id", record.Key.ID, "error", err)
		return kept{}
	}
	return k
}

// put sets the metadata of an object.
func (k kept) put(object r4v1.Object) {
	object.SetGenerateName(k.GenerateName)
	object.SetLabels(k.Labels)
	object.SetAnnotations(k.Annotations)
	object.SetManagedFields(k.ManagedFields)
}

// toKeep returns the metadata of an object to store. It is empty, but not nil, if there is none.
func toKeep(object r4v1.Object) ([]byte, error) {
	k := kept{object.GetGenerateName(), object.GetLabels(), object.GetAnnotations(), object.GetManagedFields()}
	if k.GenerateName == "" && len(k.Labels) == 0 && len(k.Annotations) == 0 && len(k.ManagedFields) == 0 {
		return []byte{}, nil
	}
	return json.Marshal(k)
}
