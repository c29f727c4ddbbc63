package v1alpha1

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestComplete(t *testing.T) {
	class := &SiteClass{Spec: SiteClassSpec{
		Limits:    Limits{RequestsPerSecond: ptr.To[int32](10), MaxIncluded: ptr.To[int32](7)},
		Retention: &Retention{Versions: &metav1.Duration{Duration: time.Hour}},
		Privacy:   Privacy{Default: PrivacyClosed},
		Access:    ClassAccess{Issuers: []Issuer{{Name: "group"}}},
		Exposure:  &Exposure{Ingress: &IngressExposure{Host: "fhir.example.org"}},
	}}
	own := SiteSpec{
		Limits:    Limits{RequestsPerSecond: ptr.To[int32](20)},
		Retention: &Retention{Audit: &metav1.Duration{Duration: 24 * time.Hour}},
		Privacy:   Privacy{Default: PrivacyOpen},
		Access:    Access{Hidden: true, Issuers: []Issuer{{Name: "clinic"}}},
		Exposure:  &Exposure{Ingress: &IngressExposure{Host: "oak.example.org"}},
	}
	tests := map[string]struct{ site, want SiteSpec }{
		"a Site that sets nothing": {SiteSpec{}, SiteSpec{
			Limits: class.Spec.Limits, Retention: class.Spec.Retention, Privacy: class.Spec.Privacy,
			Access: Access{Issuers: class.Spec.Access.Issuers}, Exposure: class.Spec.Exposure,
		}},
		"a Site that sets all": {own, SiteSpec{
			Limits:    Limits{RequestsPerSecond: ptr.To[int32](20), MaxIncluded: ptr.To[int32](7)},
			Retention: &Retention{Audit: own.Retention.Audit, Versions: class.Spec.Retention.Versions},
			Privacy:   own.Privacy, Access: own.Access, Exposure: own.Exposure,
		}},
		"rules without a default are privacy too": {
			SiteSpec{Privacy: Privacy{Rules: []PrivacyRule{{Name: "own"}}}, Limits: class.Spec.Limits, Retention: class.Spec.Retention, Access: own.Access, Exposure: own.Exposure},
			SiteSpec{Privacy: Privacy{Rules: []PrivacyRule{{Name: "own"}}}, Limits: class.Spec.Limits, Retention: class.Spec.Retention, Access: own.Access, Exposure: own.Exposure},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			site := &Site{Spec: *test.site.DeepCopy()}
			if diff := cmp.Diff(test.want, class.Complete(site).Spec); diff != "" {
				t.Errorf("completed spec (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.site, site.Spec); diff != "" {
				t.Errorf("the Site has changed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFillUnset tests that a field that is added to these types can be unset, so that a class can
// complete it.
func TestFillUnset(t *testing.T) {
	for _, kind := range []reflect.Type{reflect.TypeFor[Limits](), reflect.TypeFor[Retention]()} {
		for i := range kind.NumField() {
			if field := kind.Field(i); field.Type.Kind() != reflect.Pointer {
				t.Errorf("%s.%s is not a pointer, so fillUnset panics", kind.Name(), field.Name)
			}
		}
	}
}
