package exposure

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/apply"
)

var testOptions = Options{
	Namespace: "paddock-system", Port: 80, Scheme: "https", IngressClass: "public", TLSSecret: "fhir-example-org",
	Hosts:       []string{"fhir.example.org", "*.clinics.example.org"},
	Annotations: map[string]string{"example.org/body-size": "4m"},
	Gateways:    []types.NamespacedName{{Namespace: "infra", Name: "public"}, {Namespace: "infra", Name: "partners"}},
}

// TestRender compares with testdata/*.out.yaml; UPDATE_GOLDEN=1 rewrites them.
func TestRender(t *testing.T) {
	plain := Options{Namespace: "paddock-system", Port: 8080, Scheme: "http"}
	for name, options := range map[string]Options{"ingress": testOptions, "ingress-plain": plain, "route": testOptions, "none": testOptions} {
		t.Run(name, func(t *testing.T) {
			site := readSite(t, filepath.Join("testdata", strings.TrimSuffix(name, "-plain")+".in.yaml"))
			var got bytes.Buffer
			got.WriteString("# " + URL(site, options) + "\n")
			for _, object := range Render(site, options) {
				config, err := apply.Config(object)
				if err != nil {
					t.Fatal(err)
				}
				text, err := yaml.Marshal(config.Object)
				if err != nil {
					t.Fatal(err)
				}
				got.WriteString("---\n")
				got.Write(text)
			}
			golden := filepath.Join("testdata", name+".out.yaml")
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("%s (-want +got), UPDATE_GOLDEN=1 rewrites it:\n%s", golden, diff)
			}
		})
	}
}

func TestSettingsTellOptionsApart(t *testing.T) {
	seen := map[string]int{}
	for i, options := range []Options{
		{},
		{IngressClass: "a"},
		{TLSSecret: "a"},
		{Annotations: map[string]string{"a": ""}},
		{Annotations: map[string]string{"a": "b"}},
		{Annotations: map[string]string{"a": "", "b": ""}},
		{Annotations: map[string]string{"a": `" "b"="`}},
		testOptions,
	} {
		if first, known := seen[settings(options)]; known {
			t.Errorf("options %d and %d have the same settings", first, i)
		}
		seen[settings(options)] = i
	}
}

func readSite(t *testing.T, path string) *v1alpha1.Site {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	site := &v1alpha1.Site{}
	if err := yaml.UnmarshalStrict(text, site); err != nil {
		t.Fatal(err)
	}
	return site
}
