package site

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

func TestWithNewer(t *testing.T) {
	claim := func(name, version, database string) v1alpha1.SiteClaim {
		c := v1alpha1.SiteClaim{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
		if database != "" {
			c.Spec.Placement = &v1alpha1.Placement{ClassName: "shared", Database: database}
		}
		return c
	}
	tests := map[string]struct {
		cached, written []v1alpha1.SiteClaim
		upTo            string
		want            map[string]int32
	}{
		"nothing written":                    {cached: []v1alpha1.SiteClaim{claim("a", "8", "one")}, upTo: "8", want: map[string]int32{"one": 1}},
		"not in the cache yet":               {written: []v1alpha1.SiteClaim{claim("a", "9", "one")}, want: map[string]int32{"one": 1}},
		"an older version in the cache":      {cached: []v1alpha1.SiteClaim{claim("a", "9", "")}, written: []v1alpha1.SiteClaim{claim("a", "10", "one")}, upTo: "9", want: map[string]int32{"one": 1}},
		"a newer version in the cache":       {cached: []v1alpha1.SiteClaim{claim("a", "10", "two"), claim("b", "7", "one")}, written: []v1alpha1.SiteClaim{claim("a", "9", "one"), claim("b", "11", "two")}, upTo: "10", want: map[string]int32{"two": 2}},
		"deleted before the cache had it":    {written: []v1alpha1.SiteClaim{claim("a", "9", "one")}, upTo: "10", want: map[string]int32{}},
		"the last one is not in the cache":   {cached: []v1alpha1.SiteClaim{claim("a", "9", "one")}, written: []v1alpha1.SiteClaim{claim("a", "9", "one"), claim("b", "10", "one")}, upTo: "9", want: map[string]int32{"one": 2}},
		"written in another order than read": {cached: []v1alpha1.SiteClaim{claim("b", "9", "one")}, written: []v1alpha1.SiteClaim{claim("b", "10", "two"), claim("a", "9", "one")}, upTo: "9", want: map[string]int32{"one": 1, "two": 1}},
	}
	class := &v1alpha1.SiteClass{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := &placements{cached: func() string { return test.upTo }}
			for _, written := range test.written {
				p.note(written)
			}
			p.forgetCached()
			if diff := cmp.Diff(test.want, class.Placed(withNewer(test.cached, p.newer))); diff != "" {
				t.Errorf("Sites in each database (-want +got):\n%s", diff)
			}
		})
	}
}
