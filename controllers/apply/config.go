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

// AppliedAnnotation is a hash of what was applied last. A field that is applied no more looks
// like one that others added: the hash tells that what was applied had more than is wanted.
const AppliedAnnotation = "paddock.health/applied"

// Config is an object as it is applied: what was rendered, and no more.
func Config(obj client.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("convert %T: %w", obj, err)
	}
	delete(content, "status")
	dropNull(content)
	return &unstructured.Unstructured{Object: content}, nil
}

// Hashed is Config with its hash, so that Covers tells it from what was applied before.
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

// Covers reports whether an object that is there has all that a config asks for. What
// others added, the API server first, is theirs.
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

// Same reports whether an object is as a config asks, with nothing added to its spec. It is
// for specs whose every default the config has.
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
		is, _ := live.(map[string]any) // nothing there is as good as nothing in it
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

// dropNull removes fields that the converter wrote for Go's sake, such as the creation time
// of a Pod template.
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
