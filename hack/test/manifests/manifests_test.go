package manifests

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {%s}\n"
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{name: a}]}}}\n"
	const notChecked = "-"
	tests := map[string]struct {
		text    string
		checked int
		// byTypes and bySchema are parts of the error messages; notChecked if only the other check finds the error.
		byTypes, bySchema string
	}{
		"fields that there are":    {strings.Replace(service, "%s", "ports: [{port: 1}]", 1), 1, "", ""},
		"a number or text":         {strings.Replace(service, "%s", "ports: [{port: 1, targetPort: 2}, {port: 3, targetPort: a}]", 1), 1, "", ""},
		"an unknown field":         {strings.Replace(service, "%s", "port: 1", 1), 1, `Service a: strict decoding error: unknown field "spec.port"`, `Service a: ValidationError(Service.spec): unknown field "port"`},
		"a repeated field":         {strings.Replace(service, "%s", "type: A, type: B", 1), 1, `"type" already set`, notChecked},
		"a value of another type":  {strings.Replace(service, "%s", "ports: 1", 1), 1, "cannot unmarshal number", `invalid type for io.k8s.api.core.v1.ServiceSpec.ports`},
		"a missing required field": {deployment, 1, notChecked, `missing required field "selector"`},
		"an unknown kind":          {"apiVersion: v1\nkind: Servic\n", 1, `no kind "Servic"`, "Kind=Servic : the release has no such kind"},
		"another group":            {"apiVersion: paddock.health/v1alpha1\nkind: Site\n", 0, "", ""},
		"comments only":            {"# nothing\n", 0, "", ""},
	}
	schema, err := Pinned(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checks := map[string]func(string) (int, error){"types": CheckTypes, "schema": schema.Check}
	for name, test := range tests {
		for by, failure := range map[string]string{"types": test.byTypes, "schema": test.bySchema} {
			if failure == notChecked {
				continue
			}
			t.Run(name+", by "+by, func(t *testing.T) {
				checked, err := checks[by]("# first\n---\n" + test.text)
				if checked != test.checked {
					t.Errorf("checked %d documents, want %d", checked, test.checked)
				}
				if (err == nil) != (failure == "") || err != nil && !strings.Contains(err.Error(), failure) {
					t.Errorf("got error %v, want %q", err, failure)
				}
			})
		}
	}
}
