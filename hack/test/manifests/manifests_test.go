package manifests

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {%s}\n"
	tests := map[string]struct {
		text    string
		checked int
		failure string
	}{
		"fields that there are":   {strings.Replace(service, "%s", "ports: [{port: 1}]", 1), 1, ""},
		"an unknown field":        {strings.Replace(service, "%s", "port: 1", 1), 1, `Service a: strict decoding error: unknown field "spec.port"`},
		"a repeated field":        {strings.Replace(service, "%s", "type: A, type: B", 1), 1, `"type" already set`},
		"a value of another type": {strings.Replace(service, "%s", "ports: 1", 1), 1, "cannot unmarshal number"},
		"an unknown kind":         {"apiVersion: v1\nkind: Servic\n", 1, `no kind "Servic"`},
		"another group":           {"apiVersion: paddock.health/v1alpha1\nkind: Site\n", 0, ""},
		"comments only":           {"# nothing\n", 0, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			checked, err := Check("# first\n---\n" + test.text)
			if checked != test.checked {
				t.Errorf("checked %d documents, want %d", checked, test.checked)
			}
			if (err == nil) != (test.failure == "") || err != nil && !strings.Contains(err.Error(), test.failure) {
				t.Errorf("got error %v, want %q", err, test.failure)
			}
		})
	}
}
