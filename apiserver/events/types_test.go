package events_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/paddock-health/paddock/apiserver/events"
)

// TestTypesAreThoseOfTheContract compares the list with section 6 of the contract, and with what
// the custom resources take.
func TestTypesAreThoseOfTheContract(t *testing.T) {
	want := []string{
		"appointment.created", "appointment.updated", "product.created", "product.updated", "user.created", "user.updated",
		"consult.created", "consult.updated", "therapeutic.created", "therapeutic.updated",
	}
	if diff := cmp.Diff(want, events.TypeNames()); diff != "" {
		t.Error(diff)
	}
	type schema struct {
		Enum       []string
		Items      *schema
		Properties map[string]schema
	}
	find := func(file string, path ...string) []string {
		text, err := os.ReadFile(filepath.Join("..", "..", "config", "crd", "bases", "paddock.health_"+file+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var definition struct {
			Spec struct {
				Versions []struct {
					Schema struct{ OpenAPIV3Schema schema }
				}
			}
		}
		if err := yaml.Unmarshal(text, &definition); err != nil {
			t.Fatal(err)
		}
		at := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
		for _, name := range path {
			at = at.Properties[name]
			if at.Items != nil {
				at = *at.Items
			}
		}
		return at.Enum
	}
	for name, got := range map[string][]string{
		"Webhook":         find("webhooks", "spec", "eventType"),
		"WebhookEvent":    find("webhookevents", "spec", "eventType"),
		"source, created": find("sites", "spec", "events", "sources", "created"),
		"source, updated": find("sites", "spec", "events", "sources", "updated"),
	} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: the enum differs from the list: %s", name, diff)
		}
	}
}

func TestTypeOf(t *testing.T) {
	if found, ok := events.TypeOf("user.created"); !ok || found.Name != "user.created" {
		t.Errorf("user.created: %v, %t", found.Name, ok)
	}
	if _, ok := events.TypeOf("user.deleted"); ok {
		t.Error("user.deleted was found")
	}
}
