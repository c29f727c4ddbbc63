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

func TestRoomFor(t *testing.T) {
	database := func(name, region string, capacity int32, drain bool) PoolDatabase {
		return PoolDatabase{Name: name, Region: region, Capacity: &capacity, Drain: drain}
	}
	class := &SiteClass{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}
	class.Spec.Storage = &ClassStorage{Type: StoragePostgres, Postgres: &ClassPostgres{Pool: &PostgresPool{Databases: []PoolDatabase{
		database("small", "east", 2, false), database("large", "west", 5, false), database("old", "west", 100, true),
	}}}}
	placed := func(class string, databases ...string) []SiteClaim {
		var claims []SiteClaim
		for _, name := range databases {
			claims = append(claims, SiteClaim{Spec: SiteClaimSpec{Placement: &Placement{ClassName: class, Database: name}}})
		}
		return claims
	}
	moving := SiteClaim{Spec: SiteClaimSpec{Placement: &Placement{"shared", "old"}, Reserved: &Placement{"shared", "small"}}}
	tests := map[string]struct {
		region  string
		current *Placement
		claims  []SiteClaim
		want    string
	}{
		"the most room":                         {"", nil, nil, "large"},
		"the most room left":                    {"", nil, placed("shared", "large", "large", "large", "large"), "small"},
		"a region":                              {"east", nil, nil, "small"},
		"a full region":                         {"east", nil, placed("shared", "small", "small"), ""},
		"an unknown region":                     {"north", nil, nil, ""},
		"a full pool, not the drained one":      {"", nil, placed("shared", "large", "large", "large", "large", "large", "small", "small"), ""},
		"Sites of another class":                {"east", nil, placed("other", "small", "small"), "small"},
		"Sites without a pool":                  {"east", nil, make([]SiteClaim, 9), "small"},
		"more Sites than the capacity":          {"east", nil, placed("shared", "small", "small", "small"), ""},
		"another than the current one":          {"", &Placement{"shared", "large"}, placed("shared", "large"), "small"},
		"of another class than the current one": {"", &Placement{"other", "large"}, nil, "large"},
		"a place that is reserved":              {"east", nil, []SiteClaim{moving, moving}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if found := class.RoomFor(test.region, test.current, test.claims); found != nil {
				got = found.Name
			}
			if got != test.want {
				t.Errorf("database %q, want %q", got, test.want)
			}
		})
	}
}
