package aggregated

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	r4v1 "github.com/paddock-health/paddock/api/r4/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

func TestSpecOf(t *testing.T) {
	tests := map[string]struct{ body, want string }{
		"type, id and an empty meta follow from the object": {
			body: `{"resourceType":"Patient","id":"","meta":{},"active":true}`,
			want: `{"active":true}`,
		},
		"nothing else": {
			body: `{"resourceType":"Patient","id":"","meta":{}}`,
			want: `{}`,
		},
		"what meta says is kept": {
			body: `{"resourceType":"Patient","id":"","meta":{"tag":[{"code":"x"}]},"active":true}`,
			want: `{"meta":{"tag":[{"code":"x"}]},"active":true}`,
		},
		"any order, any white space": {
			body: "{\n  \"active\" : true,\n  \"meta\" : { },\n  \"id\" : \"\",\n  \"resourceType\" : \"Patient\"\n}\n",
			want: `{"active":true}`,
		},
		"decimals and escapes keep their spelling": {
			body: `{"resourceType":"Patient","id":"","meta":{},"extension":[{"url":"w","valueDecimal":1.50}],"name":[{"text":"\u00fc<"}]}`,
			want: `{"extension":[{"url":"w","valueDecimal":1.50}],"name":[{"text":"\u00fc<"}]}`,
		},
		"an id and a type further down are not the resource's": {
			body: `{"resourceType":"Patient","contained":[{"resourceType":"Organization","id":"o"}],"id":"","meta":{}}`,
			want: `{"contained":[{"resourceType":"Organization","id":"o"}]}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := specOf([]byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFill(t *testing.T) {
	created := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	object := kindNamed(t, "Patient").New()
	record := store.Record{
		Key: store.Key{Type: "Patient", ID: "-Rex.1"}, UID: "u", Version: 3, Revision: "42",
		Created: created, Updated: created.Add(time.Hour), Body: store.Body{JSON: []byte(`{"id":"","active":true}`)},
	}
	err := fill(t.Context(), object, "clinic-oak", record)
	if err != nil {
		t.Fatal(err)
	}
	want := kindNamed(t, "Patient").New()
	want.SetNamespace("clinic-oak")
	want.SetName("-rex.1")
	want.SetUID("u")
	want.SetGeneration(3)
	want.SetResourceVersion("42")
	want.SetCreationTimestamp(metav1.NewTime(created))
	want.SetSpec([]byte(`{"active":true}`))
	if diff := cmp.Diff(want, object); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
	record.Metadata = []byte(`{"labels":{"a":"b"},"annotations":"no object"}`)
	unreadable := kindNamed(t, "Patient").New()
	if err := fill(t.Context(), unreadable, "clinic-oak", record); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, unreadable); diff != "" {
		t.Errorf("object with metadata that cannot be read (-want +got):\n%s", diff)
	}
}

// TestKinds holds the kinds to the resource types of the facade: RBAC rules and
// people use one name for both.
func TestKinds(t *testing.T) {
	got, want := map[string]string{}, map[string]string{}
	for _, kind := range r4v1.Kinds {
		got[kind.Name] = kind.Plural
	}
	for _, resourceType := range r4.Types {
		want[resourceType.Name] = resourceType.Resource
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plural by kind (-types of the facade +kinds):\n%s", diff)
	}
	for name := range tables {
		kindNamed(t, name)
	}
}

func kindNamed(t *testing.T, name string) r4v1.Kind {
	t.Helper()
	for _, kind := range r4v1.Kinds {
		if kind.Name == name {
			return kind
		}
	}
	t.Fatalf("there is no kind %s", name)
	return r4v1.Kind{}
}
