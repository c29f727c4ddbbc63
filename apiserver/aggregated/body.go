package aggregated

import (
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// bodyOf returns the body of the record of an object: the spec, with resourceType kind and the id in
// front. It validates the body by r4.Read, as all APIs do, and refuses projections. bases are the base URLs
// of the Site's FHIR API. Errors: those of the fields of the object.
func bodyOf(kind, id string, spec json.RawMessage, bases []string) (store.Body, field.ErrorList) {
	path := field.NewPath("spec")
	text := jsontext.Value(strings.TrimSpace(string(spec)))
	if len(text) == 0 || text.Kind() == jsontext.KindNull {
		return store.Body{}, field.ErrorList{field.Required(path, "spec is the FHIR resource and is required; write {} for a resource without elements")}
	}
	if text.Kind() != jsontext.KindBeginObject {
		return store.Body{}, field.ErrorList{field.TypeInvalid(path, field.OmitValueType{}, "spec is the FHIR resource; write an object")}
	}
	if errs := notForSpec(path, text); len(errs) > 0 {
		return store.Body{}, errs
	}
	head := `{"resourceType":"` + kind + `","id":"` + id + `"`
	if rest := strings.TrimSpace(string(text[1:])); rest != "}" {
		head += ","
	}
	resource, err := r4.Read(append([]byte(head), text[1:]...), r4.Options{Type: kind, Optional: r4.OptionalInContract, Bases: bases})
	if err != nil {
		return store.Body{}, fieldErrors(err)
	}
	if r4.IsSubset(text) {
		return store.Body{}, field.ErrorList{field.Forbidden(path.Child("meta", "tag"), "the tag SUBSETTED marks a part of a record; send the whole resource, without the tag")}
	}
	return store.Body{JSON: resource.Body, IDOffset: resource.IDOffset, MetaOffset: resource.MetaOffset}, nil
}

// notForSpec refuses members of the spec whose values are in other fields of the object. If such
// members were ignored, a field manager would own fields that are not stored. notForSpec ignores
// syntax errors, which r4.Read reports.
func notForSpec(path *field.Path, spec jsontext.Value) field.ErrorList {
	var errs field.ErrorList
	all, _ := members(spec)
	for _, m := range all {
		switch m.Name {
		case "resourceType":
			errs = append(errs, field.Forbidden(path.Child("resourceType"), "kind determines the resource type; remove this field"))
		case "id":
			errs = append(errs, field.Forbidden(path.Child("id"), "the id is metadata.name; remove this field"))
		case "meta":
			if m.Value.Kind() != jsontext.KindBeginObject {
				continue
			}
			inMeta, _ := members(m.Value)
			for _, inner := range inMeta {
				switch inner.Name {
				case "versionId":
					errs = append(errs, field.Forbidden(path.Child("meta", "versionId"), "the server counts versions in metadata.generation; remove this field"))
				case "lastUpdated":
					errs = append(errs, field.Forbidden(path.Child("meta", "lastUpdated"), "the server sets this field; remove it"))
				}
			}
		}
	}
	return errs
}
