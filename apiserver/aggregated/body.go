package aggregated

import (
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// bodyOf makes the body of a record of an object's spec: the one way in for resources of
// every API is the reader of r4.
func bodyOf(kind, id string, spec json.RawMessage) (store.Body, field.ErrorList) {
	path := field.NewPath("spec")
	text := jsontext.Value(strings.TrimSpace(string(spec)))
	if len(text) == 0 || text.Kind() == jsontext.KindNull {
		return store.Body{}, field.ErrorList{field.Required(path, "it is the FHIR resource; write {} for one that says nothing")}
	}
	if text.Kind() != jsontext.KindBeginObject {
		return store.Body{}, field.ErrorList{field.TypeInvalid(path, field.OmitValueType{}, "it is the FHIR resource, an object")}
	}
	if errs := notForSpec(path, text); len(errs) > 0 {
		return store.Body{}, errs
	}
	head := `{"resourceType":"` + kind + `","id":"` + id + `"`
	if rest := strings.TrimSpace(string(text[1:])); rest != "}" {
		head += ","
	}
	resource, err := r4.Read(append([]byte(head), text[1:]...), r4.Options{Type: kind, Optional: r4.OptionalInContract})
	if err != nil {
		return store.Body{}, fieldErrors(err)
	}
	return store.Body{JSON: resource.Body, IDOffset: resource.IDOffset, MetaOffset: resource.MetaOffset}, nil
}

// notForSpec refuses what is said elsewhere in the object. To ignore it would leave it to
// a field manager that believes to own it.
func notForSpec(path *field.Path, spec jsontext.Value) field.ErrorList {
	var errs field.ErrorList
	for _, m := range members(spec) {
		switch m.key() {
		case "resourceType":
			errs = append(errs, field.Forbidden(path.Child("resourceType"), "it follows from kind"))
		case "id":
			errs = append(errs, field.Forbidden(path.Child("id"), "it is metadata.name"))
		case "meta":
			if m.value.Kind() != jsontext.KindBeginObject {
				continue
			}
			for _, inner := range members(m.value) {
				switch inner.key() {
				case "versionId":
					errs = append(errs, field.Forbidden(path.Child("meta", "versionId"), "the server counts versions: metadata.generation"))
				case "lastUpdated":
					errs = append(errs, field.Forbidden(path.Child("meta", "lastUpdated"), "the server sets it"))
				}
			}
		}
	}
	return errs
}
