package chart_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRenderingIsReproducible renders the chart twice with each file of ci/. Tools that render charts
// without a cluster would otherwise change objects, and keys in them, every time.
func TestRenderingIsReproducible(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(chartDir, "ci", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found no values in ci/: %v", err)
	}
	arguments := map[string][]string{"defaults": nil}
	for _, file := range files {
		arguments[filepath.Base(file)] = []string{"--values", file}
	}
	for name, args := range arguments {
		t.Run(name, func(t *testing.T) {
			first, second := render(t, args), render(t, args)
			if diff := cmp.Diff(first, second); diff != "" {
				t.Errorf("the second rendering differs (-first +second):\n%s", diff)
			}
		})
	}
}

func render(t *testing.T, args []string) string {
	t.Helper()
	helm := exec.Command(filepath.Join(bin, "helm"), append([]string{"template", release, chartDir, "--namespace", namespace}, args...)...)
	out, err := helm.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

var (
	actions  = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	comments = regexp.MustCompile(`(?s)/\*.*?\*/`)
)

// unreproducible matches the template functions whose result does not follow from the values: those that
// make random values, tell the time, or read the cluster.
var unreproducible = regexp.MustCompile(`\b(lookup|rand\w+|gen(CA|SelfSignedCert|SignedCert|PrivateKey)\w*|uuidv4|now|ago|shuffle|htpasswd|bcrypt|encryptAES|getHostByName)\b`)

// TestTemplatesAreReproducible finds the functions that a rendering without a cluster does not get to.
func TestTemplatesAreReproducible(t *testing.T) {
	var found []string
	err := filepath.WalkDir(filepath.Join(chartDir, "templates"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, action := range actions.FindAllString(comments.ReplaceAllString(string(text), ""), -1) {
			for _, function := range unreproducible.FindAllString(action, -1) {
				found = append(found, filepath.Base(path)+": "+function)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	// The authority of a Secret that exists: without a cluster, rendering fails unless certificates.caBundle is set.
	if diff := cmp.Diff([]string{"_names.tpl: lookup"}, found); diff != "" {
		t.Errorf("functions whose result does not follow from the values (-want +got):\n%s", diff)
	}
}

// TestTyposAreRefused renders the chart with values that it does not have, at all depths, and with values of other forms.
func TestTyposAreRefused(t *testing.T) {
	for set, want := range map[string]string{
		"facad.replicas=1":                       "facad",
		"facade.replica=1":                       "replica",
		"facade.autoscaling.minReplica=1":        "minReplica",
		"image.apiserver.digst=":                 "digst",
		"httpRoute.parentRefs[0].nam=public":     "nam",
		"certificates.certManager.issuerRef.n=a": "issuerRef",
		"image.apiserver.digest=sha256:1":        "image/apiserver/digest",
		"logLevel=loud":                          "logLevel",
		"facade.replicas=two":                    "facade/replicas",
		"backup.sites[0].nam=oak":                "nam",
		"commonLabels.helm\\.sh/chart=mine":      "helm.sh/chart",
	} {
		helm := exec.Command(filepath.Join(bin, "helm"), "template", release, chartDir, "--set", set)
		out, err := helm.CombinedOutput()
		if err == nil {
			t.Errorf("--set %s was accepted", set)
		} else if !strings.Contains(string(out), want) {
			t.Errorf("--set %s: the error does not have %q: %s", set, want, out)
		}
	}
}
