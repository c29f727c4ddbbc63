package aggregated

import (
	"context"
	"regexp"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"

	r4v1 "github.com/paddock-health/paddock/api/r4/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// strategy validates one object to be written, and sets the body of its record.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	kind r4v1.Kind
	// bases are the base URLs of the Site's FHIR API.
	bases []string
	// named reports whether a new object may have its current name: the Site lets clients choose
	// ids, or the server generated the name.
	named bool
	// current is the stored record, nil if there is none.
	current *store.Record
	// body is the body to store, set by validation.
	body store.Body
}

var (
	_ rest.RESTCreateStrategy = (*strategy)(nil)
	_ rest.RESTUpdateStrategy = (*strategy)(nil)
)

func (s *strategy) NamespaceScoped() bool                         { return true }
func (s *strategy) AllowCreateOnUpdate(context.Context) bool      { return false }
func (s *strategy) AllowUnconditionalUpdate(context.Context) bool { return true }

// PrepareForCreate implements rest.RESTCreateStrategy.
func (s *strategy) PrepareForCreate(_ context.Context, object runtime.Object) {
	object.(r4v1.Object).SetGeneration(1)
}

// PrepareForUpdate implements rest.RESTUpdateStrategy.
func (s *strategy) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}

// Canonicalize implements rest.RESTCreateStrategy and rest.RESTUpdateStrategy.
func (s *strategy) Canonicalize(runtime.Object) {}

// WarningsOnCreate implements rest.RESTCreateStrategy.
func (s *strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate implements rest.RESTUpdateStrategy.
func (s *strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// namePattern is the pattern of FHIR ids in lower case.
var namePattern = regexp.MustCompile(`^[a-z0-9\-.]{1,64}$`)

// Validate implements rest.RESTCreateStrategy.
func (s *strategy) Validate(_ context.Context, object runtime.Object) field.ErrorList {
	sent := object.(r4v1.Object)
	path, name := field.NewPath("metadata").Child("name"), sent.GetName()
	errs := notServed(sent)
	switch {
	case name == "":
		return append(errs, field.Required(path, "name or generateName is required"))
	case !namePattern.MatchString(name) || name == "." || name == "..":
		return append(errs, field.Invalid(path, name, "the name must be a FHIR id in lower case, "+r4.IDPattern+", and neither . nor .."))
	case !s.named:
		errs = append(errs, field.Forbidden(path, "the site of this namespace chooses ids itself (spec.fhir.updateCreate is false); create the object with generateName and without a name"))
	}
	return append(errs, s.read(sent)...)
}

// ValidateUpdate implements rest.RESTUpdateStrategy.
func (s *strategy) ValidateUpdate(_ context.Context, object, _ runtime.Object) field.ErrorList {
	sent := object.(r4v1.Object)
	return append(notServed(sent), s.read(sent)...)
}

// read sets the body. Values that equal the stored values keep the stored text. A spec that equals
// the stored spec is not validated again.
func (s *strategy) read(sent r4v1.Object) field.ErrorList {
	id := sent.GetName()
	if s.current != nil {
		id = s.current.Key.ID
		stored, err := specOf(s.current.Body.JSON)
		if err != nil {
			return field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
		}
		text, same := keepNumbers(stored, jsontext.Value(sent.GetSpec()))
		if same {
			s.body = s.current.Body
			return nil
		}
		sent.SetSpec([]byte(text))
	}
	var errs field.ErrorList
	s.body, errs = bodyOf(s.kind.Name, id, sent.GetSpec(), s.bases)
	return errs
}

// notServed refuses owner references and finalizers. Objects of this API cannot be watched, so no
// controller would process their owner references and finalizers.
func notServed(sent r4v1.Object) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("metadata")
	if len(sent.GetFinalizers()) > 0 {
		errs = append(errs, field.Forbidden(path.Child("finalizers"), "records are deleted immediately; remove the finalizers"))
	}
	if len(sent.GetOwnerReferences()) > 0 {
		errs = append(errs, field.Forbidden(path.Child("ownerReferences"), "records have no owners; remove the references"))
	}
	return errs
}
