package sites

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/settings"
)

func site(id, namespace string) ServedSite {
	return ServedSite{Settings: settings.Settings{ID: id, Access: access.Tenant{Namespace: namespace, Name: id}}}
}

func TestInNamespace(t *testing.T) {
	tests := map[string]struct {
		change func(s *Sites)
		// want is the siteID found in each namespace.
		want map[string]string
	}{
		"none": {
			change: func(*Sites) {},
			want:   map[string]string{"oak": "", "": ""},
		},
		"each in its own": {
			change: func(s *Sites) { s.serve(site("1", "oak")); s.serve(site("2", "elm")) },
			want:   map[string]string{"oak": "1", "elm": "2", "ash": "", "": ""},
		},
		"no longer": {
			change: func(s *Sites) { s.serve(site("1", "oak")); s.withdraw("1") },
			want:   map[string]string{"oak": "", "": ""},
		},
		"never was": {
			change: func(s *Sites) { s.serve(site("1", "oak")); s.withdraw("2") },
			want:   map[string]string{"oak": "1"},
		},
		"moved to another": {
			change: func(s *Sites) { s.serve(site("1", "oak")); s.withdraw("1"); s.serve(site("1", "elm")) },
			want:   map[string]string{"oak": "", "elm": "1"},
		},
		"another siteID, the old one heard of last": {
			change: func(s *Sites) { s.serve(site("1", "oak")); s.serve(site("2", "oak")); s.withdraw("1") },
			want:   map[string]string{"oak": "2"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &Sites{served: map[string]ServedSite{}, byNamespace: map[string]string{}}
			test.change(s)
			got := map[string]string{}
			for namespace := range test.want {
				found, ok := s.InNamespace(namespace)
				if ok != (found.ID != "") {
					t.Errorf("InNamespace(%q) = %q, %t", namespace, found.ID, ok)
				}
				got[namespace] = found.ID
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("siteID by namespace (-want +got):\n%s", diff)
			}
		})
	}
}
