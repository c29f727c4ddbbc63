package aggregated

import (
	"errors"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/paddock-health/paddock/apiserver/fhir/integrity"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// fieldErrors tells what is wrong with a resource in the terms of Kubernetes.
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

// danglingErrors tells which elements refer to what is not there.
func danglingErrors(dangling *integrity.DanglingError) field.ErrorList {
	var errs field.ErrorList
	for _, reference := range dangling.References {
		errs = append(errs, &field.Error{
			Type: field.ErrorTypeNotFound, Field: fieldOf(reference.Expression), BadValue: field.OmitValueType{}, Detail: reference.Problem(),
		})
	}
	return errs
}

// ofType is how FHIRPath asks for one type of a choice of types.
var ofType = regexp.MustCompile(`\.ofType\((\w)(\w*)\)`)

// fieldOf is the path of an element in the object, given its FHIRPath: Patient.name[0] is
// spec.name[0], and Patient.deceased.ofType(boolean) is spec.deceasedBoolean.
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
