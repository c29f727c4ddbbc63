package site

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// Fields of the storage that depend on other objects.
var (
	fieldStorage     = field.NewPath("spec", "storage")
	fieldProvisioned = fieldStorage.Child("postgres", "provisioned")
	fieldSecretRef   = fieldStorage.Child("postgres", "external", "secretRef")
)

// objection is a problem of a Site that the webhook reports when the Site is applied.
type objection struct {
	reason, message string
	// field is the path of the invalid field.
	field *field.Path
}

// objectToClaims returns why the Site would not be accepted, or nil. If passes is true, the
// objection is a warning, otherwise a denial.
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

// siteIDPath returns the path of the field that determines the siteID.
func siteIDPath(site *v1alpha1.Site) *field.Path {
	if site.Spec.SiteID == "" {
		return field.NewPath("metadata", "name")
	}
	return field.NewPath("spec", "siteID")
}

// objectToData returns why the Site cannot use the existing database, or nil. If passes is true,
// the objection is a warning, otherwise a denial. Another major version is a denial. Other problems
// are warnings, because they can end later: for example, the SiteClaim with the site key of the data
// may be restored.
func objectToData(bad *verdict) (o *objection, passes bool) {
	if bad == nil {
		return nil, false
	}
	if bad.reason == v1alpha1.ReasonMajorUpgrade {
		return &objection{bad.reason, bad.message, fieldProvisioned.Child("version")}, false
	}
	return &objection{bad.reason, bad.message, fieldProvisioned}, true
}

// warning returns the objection as the text of a warning.
func (o *objection) warning() string {
	return fmt.Sprintf("%s: %s: %s", o.field, o.reason, o.message)
}

// refuse returns the objection as an error with status 422. Its cause has the reason and the field.
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
