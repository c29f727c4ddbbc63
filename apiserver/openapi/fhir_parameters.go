package openapi

import (
	"regexp"
	"strings"

	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
)

// text is the schema of any text.
var text = schema.JSON{"type": "string"}

// resultParameters describe the parameters by which FHIR requests shape their results. The names are
// those of search.ResultParameters.
var resultParameters = map[string]parameter{
	"_at":           {Schema: text, Description: "Only versions that were current at some time in a period, such as 2026-03 or ge2026-03-01."},
	"_count":        {Schema: schema.JSON{"type": "integer", "minimum": 0, "default": 20}, Description: "The number of matches on a page, at most 1000. 0 returns only the total."},
	"_elements":     {Schema: schema.JSON{"type": "string", "pattern": `^[A-Za-z0-9.]+(,[A-Za-z0-9.]+)*$`}, Description: "The top-level elements to return, separated by commas. It cannot be combined with _summary."},
	"_format":       {Schema: schema.JSON{"type": "string", "enum": []string{"json", mediaJSON, mediaFHIR, "text/json"}}, Description: "The media type of the response. It overrides the header Accept."},
	"_include":      {Schema: schema.JSON{"type": "array", "items": text}, Description: "Also returns records to which matches refer: Type:parameter, Type:parameter:Target, Type:* or *."},
	"_page_token":   {Schema: text, Description: "The token of a page, from the link next or previous. Default: the first page."},
	"_pretty":       {Schema: schema.JSON{"type": "boolean", "default": false}, Description: "Whether the JSON of the response is indented."},
	"_revinclude":   {Schema: schema.JSON{"type": "array", "items": text}, Description: "Also returns records that refer to matches: Type:parameter."},
	"_since":        {Schema: text, Description: "Only versions written since an instant or the beginning of a date."},
	"_sort":         {Schema: text, Description: "Parameters to sort by, separated by commas; - in front of one is descending. Default: newest first."},
	"_summary":      {Schema: schema.JSON{"type": "string", "enum": []string{"true", "text", "data", "count", "false"}}, Description: "The part of each record to return. Default: false, which returns whole records."},
	"_total":        {Schema: schema.JSON{"type": "string", "enum": []string{"none", "estimate", "accurate"}}, Description: "Whether to count all matches."},
	"_type":         {Schema: text, Description: "The resource types to return, separated by commas. A search accepts it only if the path has no type."},
	"criteria":      {Schema: schema.JSON{"type": "object", "additionalProperties": text, "minProperties": 1}, Style: "form", Explode: true, Required: true, Description: "The search parameters that select the record."},
	"mode":          {Schema: schema.JSON{"type": "string", "enum": []string{"create", "update", "delete"}}, Description: "The interaction for which the resource is validated: create, update or delete."},
	"profile":       {Schema: text, Description: "The profile to validate against."},
	"compartment":   {Schema: schema.JSON{"type": "boolean"}, Description: "Whether the records of the compartment of a Patient are purged too. Default: true for a Patient."},
	"dryRun":        {Schema: schema.JSON{"type": "boolean", "default": false}, Description: "Whether the lines are only validated, and not written."},
	"_typeFilter":   {Schema: schema.JSON{"type": "array", "items": text}, Description: "Queries, such as Patient?active=true. A record of a type with queries is exported if it matches one of them."},
	"_outputFormat": {Schema: schema.JSON{"type": "string", "enum": []string{mediaNDJSON, "application/ndjson", "ndjson"}}, Description: "The format of the files."},
}

// headerParameters describe the header fields of requests that the APIs read.
var headerParameters = map[string]parameter{
	"If-Match":          {Schema: text, Description: "The ETag that the current version of the record must have, or * for any version."},
	"If-None-Match":     {Schema: text, Description: "The ETag of the version that the client has. If that version is current, the response to a read is 304. On a PUT of the FHIR API only * is supported: the record is then only created."},
	"If-Modified-Since": {Schema: text, Description: "The time of the version that the client has. The response is 304 unless the current version is newer."},
	"If-None-Exist":     {Schema: text, Description: "Search criteria. The record is created only if no record matches the criteria."},
	"Cache-Control":     {Schema: text, Description: "max-stale=SECONDS accepts a response that is stale by up to that many seconds, so that a read replica of the database may answer. Age of the response is then how stale it may be, in seconds."},
	"Prefer":            {Schema: text, Description: "return=minimal, return=representation or return=OperationOutcome; handling=lenient or handling=strict."},
	"Idempotency-Key":   {Schema: schema.JSON{"type": "string", "pattern": `^[\x21-\x7e]{1,255}$`}, Description: "A key that the client chooses for one request, kept for at most a day. A repetition of the request with its key has no further effect. Another request with the key is refused with 422."},
	"Last-Event-ID":     {Schema: text, Description: "The id of the last event that the client received."},
}

// ids are the parameters of paths.
var ids = map[string]parameter{
	"id":         {Schema: primitives["id"], Description: "The id of the record."},
	"vid":        {Schema: text, Description: "The versionId of the version."},
	"job":        {Schema: text, Description: "The id of the export."},
	"file":       {Schema: text, Description: "The number of the file of the export."},
	"deliveryId": {Schema: schema.UUID().Schema, Description: "The id of the delivery."},
	"type":       {Schema: text, Description: "The name of the type of events."},
}

// query returns references to query parameters, and adds the parameters to the components.
func (c components) query(names ...string) []parameter {
	return c.parameterRefs("", "query", resultParameters, names)
}

// header returns references to parameters in header fields, and adds the parameters to the components.
func (c components) header(names ...string) []parameter {
	return c.parameterRefs("Header.", "header", headerParameters, names)
}

func (c components) parameterRefs(prefix, in string, table map[string]parameter, names []string) []parameter {
	var refs []parameter
	for _, name := range names {
		described, known := table[name]
		if !known {
			panic("apiserver/openapi: the parameter " + name + " has no description")
		}
		described.Name, described.In = name, in
		c.Parameters[prefix+name] = described
		refs = append(refs, parameter{Ref: "#/components/parameters/" + prefix + name})
	}
	return refs
}

var inBraces = regexp.MustCompile(`\{(\w+)\}`)

// pathParameters returns the parameters of a path.
func pathParameters(path string, described map[string]parameter) []parameter {
	var all []parameter
	for _, match := range inBraces.FindAllStringSubmatch(path, -1) {
		p := described[match[1]]
		p.Name, p.In, p.Required = match[1], "path", true
		all = append(all, p)
	}
	return all
}

// searchParameters returns references to the search parameters of a type, and adds the parameters to
// the components.
func (c components) searchParameters(typeName string) []parameter {
	var refs []parameter
	for _, p := range search.ParametersOf(typeName) {
		description := "A search parameter of type " + p.Type + ". Values separated by commas are alternatives."
		if modifiers := search.Modifiers(typeName, p.Name); len(modifiers) > 0 {
			description += " Modifiers: :" + strings.Join(modifiers, ", :") + "."
		}
		name := typeName + "." + p.Name
		c.Parameters[name] = parameter{Name: p.Name, In: "query", Description: description, Schema: text}
		refs = append(refs, parameter{Ref: "#/components/parameters/" + name})
	}
	return refs
}
