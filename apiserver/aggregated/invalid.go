package aggregated

import (
	"errors"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/paddock-health/paddock/apiserver/fhir/integrity"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// fieldErrors returns the field errors of Kubernetes for an invalid resource.
func fieldErrors(err error) field.ErrorList {
	var issues r4.Errors
	if !errors.As(err, &issues) {
		return field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
	}
	var errs field.ErrorList
	for _, issue := range issues {
		errs = append(errs, &field.Error{
			Type: errorType(issue), Field: fieldOf(issue.Expression), BadValue: field.OmitValueType{}, Detail: issue.Diagnostics,
		})
	}
	return errs
}

func errorType(issue r4.Issue) field.ErrorType {
	switch issue.Code {
	case r4.CodeDuplicateElement, r4.CodeDuplicateID:
		return field.ErrorTypeDuplicate
	case r4.CodeWrongKind:
		return field.ErrorTypeTypeInvalid
	}
	if issue.Type == r4.IssueRequired {
		return field.ErrorTypeRequired
	}
	return field.ErrorTypeInvalid
}

// danglingErrors returns a field error for each reference to a missing record.
func danglingErrors(dangling *integrity.DanglingError) field.ErrorList {
	var errs field.ErrorList
	for _, reference := range dangling.References {
		errs = append(errs, &field.Error{
			Type: field.ErrorTypeNotFound, Field: fieldOf(reference.Expression), BadValue: field.OmitValueType{}, Detail: reference.Problem(),
		})
	}
	return errs
}

// ofType matches FHIRPath's selection of one type of a choice of types.
var ofType = regexp.MustCompile(`\.ofType\((\w)(\w*)\)`)

// fieldOf returns the field path in the object for a FHIRPath. Patient.name[0] becomes
// spec.name[0], and Patient.deceased.ofType(boolean) becomes spec.deceasedBoolean.
func fieldOf(expression string) string {
	_, inside, below := strings.Cut(expression, ".")
	if !below {
		return "spec"
	}
	inside = ofType.ReplaceAllStringFunc(inside, func(step string) string {
		match := ofType.FindStringSubmatch(step)
		return strings.ToUpper(match[1]) + match[2]
	})
	return "spec." + strings.ReplaceAll(inside, "`", "")
}
