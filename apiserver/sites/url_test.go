package sites

import (
	"testing"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
)

func TestURLOf(t *testing.T) {
	asks := &sitesv1.Exposure{Ingress: &sitesv1.IngressExposure{Host: "oak.example.org"}}
	for name, test := range map[string]struct {
		asked     *sitesv1.Exposure
		url, want string
	}{
		"exposed":                       {asks, "https://oak.example.org/site/1042", "https://oak.example.org/site/1042"},
		"not looked at yet":             {asks, "", ""},
		"of another site":               {asks, "https://oak.example.org/site/1043", ""},
		"no longer exposed":             {nil, "https://oak.example.org/site/1042", ""},
		"at the installation's address": {nil, "https://fhir.example.org/site/1042", ""},
	} {
		t.Run(name, func(t *testing.T) {
			site := &sitesv1.Site{Spec: sitesv1.SiteSpec{SiteID: "1042", Exposure: test.asked}, Status: sitesv1.SiteStatus{URL: test.url}}
			if got := urlOf(site); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
