package provision

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/apply"
)

var testOptions = Options{
	Namespace: "paddock-system", PostgresImage: "docker.io/library/postgres", CloudNativePGImage: "ghcr.io/cloudnative-pg/postgresql",
	SiteKey: "7a31c6ee-2b0e-4f0f-9d60-0c6f7b1b7c11", Certificate: "0123456789abcdef",
}

// TestRender compares with testdata/*.out.yaml; UPDATE_GOLDEN=1 rewrites them.
func TestRender(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("find the inputs: %d, %v", len(inputs), err)
	}
	for _, input := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(input), ".in.yaml"), func(t *testing.T) {
			got := renderFile(t, input)
			golden := strings.Replace(input, ".in.", ".out.", 1)
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s (-want +got), UPDATE_GOLDEN=1 rewrites it:\n%s", golden, diff)
			}
		})
	}
}

// TestRenderSecondName expects that a database with the second name shares no object, label or Secret
// with one that has the first name.
func TestRenderSecondName(t *testing.T) {
	for _, input := range []string{"testdata/statefulset-all.in.yaml", "testdata/cnpg-all.in.yaml"} {
		first := renderFile(t, input)
		site := readSite(t, input)
		site.Spec.Storage.Postgres.Provisioned.Name = SecondName
		want := strings.ReplaceAll(string(first), Name, SecondName)
		if diff := cmp.Diff(want, string(render(t, site))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", input, diff)
		}
	}
}

// TestRenderPool expects that a database of a pool has the label of its SiteClass in place of that of a
// site, and else the objects of a Site's database with the same settings.
func TestRenderPool(t *testing.T) {
	site := readSite(t, "testdata/cnpg-all.in.yaml")
	spec := site.Spec.Storage.Postgres.Provisioned
	class := &v1alpha1.SiteClass{ObjectMeta: metav1.ObjectMeta{Name: "grown"}}
	class.Spec.Storage = &v1alpha1.ClassStorage{Postgres: &v1alpha1.ClassPostgres{Pool: &v1alpha1.PostgresPool{Template: &v1alpha1.PoolTemplate{
		CloudNativePG: &v1alpha1.PoolCluster{Version: spec.Version, Instances: spec.Instances, Storage: spec.Storage, Resources: spec.Resources, Backup: spec.Backup},
	}}}}
	want := strings.NewReplacer(
		Name, "grown-2-pool",
		v1alpha1.SiteKeyLabel+": "+testOptions.SiteKey, v1alpha1.SiteClassLabel+": grown",
	).Replace(string(render(t, site)))
	options := testOptions
	options.SiteKey, options.ClassName = "", "grown"
	got := renderWith(t, PoolSite(class, 2, site.Namespace), options)
	if diff := cmp.Diff(withoutOwner(want), withoutOwner(string(got))); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

// withoutOwner removes the lines of labels whose place depends on the name of the label, and annotations with
// the name of the Site.
func withoutOwner(objects string) string {
	var kept []string
	for _, line := range strings.Split(objects, "\n") {
		line := strings.TrimSpace(line)
		if line != v1alpha1.SiteClassLabel+": grown" && !strings.HasPrefix(line, v1alpha1.SiteAnnotation+":") && line != "annotations:" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

func renderFile(t *testing.T, input string) []byte {
	t.Helper()
	return render(t, readSite(t, input))
}

func render(t *testing.T, site *v1alpha1.Site) []byte {
	t.Helper()
	return renderWith(t, site, testOptions)
}

func renderWith(t *testing.T, site *v1alpha1.Site, options Options) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, object := range Render(site, options) {
		config, err := apply.Config(object)
		if err != nil {
			t.Fatal(err)
		}
		if len(config.GetOwnerReferences()) > 0 {
			t.Errorf("%s %s has an owner: it would go with it", config.GetKind(), config.GetName())
		}
		text, err := yaml.Marshal(config.Object)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return out.Bytes()
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
