package events_test

import (
	"encoding/json"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/paddock-health/paddock/apiserver/events"
)

func TestSchemasTakeTheirExamples(t *testing.T) {
	for _, eventType := range events.Types() {
		t.Run(eventType.Name, func(t *testing.T) {
			var schema spec.Schema
			if err := json.Unmarshal(eventType.Schema, &schema); err != nil {
				t.Fatal(err)
			}
			if schema.Description == "" || eventType.Description == "" || !schema.Type.Contains("object") {
				t.Errorf("the type is not described: %s", eventType.Schema)
			}
			var example map[string]any
			if err := json.Unmarshal(eventType.Example, &example); err != nil {
				t.Fatal(err)
			}
			validator := validate.NewSchemaValidator(&schema, nil, "", strfmt.Default)
			if result := validator.Validate(example); !result.IsValid() {
				t.Errorf("the example is not valid: %v", result.Errors)
			}
			for _, name := range schema.Required {
				without := map[string]any{}
				for member, value := range example {
					if member != name {
						without[member] = value
					}
				}
				if validator.Validate(without).IsValid() {
					t.Errorf("the example is valid without %s", name)
				}
			}
		})
	}
}
