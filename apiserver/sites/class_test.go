package sites

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
)

func TestOnlyClassStatus(t *testing.T) {
	class := func(uid types.UID, generation int64, sites int32) *sitesv1.SiteClass {
		return &sitesv1.SiteClass{ObjectMeta: metav1.ObjectMeta{UID: uid, Generation: generation}, Status: sitesv1.SiteClassStatus{Sites: sites}}
	}
	for name, test := range map[string]struct {
		before, after any
		want          bool
	}{
		"one more Site":       {class("a", 1, 1), class("a", 1, 2), true},
		"another spec":        {class("a", 1, 1), class("a", 2, 1), false},
		"another class":       {class("a", 1, 1), class("b", 1, 1), false},
		"a Site, not a class": {&sitesv1.Site{}, &sitesv1.Site{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := onlyClassStatus(test.before, test.after); got != test.want {
				t.Errorf("onlyClassStatus = %t, want %t", got, test.want)
			}
		})
	}
}
