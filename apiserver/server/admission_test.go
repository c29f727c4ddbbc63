package server

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/limits"
	"github.com/paddock-health/paddock/apiserver/settings"
	"github.com/paddock-health/paddock/apiserver/sites"
)

func TestAddresses(t *testing.T) {
	const common, own = "https://fhir.example.org/site/1042", "https://oak.example.org/site/1042"
	a := &admission{publicURL: "https://fhir.example.org", limits: limits.New(time.Now)}
	for name, test := range map[string]struct {
		url  string
		want []string
	}{
		"no URL of the Site":      {"", []string{common}},
		"the common URL":          {common, []string{common}},
		"a URL of the Site's own": {own, []string{own, common}},
	} {
		t.Run(name, func(t *testing.T) {
			site := sites.ServedSite{Settings: settings.Settings{ID: "1042", URL: test.url}}
			if diff := cmp.Diff(test.want, a.addresses(site)); diff != "" {
				t.Errorf("addresses (-want +got):\n%s", diff)
			}
			described := a.describe(site)
			got := append([]string{described.BaseURL}, described.OtherURLs...)
			for i := range test.want {
				test.want[i] += "/fhir"
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("URLs of the FHIR API (-want +got):\n%s", diff)
			}
		})
	}
}
