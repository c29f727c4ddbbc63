package aggregated

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"

	r4v1 "github.com/paddock-health/paddock/api/r4/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// schemas are those of all kinds, as the API machinery has them for field managers.
func schemas(t *testing.T) map[string]*spec.Schema {
	t.Helper()
	scheme, _, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	config := genericapiserver.DefaultOpenAPIV3Config(definitions, openapi.NewDefinitionNamer(scheme))
	var names []string
	for _, kind := range r4v1.Kinds {
		names = append(names, util.GetCanonicalTypeName(kind.New()), util.GetCanonicalTypeName(kind.NewList()))
	}
	all, err := builder3.BuildOpenAPIDefinitionsForResources(config, names...)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// specOfKind is the schema of a kind's spec.
func specOfKind(t *testing.T, all map[string]*spec.Schema, kind string) spec.Schema {
	t.Helper()
	found := all["health.paddock.fhir.r4.v1alpha1."+kind]
	if found == nil {
		t.Fatalf("there is no schema of %s", kind)
	}
	return found.Properties["spec"]
}

// TestSchemasHaveEveryElement walks from each kind to all elements that R4 gives it.
func TestSchemasHaveEveryElement(t *testing.T) {
	all := schemas(t)
	for _, kind := range r4v1.Kinds {
		shown := specOfKind(t, all, kind.Name)
		checkElements(t, all, kind.Name, &shown, map[string]bool{})
	}
}

func checkElements(t *testing.T, all map[string]*spec.Schema, typeName string, schema *spec.Schema, seen map[string]bool) {
	t.Helper()
	if seen[typeName] || schema.Extensions["x-kubernetes-preserve-unknown-fields"] == true {
		return
	}
	seen[typeName] = true
	wanted := map[string]bool{}
	for _, element := range r4.Elements(typeName) {
		if element.Name == "id" && r4v1IsKind(typeName) {
			continue
		}
		wanted[element.Name] = true
		path := typeName + "." + element.Name
		property, ok := schema.Properties[element.Name]
		if !ok {
			t.Errorf("%s: the schema does not have it", path)
			continue
		}
		if element.Companion {
			wanted["_"+element.Name] = true
			if _, ok := schema.Properties["_"+element.Name]; !ok {
				t.Errorf("%s: the schema has no primitive extension, want one", path)
			}
		}
		if !strings.Contains(property.Description, element.Type) {
			t.Errorf("%s: the description is %q", path, property.Description)
		}
		if got := contains(schema.Required, element.Name); got != (element.Required && !element.Choice()) {
			t.Errorf("%s: required is %t", path, got)
		}
		if got := property.Type.Contains("array"); got != element.Repeated || got && property.Extensions["x-kubernetes-list-type"] != "atomic" {
			t.Errorf("%s: the schema is of type %v, with %v", path, property.Type, property.Extensions)
		}
		if element.Primitive || element.Type == "Resource" {
			continue
		}
		target := all[referred(&property)]
		if target == nil {
			t.Errorf("%s: %q leads nowhere", path, referred(&property))
			continue
		}
		checkElements(t, all, element.Type, target, seen)
	}
	for name := range schema.Properties {
		if !wanted[name] {
			t.Errorf("%s.%s is not R4's", typeName, name)
		}
	}
}

// referred is the name of the schema that a property, or the items of its list, refer to.
func referred(property *spec.Schema) string {
	if property.Items != nil {
		property = property.Items.Schema
	}
	for i := range property.AllOf {
		property = &property.AllOf[i]
	}
	at := property.Ref.String()
	return at[strings.LastIndexByte(at, '/')+1:]
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

func r4v1IsKind(name string) bool {
	_, ok := tables[name]
	return ok
}

// TestSchemasFitTheExamples reads HL7's examples as field managers read objects: they
// take no field that the schema does not have.
func TestSchemasFitTheExamples(t *testing.T) {
	converter, err := managedfields.NewTypeConverter(schemas(t), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, example := range loadExamples(t) {
		object := objectOf(t, example.Type, example.ID, example.JSON)
		if _, err := converter.ObjectToTyped(object); err != nil {
			t.Errorf("%s/%s: %v", example.Type, example.ID, err)
		}
	}
}

// TestSchemasRefuse has specs that are not R4's, and how field managers say so.
func TestSchemasRefuse(t *testing.T) {
	converter, err := managedfields.NewTypeConverter(schemas(t), false)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ spec, want string }{
		"an unknown element":               {`{"nickname":[]}`, ".spec.nickname: field not declared in schema"},
		"an unknown element of a datatype": {`{"name":[{"surname":"Oak"}]}`, ".spec.name[0].surname: field not declared in schema"},
		"an unknown choice":                {`{"deceasedString":"x"}`, ".spec.deceasedString: field not declared in schema"},
		"an id":                            {`{"id":"x"}`, ".spec.id: field not declared in schema"},
		"one value for a list":             {`{"name":{"family":"Oak"}}`, ".spec.name: expected list, got &{map"},
		"a string for a boolean":           {`{"active":"true"}`, ".spec.active: expected boolean, got &{true}"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := converter.ObjectToTyped(objectOf(t, "Patient", "rex", []byte(test.spec)))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	t.Run("not what has no schema", func(t *testing.T) {
		open := `{"contained":[{"resourceType":"Organization","id":"o"}],"extension":[{"url":"u","valueQuantity":{"value":1.5}}],"_active":{"extension":[{"url":"u"}]},"name":[{"given":[null,"Rex"],"_given":[{"id":"a"},null]}]}`
		if _, err := converter.ObjectToTyped(objectOf(t, "Patient", "rex", []byte(open))); err != nil {
			t.Error(err)
		}
	})
}

func objectOf(t *testing.T, kind, name string, resource []byte) *unstructured.Unstructured {
	t.Helper()
	var content map[string]any
	if err := json.Unmarshal(resource, &content); err != nil {
		t.Fatal(err)
	}
	if content["resourceType"] != nil {
		delete(content, "resourceType")
		delete(content, "id")
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
	object.SetGroupVersionKind(r4v1.GroupVersion.WithKind(kind))
	object.SetName(name)
	return object
}

func TestDescribe(t *testing.T) {
	tests := map[string]string{
		"Patient.birthDate":         "Date of birth, as exactly as the date is known. 0..1, date.",
		"Patient.name":              "Names of the patient. 0..*, HumanName.",
		"Patient.deceasedBoolean":   "Whether the patient died. 0..1, boolean, one of deceased[x].",
		"Patient.link.other":        "The other record of the same patient. 1..1, Reference(Patient|RelatedPerson).",
		"Location.position":         "The coordinates of the location (WGS84). 0..1, Location.position.",
		"HealthcareService.type":    "Types of the healthcare service. 0..*, CodeableConcept.",
		"Organization.contact.name": "Name of the contact. 0..1, HumanName.",
	}
	for path, want := range tests {
		at := strings.LastIndexByte(path, '.')
		for _, element := range r4.Elements(path[:at]) {
			if element.Name == path[at+1:] {
				if diff := cmp.Diff(want, describe(path[:at], element)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", path, diff)
				}
			}
		}
	}
}

// TestPhrasesAreUsed finds phrases for elements that are not there.
func TestPhrasesAreUsed(t *testing.T) {
	known := map[string]bool{}
	var visit func(typeName string)
	visited := map[string]bool{}
	visit = func(typeName string) {
		if visited[typeName] {
			return
		}
		visited[typeName] = true
		for _, element := range r4.Elements(typeName) {
			for _, key := range []string{typeName + "." + element.Name, typeName + "." + element.Base, element.Base} {
				known[key] = true
			}
			if !element.Primitive && typeName != "Extension" {
				visit(element.Type)
			}
		}
	}
	for _, kind := range r4v1.Kinds {
		visit(kind.Name)
	}
	for key := range phrases {
		if !known[key] {
			t.Errorf("the phrase for %s is never used", key)
		}
	}
}
