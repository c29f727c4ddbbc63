package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AppliedAnnotation is an annotation with a hash of the last applied configuration. A different
// hash shows that the configuration has changed, even if it only lost fields, which Covers would
// not detect otherwise.
const AppliedAnnotation = "paddock.health/applied"

// Config converts an object to a configuration for server-side apply, without the status and null
// fields.
func Config(obj client.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("convert %T: %w", obj, err)
	}
	delete(content, "status")
	dropNull(content)
	return &unstructured.Unstructured{Object: content}, nil
}

// Hashed returns the result of Config with AppliedAnnotation added, so that Covers detects removed
// fields.
func Hashed(obj client.Object) (*unstructured.Unstructured, error) {
	config, err := Config(obj)
	if err != nil {
		return nil, err
	}
	rendered, err := json.Marshal(config.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", obj, err)
	}
	annotations := config.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	sum := sha256.Sum256(rendered)
	annotations[AppliedAnnotation] = hex.EncodeToString(sum[:8])
	config.SetAnnotations(annotations)
	return config, nil
}

// Covers reports whether a live object has all fields of the configuration with the same values. It
// ignores fields that kube-apiserver or other clients added.
func Covers(live client.Object, config *unstructured.Unstructured) (bool, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return false, fmt.Errorf("convert %T: %w", live, err)
	}
	for field, want := range config.Object {
		if field != "apiVersion" && field != "kind" && !covers(content[field], want) {
			return false, nil
		}
	}
	return true, nil
}

// Same reports whether a live object has all fields of the configuration, as Covers does, and its spec
// has no additional fields. The configuration must have all fields of the spec that kube-apiserver sets
// by default.
func Same(live client.Object, config *unstructured.Unstructured) (bool, error) {
	covered, err := Covers(live, config)
	if !covered || err != nil {
		return false, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return false, fmt.Errorf("convert %T: %w", live, err)
	}
	return reflect.DeepEqual(content["spec"], config.Object["spec"]), nil
}

func covers(live, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		is, _ := live.(map[string]any) // a missing object equals an empty one
		for name, value := range want {
			if !covers(is[name], value) {
				return false
			}
		}
		return true
	case []any:
		is, _ := live.([]any)
		if len(is) != len(want) {
			return false
		}
		for i := range want {
			if !covers(is[i], want[i]) {
				return false
			}
		}
		return true
	default:
		return live == want
	}
}

// dropNull removes null fields, which the converter adds for zero Go values such as
// creationTimestamp.
func dropNull(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			if field == nil {
				delete(value, name)
			} else {
				dropNull(field)
			}
		}
	case []any:
		for _, item := range value {
			dropNull(item)
		}
	}
}
