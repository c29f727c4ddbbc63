package aggregated

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	r4v1 "github.com/paddock-health/paddock/api/r4/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

// fill makes object show a record. The name need not be one that Kubernetes would
// take for a new object: a FHIR id may start with a dash or a dot.
func fill(object r4v1.Object, namespace string, record store.Record) error {
	spec, err := specOf(record.Body.JSON)
	if err != nil {
		return err
	}
	beside, err := keptOf(record)
	if err != nil {
		return err
	}
	beside.put(object)
	object.SetNamespace(namespace)
	object.SetName(strings.ToLower(record.Key.ID))
	object.SetUID(types.UID(record.UID))
	object.SetGeneration(record.Version)
	object.SetResourceVersion(record.Revision)
	object.SetCreationTimestamp(metav1.NewTime(record.Created))
	object.SetSpec(spec)
	return nil
}

// specOf is a stored body without what is said elsewhere in the object: its type,
// its id, and its meta where that is empty but for what the server puts in.
func specOf(body []byte) ([]byte, error) {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(body))
	if _, err := decoder.ReadToken(); err != nil {
		return nil, err
	}
	spec := append(make([]byte, 0, len(body)), '{')
	for decoder.PeekKind() != jsontext.KindEndObject {
		name, err := decoder.ReadValue()
		if err != nil {
			return nil, err
		}
		key := string(name)
		value, err := decoder.ReadValue()
		if err != nil {
			return nil, err
		}
		if key == `"resourceType"` || key == `"id"` || key == `"meta"` && isEmptyObject(value) {
			continue
		}
		if len(spec) > 1 {
			spec = append(spec, ',')
		}
		spec = append(append(append(spec, key...), ':'), value...)
	}
	return append(spec, '}'), nil
}

func isEmptyObject(value []byte) bool {
	return value[0] == '{' && len(bytes.TrimSpace(value[1:])) == 1
}
