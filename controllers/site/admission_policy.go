package site

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// The fields that a Site's storage depends on others by.
var (
	fieldStorage     = field.NewPath("spec", "storage")
	fieldProvisioned = fieldStorage.Child("postgres", "provisioned")
	fieldSecretRef   = fieldStorage.Child("postgres", "external", "secretRef")
)

// objection is what there is to say of a Site as it is applied.
type objection struct {
	reason, message string
	// field is at fault.
	field *field.Path
}

// objectToClaims says why the Site would not be accepted, if so. Whether it passes by itself
// tells a warning from a refusal.
func objectToClaims(v claimView) (o *objection, passes bool) {
	d, refused := refusal(v) // claim_policy.go
	if !refused {
		return nil, false
	}
	at := field.NewPath("metadata", "namespace")
	if d.reason == v1alpha1.ReasonSiteIDTaken {
		at = siteIDPath(v.site)
	}
	return &objection{d.reason, d.denial, at}, d.passes
}

// siteIDPath is where the Site's siteID comes from.
func siteIDPath(site *v1alpha1.Site) *field.Path {
	if site.Spec.SiteID == "" {
		return field.NewPath("metadata", "name")
	}
	return field.NewPath("spec", "siteID")
}

// objectToData says why the Site cannot use the database that is there, if so. Data of another
// key may be that of a SiteClaim that is yet to be restored; data of another version stays so.
func objectToData(bad *verdict) (o *objection, passes bool) {
	if bad == nil {
		return nil, false
	}
	if bad.reason == v1alpha1.ReasonMajorUpgrade {
		return &objection{bad.reason, bad.message, fieldProvisioned.Child("version")}, false
	}
	return &objection{bad.reason, bad.message, fieldProvisioned}, true
}

// warning is the objection as kubectl shows it beside the answer.
func (o *objection) warning() string {
	return fmt.Sprintf("%s: %s: %s", o.field, o.reason, o.message)
}

// refuse is the objection as an answer: programs find the reason and the field in its cause.
func (o *objection) refuse(site *v1alpha1.Site) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: o.warning(),
		Details: &metav1.StatusDetails{
			Group: v1alpha1.GroupVersion.Group, Kind: "Site", Name: site.Name,
			Causes: []metav1.StatusCause{{Type: metav1.CauseType(o.reason), Field: o.field.String(), Message: o.reason + ": " + o.message}},
		},
	}}
}
