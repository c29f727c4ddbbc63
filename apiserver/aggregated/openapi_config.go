package aggregated

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// describeAPI makes the server publish the schemas as OpenAPI v2 and v3.
func describeAPI(generic *genericapiserver.RecommendedConfig, scheme *runtime.Scheme) {
	const title = "Paddock"
	names := openapi.NewDefinitionNamer(scheme)
	generic.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, names)
	generic.OpenAPIConfig.Info.Title = title
	generic.OpenAPIConfig.PostProcessSpec = withoutStrategicMerge
	generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, names)
	generic.OpenAPIV3Config.Info.Title = title
	generic.OpenAPIV3Config.PostProcessSpec = withoutStrategicMerge3
}

// withoutStrategicMerge removes strategic merge patches from the API description. The API machinery
// lists them everywhere, although they need Go types with merge keys, and kubectl apply uses them
// if listed.
func withoutStrategicMerge(api *spec.Swagger) (*spec.Swagger, error) {
	for _, path := range api.Paths.Paths {
		if path.Patch != nil {
			path.Patch.Consumes = slices.DeleteFunc(slices.Clone(path.Patch.Consumes), func(mediaType string) bool {
				return mediaType == string(types.StrategicMergePatchType)
			})
		}
	}
	return api, nil
}

func withoutStrategicMerge3(api *spec3.OpenAPI) (*spec3.OpenAPI, error) {
	for _, path := range api.Paths.Paths {
		if path.Patch != nil && path.Patch.RequestBody != nil {
			delete(path.Patch.RequestBody.Content, string(types.StrategicMergePatchType))
		}
	}
	return api, nil
}
