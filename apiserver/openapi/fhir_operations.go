package openapi

import (
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/web"
)

const (
	mediaJSON   = "application/json"
	mediaFHIR   = "application/fhir+json"
	mediaNDJSON = "application/fhir+ndjson"
	mediaPatch  = "application/json-patch+json"
	mediaForm   = "application/x-www-form-urlencoded"
)

// interaction describes the operation of a method at a path of the FHIR API.
type interaction struct {
	// id is the operationId without the type.
	id, summary string
	parameters  func(c components, r web.Route) []parameter
	request     func(r web.Route) *requestBody
	// success are the responses other than errors.
	success func(r web.Route) map[string]response
	// errors are the statuses of errors in addition to those of every operation.
	errors []string
}

// The statuses of errors of FHIR requests that write, read a body, or search.
var (
	writeErrors = []string{"405", "409", "410", "412", "413", "415", "422", "507"}
	bodyErrors  = []string{"413", "415"}
	costErrors  = []string{"422"}
	readErrors  = []string{"410"}
)

// interactions describe the operations of the FHIR API by method and pattern.
var interactions = map[string]interaction{
	"GET /":                                {"search", "Search several types", result(search.KindSearch), nil, answer("200", "The matches", "Searchset"), costErrors},
	"POST /":                               {"bundle", "Process a batch or a transaction", prefer, resourceBody("Bundle"), answer("200", "The responses to the entries", "Bundle"), slices.Concat(writeErrors, []string{"501"})},
	"OPTIONS /":                            {"options", "Read the capabilities", query("mode", "_summary", "_elements", "_format", "_pretty"), nil, capabilityStatement, nil},
	"GET /metadata":                        {"metadata", "Read the capabilities", query("mode", "_summary", "_elements", "_format", "_pretty"), nil, capabilityStatement, nil},
	"GET /.well-known/smart-configuration": {"smartConfiguration", "Read the SMART configuration", query("_format", "_pretty"), nil, plain("200", "The configuration of the Site's issuer", "SMARTConfiguration"), nil},
	"GET /_history":                        {"siteHistory", "Read the history of the site", result(search.KindHistory), nil, answer("200", "The versions, newest first", "History"), costErrors},
	"POST /_search":                        {"searchByPost", "Search several types by a form", result(search.KindSearch), form, answer("200", "The matches", "Searchset"), slices.Concat(costErrors, bodyErrors)},
	"GET /AuditEvent":                      {"searchAuditEvents", "Search the audit log", auditParameters, nil, answer("200", "The entries, newest first", "AuditSearchset"), nil},
	"GET /$export":                         {"export", "Start an export of the site", exportParameters, nil, exportStarted, nil},
	"GET /$export/{job}":                   {"exportStatus", "Read the status of an export", query("_format", "_pretty"), nil, exportStatus, nil},
	"DELETE /$export/{job}":                {"cancelExport", "Delete an export", query("_format", "_pretty"), nil, answer("202", "The export is deleted", "OperationOutcome"), nil},
	"GET /$export/{job}/{file}":            {"exportFile", "Download a file of an export", nil, nil, exportFile, readErrors},
	"POST /$import":                        {"import", "Import records", query("dryRun", "_format", "_pretty"), ndjsonBody, answer("200", "The numbers of written lines, and the issues of lines that were not written", "Parameters"), slices.Concat(bodyErrors, writeErrors)},
	"GET /{type}":                          {"search", "Search", searchParameters, nil, answer("200", "The matches", "Searchset"), costErrors},
	"POST /{type}":                         {"create", "Create", writeParameters("If-None-Exist"), typeBody, written("200", "201"), writeErrors},
	"PUT /{type}":                          {"conditionalUpdate", "Update the record that matches criteria, or create a record", criteria("If-Match", "If-None-Match"), typeBody, written("200", "201"), writeErrors},
	"PATCH /{type}":                        {"conditionalPatch", "Patch the record that matches criteria", criteria("If-Match"), patchBody, written("200"), writeErrors},
	"DELETE /{type}":                       {"conditionalDelete", "Delete the record that matches criteria", criteria("If-Match"), nil, deleted, writeErrors},
	"POST /{type}/_search":                 {"searchByPost", "Search by a form", result(search.KindSearch), form, answer("200", "The matches", "Searchset"), slices.Concat(costErrors, bodyErrors)},
	"POST /{type}/$validate":               {"validate", "Validate a resource", query("mode", "profile", "_format", "_pretty"), validateBody, answer("200", "The issues", "OperationOutcome"), bodyErrors},
	"GET /{type}/$export":                  {"export", "Start an export of all patients", exportParameters, nil, exportStarted, nil},
	"GET /{type}/_history":                 {"typeHistory", "Read the history of the type", result(search.KindHistory), nil, answer("200", "The versions, newest first", "History"), costErrors},
	"GET /{type}/{id}":                     {"read", "Read", readParameters, nil, read, readErrors},
	"PUT /{type}/{id}":                     {"update", "Update, or create with this id", writeParameters("If-Match", "If-None-Match"), typeBody, written("200", "201"), writeErrors},
	"PATCH /{type}/{id}":                   {"patch", "Patch", writeParameters("If-Match"), patchBody, written("200"), writeErrors},
	"DELETE /{type}/{id}":                  {"delete", "Delete", writeParameters("If-Match"), nil, deleted, writeErrors},
	"POST /{type}/{id}/$validate":          {"validateRecord", "Validate an update of the record", query("mode", "profile", "_format", "_pretty"), validateBody, answer("200", "The issues", "OperationOutcome"), bodyErrors},
	"GET /{type}/{id}/$everything":         {"everything", "Read everything of the patient", result(search.KindEverything), nil, answer("200", "The records", "Searchset"), slices.Concat(readErrors, costErrors)},
	"POST /{type}/{id}/$everything":        {"everythingByPost", "Read everything of the patient, with the parameters in the body", result(search.KindEverything), everythingBody, answer("200", "The records", "Searchset"), slices.Concat(readErrors, costErrors, bodyErrors)},
	"GET /{type}/{id}/$export":             {"exportRecord", "Start an export of the members of the group", exportParameters, nil, exportStarted, readErrors},
	"POST /{type}/{id}/$purge":             {"purge", "Purge the record with its history", query("compartment", "_format", "_pretty"), purgeBody, answer("200", "What was purged", "Parameters"), writeErrors},
	"GET /{type}/{id}/history":             {"historyContract", "Read the history of the record", result(search.KindHistory), nil, answer("200", "The versions, newest first", "History"), costErrors},
	"GET /{type}/{id}/_history":            {"history", "Read the history of the record", result(search.KindHistory), nil, answer("200", "The versions, newest first", "History"), costErrors},
	"POST /{type}/{id}/_search":            {"searchCompartmentByPost", "Search the whole compartment by a form", result(search.KindSearch), form, answer("200", "The matches", "Searchset"), slices.Concat(costErrors, bodyErrors)},
	"GET /{type}/{id}/{members}":           {"searchMembers", "Search in the compartment", result(search.KindSearch), nil, answer("200", "The matches", "Searchset"), costErrors},
	"POST /{type}/{id}/{members}/_search":  {"searchMembersByPost", "Search in the compartment by a form", result(search.KindSearch), form, answer("200", "The matches", "Searchset"), slices.Concat(costErrors, bodyErrors)},
	"GET /{type}/{id}/_history/{vid}":      {"readVersion", "Read a version", readParameters, nil, read, readErrors},
}

// addFHIR adds the FHIR API.
func (d *description) addFHIR() {
	c := d.Components
	c.addFHIRSchemas()
	const site = "FHIR: the site"
	d.Tags = append(d.Tags, tag{site, "Interactions with all types, the capabilities, and bulk data."})
	for _, t := range r4.Types {
		d.Tags = append(d.Tags, tag{t.Name, "The resource type " + t.Name + ", http://hl7.org/fhir/R4/" + strings.ToLower(t.Name) + ".html"})
	}
	for _, r := range fhir.Routes() {
		described, known := interactions[r.Method+" "+r.Pattern]
		if !known {
			panic("apiserver/openapi: " + r.Method + " " + r.Pattern + " has no description")
		}
		op := operation{
			Tags: []string{site}, Summary: described.summary, OperationID: described.id, Description: rightOf(r),
			Parameters: pathParameters(r.Path, pathsOf(r)), Responses: described.success(r),
		}
		if r.Type != "" {
			op.Tags = []string{r.Type}
			op.OperationID += r.Type
			if strings.HasPrefix(r.Path, "/"+r.Type) {
				op.OperationID += "_fhir"
			}
		}
		if described.parameters != nil {
			op.Parameters = append(op.Parameters, described.parameters(c, r)...)
		}
		if described.request != nil {
			op.RequestBody = described.request(r)
		}
		c.addErrors(&op, r, described.errors, fhirError)
		d.add("/fhir"+r.Path, r.Method, op)
	}
}

// add adds an operation.
func (d *description) add(path, method string, op operation) {
	if d.Paths[path] == nil {
		d.Paths[path] = map[string]operation{}
	}
	d.Paths[path][strings.ToLower(method)] = op
}

// rightOf returns the sentence about the right that a route requires.
func rightOf(r web.Route) string {
	switch {
	case r.Public:
		return "Needs no token, unless the site is hidden."
	case r.Right.Verb == "" || r.Right.Resource == "" || r.Right.Verb == "batch":
		return "Needs the rights for all records that the request reads and writes."
	default:
		return "Needs the right to " + r.Right.String() + "."
	}
}

// pathsOf returns the path parameters of a route. In the path of a compartment, the parameter members
// has an enumeration of the types in the compartment.
func pathsOf(r web.Route) map[string]parameter {
	if !strings.Contains(r.Path, "{members}") {
		return ids
	}
	of, _ := r4.CompartmentOf(r.Type)
	values := []string{"*"}
	for _, name := range of.Types() {
		kind, _ := r4.TypeOf(name)
		values = append(values, kind.Name, kind.Segment)
	}
	return map[string]parameter{
		"id":      ids["id"],
		"members": {Description: "The type to search, or * for all.", Schema: schema.JSON{"type": "string", "enum": values}},
	}
}
