package openapi

import (
	"encoding/json"

	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/web"
)

// bothDialects returns a content in both media types of the FHIR API.
func bothDialects(of content) map[string]content {
	return map[string]content{mediaJSON: of, mediaFHIR: of}
}

func result(kind search.Kind) func(components, web.Route) []parameter {
	return func(c components, _ web.Route) []parameter {
		return append(c.query(search.ResultParameters(kind)...), c.header("Prefer")...)
	}
}

func query(names ...string) func(components, web.Route) []parameter {
	return func(c components, _ web.Route) []parameter { return c.query(names...) }
}

func prefer(c components, _ web.Route) []parameter {
	return append(c.query("_format", "_pretty"), c.header("Prefer")...)
}

func searchParameters(c components, r web.Route) []parameter {
	return append(append(c.searchParameters(r.Type), result(search.KindSearch)(c, r)...), c.header("Cache-Control")...)
}

func readParameters(c components, _ web.Route) []parameter {
	return append(c.query(search.ResultParameters(search.KindRead)...), c.header("If-None-Match", "If-Modified-Since")...)
}

// writeParameters returns the parameters of a write to one record, and the given header fields.
func writeParameters(headers ...string) func(components, web.Route) []parameter {
	return func(c components, _ web.Route) []parameter {
		return append(c.query(search.ResultParameters(search.KindRead)...), c.header(append(headers, "Prefer")...)...)
	}
}

func criteria(headers ...string) func(components, web.Route) []parameter {
	return func(c components, _ web.Route) []parameter {
		return append(c.query("criteria"), c.header(append(headers, "Prefer")...)...)
	}
}

func exportParameters(c components, _ web.Route) []parameter {
	respond := parameter{
		Name: "Prefer", In: "header", Required: true, Description: "Must be respond-async, because an export is asynchronous.",
		Schema: schema.JSON{"type": "string", "enum": []string{"respond-async"}},
	}
	return append(c.query("_type", "_since", "_elements", "_typeFilter", "_outputFormat", "_format", "_pretty"), respond)
}

func auditParameters(c components, _ web.Route) []parameter {
	var all []parameter
	for _, p := range fhir.AuditParameters() {
		all = append(all, parameter{Name: p, In: "query", Schema: text})
	}
	count := resultParameters["_count"]
	count.Name, count.In, count.Schema = "_count", "query", schema.JSON{"type": "integer", "minimum": 1, "default": search.DefaultCount}
	count.Description = "The number of entries on a page, at most 1000. Without it, a response in NDJSON has all entries."
	return append(append(all, count), c.query("_format", "_page_token", "_pretty")...)
}

func resourceBody(typeName string) func(web.Route) *requestBody {
	return func(web.Route) *requestBody {
		return &requestBody{Required: true, Content: bothDialects(content{Schema: refTo(typeName)})}
	}
}

func typeBody(r web.Route) *requestBody {
	body := content{Schema: refTo(r.Type)}
	if value, ok := resourceExamples[r.Type]; ok {
		body.Examples = map[string]example{r.Type: {Value: json.RawMessage(value)}}
	}
	return &requestBody{Required: true, Content: bothDialects(body)}
}

func patchBody(web.Route) *requestBody {
	return &requestBody{Required: true, Content: map[string]content{mediaPatch: {
		Schema:   refTo("JSONPatch"),
		Examples: map[string]example{"language": {Value: json.RawMessage(`[{"op":"add","path":"/language","value":"en"}]`)}},
	}}}
}

func validateBody(r web.Route) *requestBody {
	return &requestBody{
		Description: "The resource, or Parameters with resource, mode and profile.",
		Content:     bothDialects(content{Schema: schema.JSON{"oneOf": []any{refTo(r.Type), refTo("Parameters")}}}),
	}
}

func purgeBody(web.Route) *requestBody {
	return &requestBody{Description: "Parameters with compartment, instead of the query parameter.", Content: bothDialects(content{Schema: refTo("Parameters")})}
}

func everythingBody(web.Route) *requestBody {
	return &requestBody{Description: "Parameters, in addition to the parameters in the query string.", Content: bothDialects(content{Schema: refTo("Parameters")})}
}

func form(web.Route) *requestBody {
	return &requestBody{
		Description: "Search parameters, in addition to the parameters in the query string.",
		Content:     map[string]content{mediaForm: {Schema: schema.JSON{"type": "object", "additionalProperties": text}}},
	}
}

func ndjsonBody(web.Route) *requestBody {
	lines := content{Schema: text, Examples: map[string]example{"two": {Value: json.RawMessage(`"{\"resourceType\":\"Patient\",\"id\":\"rex\"}\n{\"resourceType\":\"Patient\",\"id\":\"tom\"}\n"`)}}}
	return &requestBody{Required: true, Description: "One resource on each line.", Content: map[string]content{mediaNDJSON: lines}}
}

// answer returns the function for a response with a resource.
func answer(status, description, typeName string) func(web.Route) map[string]response {
	return func(web.Route) map[string]response {
		return map[string]response{status: {Description: description, Content: bothDialects(content{Schema: refTo(typeName)})}}
	}
}

// plain returns the function for a response that is JSON in both dialects.
func plain(status, description, typeName string) func(web.Route) map[string]response {
	return func(web.Route) map[string]response {
		return map[string]response{status: {Description: description, Content: map[string]content{mediaJSON: {Schema: refTo(typeName)}}}}
	}
}

// notModified is the response to a client that already has the current version.
var notModified = response{Description: "The version that the client has is current.", Headers: headerRefs("ETag")}

func capabilityStatement(r web.Route) map[string]response {
	all := answer("200", "The capabilities of the site", "SiteCapabilities")(r)
	all["304"] = notModified
	return all
}

func read(r web.Route) map[string]response {
	body := content{Schema: refTo(r.Type)}
	return map[string]response{
		"200": {Description: "The record", Headers: headerRefs("ETag", "Last-Modified"), Content: bothDialects(body)},
		"304": notModified,
	}
}

// written returns the function for the responses to a write: the record, or an OperationOutcome that
// says what was done, for Prefer: return=OperationOutcome.
func written(statuses ...string) func(web.Route) map[string]response {
	return func(r web.Route) map[string]response {
		all := map[string]response{}
		body := bothDialects(content{Schema: schema.JSON{"oneOf": []any{refTo(r.Type), refTo("OperationOutcome")}}})
		for _, status := range statuses {
			description := map[string]string{"200": "The record", "201": "The record, which was created"}[status]
			all[status] = response{Description: description, Headers: headerRefs("ETag", "Last-Modified", "Location"), Content: body}
		}
		return all
	}
}

func deleted(web.Route) map[string]response {
	return map[string]response{"200": {Description: "The record does not exist any more", Content: map[string]content{
		mediaJSON: {Schema: refTo("DeleteAcknowledgment")}, mediaFHIR: {Schema: refTo("OperationOutcome")},
	}}}
}

func exportStarted(r web.Route) map[string]response {
	all := answer("202", "The export has started", "OperationOutcome")(r)
	started := all["202"]
	started.Headers = headerRefs("Content-Location")
	all["202"] = started
	return all
}

func exportStatus(r web.Route) map[string]response {
	all := plain("200", "The files of the export", "ExportManifest")(r)
	all["202"] = response{Description: "The export is not complete", Headers: headerRefs("Retry-After")}
	return all
}

func exportFile(web.Route) map[string]response {
	return map[string]response{"200": {Description: "One resource on each line", Content: map[string]content{mediaNDJSON: {Schema: text}}}}
}
