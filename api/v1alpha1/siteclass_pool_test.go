package v1alpha1

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

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

func TestTemplateNumber(t *testing.T) {
	for name, want := range map[string]int{"auto-1": 1, "auto-12": 12, "auto-0": 0, "auto-01": 0, "auto--1": 0, "auto-": 0, "auto": 0, "1": 0, "auto-1x": 0, "auto-99999999999999999999": 0} {
		if number, ok := TemplateNumber(name); ok != (want > 0) || ok && number != want {
			t.Errorf("TemplateNumber(%q) = %d, %t, want %d", name, number, ok, want)
		}
	}
}

// templateClass returns a class whose pool has a template for two databases with two places each.
func templateClass(statuses ...PoolDatabaseStatus) *SiteClass {
	class := &SiteClass{ObjectMeta: metav1.ObjectMeta{Name: "grown"}, Status: SiteClassStatus{Databases: statuses}}
	class.Spec.Storage = &ClassStorage{Type: StoragePostgres, Postgres: &ClassPostgres{Pool: &PostgresPool{
		Template: &PoolTemplate{Capacity: ptr.To[int32](2), MaxDatabases: ptr.To[int32](2), Region: "east"},
	}}}
	return class
}

func TestRoomForByTemplate(t *testing.T) {
	status := func(name string, sites int32, phase PoolDatabasePhase) PoolDatabaseStatus {
		return PoolDatabaseStatus{Name: name, Sites: sites, Phase: phase}
	}
	claims := []SiteClaim{
		{Spec: SiteClaimSpec{Placement: &Placement{"grown", "auto-1"}}},
		{Spec: SiteClaimSpec{Placement: &Placement{"grown", "auto-1"}}},
		{Spec: SiteClaimSpec{Placement: &Placement{"grown", "auto-2"}}},
	}
	ready, creating, down := PoolDatabaseReady, PoolDatabaseCreating, PoolDatabaseUnavailable
	tests := map[string]struct {
		class   *SiteClass
		region  string
		claims  []SiteClaim
		want    string
		canGrow bool
	}{
		"no database yet":              {templateClass(), "", nil, "", true},
		"another region":               {templateClass(), "west", nil, "", false},
		"the region":                   {templateClass(), "east", nil, "", true},
		"one that is created":          {templateClass(status("auto-1", 0, creating)), "", nil, "", true},
		"one that is ready":            {templateClass(status("auto-1", 0, ready)), "", nil, "auto-1", true},
		"a full one":                   {templateClass(status("auto-1", 2, ready)), "", claims, "", true},
		"a full one and a ready one":   {templateClass(status("auto-1", 2, ready), status("auto-2", 1, ready)), "", claims, "auto-2", false},
		"a full one and one not ready": {templateClass(status("auto-1", 2, ready), status("auto-2", 1, down)), "", claims, "", true},
		"the maximum, all full":        {templateClass(status("auto-1", 2, ready), status("auto-2", 2, ready)), "", append(claims, claims[2]), "", false},
		"a newer claim than status":    {templateClass(status("auto-1", 0, ready)), "", claims, "", true},
		"a name that is not listed":    {templateClass(status("other", 0, ready)), "", nil, "", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if found := test.class.RoomFor(test.region, nil, test.claims); found != nil {
				got = found.Name
			}
			if got != test.want {
				t.Errorf("database %q, want %q", got, test.want)
			}
			if got := test.class.CanGrow(test.region); got != test.canGrow {
				t.Errorf("CanGrow %t, want %t", got, test.canGrow)
			}
		})
	}
	drained := templateClass(status("auto-1", 0, ready))
	drained.Template().Drain = []string{"auto-1"}
	if found := drained.RoomFor("", nil, nil); found != nil || !drained.Database("auto-1").Drain {
		t.Errorf("room in %v, which is drained", found)
	}
}
