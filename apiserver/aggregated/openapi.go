package aggregated

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-aggregator/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"

	r4v1 "github.com/paddock-health/paddock/api/r4/v1alpha1"
)

// definitions returns the schemas of the kinds and of all types to which they refer. kube-apiserver
// merges them with those of other APIs, so each reference needs a schema. The schemas of metav1 are
// the same as kube-apiserver's.
func definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := maps.Clone(openapi.GetOpenAPIDefinitions(ref))
	types := structures{ref: ref, all: all}
	for _, kind := range r4v1.Kinds {
		object, list := util.GetCanonicalTypeName(kind.New()), util.GetCanonicalTypeName(kind.NewList())
		all[object] = objectDefinition(kind, types, ref)
		all[list] = listDefinition(kind, object, ref)
	}
	all[util.GetCanonicalTypeName(&r4v1.Facade{})] = facadeDefinition(ref)
	return all
}

func objectDefinition(kind r4v1.Kind, types structures, ref common.ReferenceCallback) common.OpenAPIDefinition {
	meta := metav1.ObjectMeta{}.OpenAPIModelName()
	resource, dependencies := types.resource(kind.Name)
	resource.Description = "The FHIR resource without resourceType and id, which are those of kind and metadata.name. " +
		"FHIR's own meta is spec.meta, without versionId and lastUpdated; FHIR's own status, where a resource has one, is spec.status."
	return definition(
		kind.Name+" is the FHIR R4 resource "+kind.Name+", http://hl7.org/fhir/R4/"+kind.Singular+".html. Its record is the one that the site of the namespace serves over REST.",
		map[string]spec.Schema{
			"metadata": refersTo(meta, ref, "Standard object metadata. name is the id of the resource in lower case, and generation is its versionId."),
			"spec":     resource,
		}, []string{"spec"}, slices.Concat([]string{meta}, dependencies)...)
}

func listDefinition(kind r4v1.Kind, object string, ref common.ReferenceCallback) common.OpenAPIDefinition {
	meta := metav1.ListMeta{}.OpenAPIModelName()
	item := spec.Schema{SchemaProps: spec.SchemaProps{Ref: ref(object)}}
	items := spec.ArrayProperty(&item)
	items.Description = "The objects, in ascending order of name."
	return definition(
		kind.Name+"List is a list of "+kind.Plural+".",
		map[string]spec.Schema{
			"metadata": refersTo(meta, ref, "Standard list metadata."),
			"items":    *items,
		}, []string{"items"}, meta, object)
}

func facadeDefinition(ref common.ReferenceCallback) common.OpenAPIDefinition {
	meta := metav1.ObjectMeta{}.OpenAPIModelName()
	return definition(
		"Facade represents the FHIR and AHDS APIs of a site, which are the subresources fhir and ahds.",
		map[string]spec.Schema{"metadata": refersTo(meta, ref, "Standard object metadata. name is the name of the Site.")}, nil, meta)
}

// definition returns the schema of a kind with the given properties, to which it adds apiVersion
// and kind.
func definition(description string, properties map[string]spec.Schema, required []string, dependencies ...string) common.OpenAPIDefinition {
	properties["apiVersion"] = *spec.StringProperty().WithDescription("The group and version of this representation.")
	properties["kind"] = *spec.StringProperty().WithDescription("The kind of the object.")
	return common.OpenAPIDefinition{
		Schema: spec.Schema{SchemaProps: spec.SchemaProps{
			Description: description, Type: []string{"object"}, Properties: properties, Required: required,
		}},
		Dependencies: dependencies,
	}
}

// refersTo returns a property with a reference to its schema.
func refersTo(name string, ref common.ReferenceCallback, description string) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{
		Description: description,
		Default:     map[string]any{}, // allows the API machinery to have a description next to the reference
		Ref:         ref(name),
	}}
}

// open returns the schema of an object with any members.
func open() spec.Schema {
	schema := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}
	schema.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	return schema
}
