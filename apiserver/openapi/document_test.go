package openapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/paddock-health/paddock/apiserver/ahds"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/web"
)

// document returns the document of a site as JSON values.
func document(t *testing.T) map[string]any {
	t.Helper()
	made, err := New("/site/1042")
	if err != nil {
		t.Fatal(err)
	}
	var parsed map[string]any
	if err := json.Unmarshal(made.JSON, &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

// TestDocumentIsValid validates the document with the schema of OpenAPI 3.1 that the OpenAPI
// Initiative publishes, by a validator of JSON Schema that is not ours.
func TestDocumentIsValid(t *testing.T) {
	text, err := os.ReadFile("testdata/openapi-3.1-schema.json")
	if err != nil {
		t.Fatal(err)
	}
	published, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("openapi-3.1.json", published); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("openapi-3.1.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(document(t)); err != nil {
		t.Error(err)
	}
	broken := document(t)
	broken["paths"].(map[string]any)["/fhir/Patient"].(map[string]any)["get"].(map[string]any)["parameters"] = []any{map[string]any{"name": "x"}}
	if schema.Validate(broken) == nil {
		t.Error("a parameter without a place is valid")
	}
}

// TestDocumentHasEveryRoute compares the paths of the document with the tables by which the APIs
// route requests. Package portal compares the other paths.
func TestDocumentHasEveryRoute(t *testing.T) {
	var described, served []string
	for path, methods := range document(t)["paths"].(map[string]any) {
		if !strings.HasPrefix(path, "/fhir") && !strings.HasPrefix(path, "/ahds") {
			continue
		}
		for method := range methods.(map[string]any) {
			described = append(described, strings.ToUpper(method)+" "+path)
		}
	}
	for base, routes := range map[string][]web.Route{"/fhir": fhir.Routes(), "/ahds/v1": ahds.Routes()} {
		for _, r := range routes {
			served = append(served, r.Method+" "+base+r.Path)
		}
	}
	slices.Sort(described)
	slices.Sort(served)
	for _, route := range []string{
		"GET /fhir/AuditEvent", "GET /fhir/$export", "GET /fhir/Patient/$export", "GET /fhir/Group/{id}/$export", "GET /fhir/$export/{job}",
		"DELETE /fhir/$export/{job}", "GET /fhir/$export/{job}/{file}", "POST /fhir/$import", "POST /fhir/Patient/{id}/$purge",
		"GET /fhir/Patient/{id}/$everything", "GET /ahds/v1/availability-slot.ics", "POST /ahds/v1/availability-slot/batch",
		"GET /ahds/v1/availability-slot/changes", "POST /ahds/v1/webhook/{id}/test", "POST /ahds/v1/webhook/{id}/replay",
		"POST /ahds/v1/webhook/{id}/rotate-secret", "POST /ahds/v1/webhook/{id}/delivery/{deliveryId}/redeliver", "GET /ahds/v1/event-type",
	} { // the tables have these, too
		if !slices.Contains(served, route) || !slices.Contains(described, route) {
			t.Errorf("no %s", route)
		}
	}
	if diff := cmp.Diff(served, described); diff != "" {
		t.Errorf("(-served +described):\n%s", diff)
	}
	for _, kind := range r4.Types { // contract 4
		for _, path := range []string{"GET /fhir/", "POST /fhir/"} {
			if !slices.Contains(described, path+kind.Segment) {
				t.Errorf("no %s%s", path, kind.Segment)
			}
		}
		for _, route := range []string{"GET /fhir/%/{id}", "PUT /fhir/%/{id}", "DELETE /fhir/%/{id}", "GET /fhir/%/{id}/history"} {
			if route = strings.Replace(route, "%", kind.Segment, 1); !slices.Contains(described, route) {
				t.Errorf("no %s", route)
			}
		}
	}
}

// TestReferencesResolve looks up each reference, and finds each operationId once and no empty enum.
func TestReferencesResolve(t *testing.T) {
	whole := document(t)
	ids := map[string]int{}
	used := map[string]bool{}
	var walk func(value any)
	walk = func(value any) {
		switch v := value.(type) {
		case []any:
			for _, each := range v {
				walk(each)
			}
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				used[ref] = true
				var at any = whole
				for _, step := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
					members, _ := at.(map[string]any)
					at = members[step]
				}
				if at == nil {
					t.Errorf("%s leads nowhere", ref)
				}
			}
			if id, ok := v["operationId"].(string); ok {
				ids[id]++
			}
			if values, listed := v["enum"]; listed {
				if some, _ := values.([]any); len(some) == 0 {
					t.Errorf("%v has no values", v)
				}
			}
			for _, each := range v {
				walk(each)
			}
		}
	}
	walk(whole)
	for id, n := range ids {
		if n > 1 {
			t.Errorf("%d operations have the id %s", n, id)
		}
	}
	for kind, members := range whole["components"].(map[string]any) {
		for name := range members.(map[string]any) {
			if ref := "#/components/" + kind + "/" + name; kind != "securitySchemes" && !used[ref] {
				t.Errorf("nothing refers to %s", ref)
			}
		}
	}
}

// TestExamplesAreValid validates each example of a request by its schema, and those of resources as
// the server does.
func TestExamplesAreValid(t *testing.T) {
	whole := document(t)
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("openapi.json", whole); err != nil {
		t.Fatal(err)
	}
	examples := 0
	for path, methods := range whole["paths"].(map[string]any) {
		for method, op := range methods.(map[string]any) {
			body, _ := op.(map[string]any)["requestBody"].(map[string]any)
			contents, _ := body["content"].(map[string]any)
			for mediaType, content := range contents {
				all, _ := content.(map[string]any)["examples"].(map[string]any)
				for name, each := range all {
					examples++
					place := "openapi.json#/paths/" + strings.ReplaceAll(path, "/", "~1") + "/" + method + "/requestBody/content/" + strings.ReplaceAll(mediaType, "/", "~1") + "/schema"
					schema, err := compiler.Compile(place)
					if err != nil {
						t.Fatal(err)
					}
					if err := schema.Validate(each.(map[string]any)["value"]); err != nil {
						t.Errorf("%s %s, %s: %v", method, path, name, err)
					}
				}
			}
		}
	}
	if examples < 50 {
		t.Errorf("%d examples, want at least 50", examples)
	}
	for typeName, text := range resourceExamples {
		if _, err := r4.Read([]byte(text), r4.Options{Type: typeName}); err != nil {
			t.Errorf("%s: %v", typeName, err)
		}
	}
}

// TestSchemasOfResources compares what the schemas refuse with what the server refuses.
func TestSchemasOfResources(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("openapi.json", document(t)); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		typeName, text string
		valid          bool
	}{
		"an unknown element": {"Patient", `{"resourceType":"Patient","naem":[]}`, false},
		"another type":       {"Patient", `{"resourceType":"Person"}`, false},
		"a required element": {"RelatedPerson", `{"resourceType":"RelatedPerson"}`, false},
		"a value set":        {"Patient", `{"resourceType":"Patient","gender":"dog"}`, false},
		"an empty list":      {"Patient", `{"resourceType":"Patient","name":[]}`, false},
		"a date":             {"Patient", `{"resourceType":"Patient","birthDate":"2021-13"}`, false},
		"a number as text":   {"Group", `{"resourceType":"Group","type":"animal","actual":"true"}`, false},
		"a required element with an extension only":   {"Group", `{"resourceType":"Group","type":"animal","_actual":{"extension":[{"url":"urn:why","valueCode":"unknown"}]}}`, true},
		"an item that has an extension only":          {"Patient", `{"resourceType":"Patient","name":[{"given":[null,"B"],"_given":[{"extension":[{"url":"urn:why","valueCode":"masked"}]},null]}]}`, true},
		"a choice":                                    {"Patient", `{"resourceType":"Patient","deceasedDateTime":"2026-03-01T10:00:00+02:00"}`, true},
		"a contained resource":                        {"Patient", `{"resourceType":"Patient","contained":[{"resourceType":"Organization","id":"o","name":"O"}],"managingOrganization":{"reference":"#o"}}`, true},
		"an Endpoint of the contract, without status": {"Endpoint", `{"resourceType":"Endpoint","connectionType":{"code":"c"},"payloadType":[{"text":"t"}]}`, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			schema, err := compiler.Compile("openapi.json#/components/schemas/" + test.typeName)
			if err != nil {
				t.Fatal(err)
			}
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(value); (err == nil) != test.valid {
				t.Errorf("the schema: %v", err)
			}
			if _, err := r4.Read([]byte(test.text), r4.Options{Type: test.typeName, Optional: r4.OptionalInContract}); (err == nil) != test.valid {
				t.Errorf("the server: %v", err)
			}
		})
	}
}

// TestSchemasOfMetadata validates what documents about a site have in addition to the specifications.
func TestSchemasOfMetadata(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("openapi.json", document(t)); err != nil {
		t.Fatal(err)
	}
	consoles := func(member string) string {
		return `{"issuer":"https://a","grant_types_supported":[],"capabilities":[],"code_challenge_methods_supported":["S256"],"console_clients":[{"name":"staff",
			"issuer":"https://a","authorization_endpoint":"https://a/auth","token_endpoint":"https://a/token",` + member + `:"console","scopes":["openid"]}]}`
	}
	zone := func(url string) string {
		return `{"resourceType":"CapabilityStatement","status":"active","date":"2026-03-01","kind":"instance","fhirVersion":"4.0.1","format":["json"],
			"implementation":{"description":"a site","extension":[{"url":"` + url + `","valueCode":"Europe/Vienna"}]}}`
	}
	for name, test := range map[string]struct {
		schema, text string
		valid        bool
	}{
		"clients of the console":               {"SMARTConfiguration", consoles(`"client_id"`), true},
		"clients of the console without an id": {"SMARTConfiguration", consoles(`"clientId"`), false},
		"a time zone":                          {"SiteCapabilities", zone(fhir.TimeZone), true},
		"another extension":                    {"SiteCapabilities", zone("urn:other"), false},
	} {
		t.Run(name, func(t *testing.T) {
			schema, err := compiler.Compile("openapi.json#/components/schemas/" + test.schema)
			if err != nil {
				t.Fatal(err)
			}
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(value); (err == nil) != test.valid {
				t.Error(err)
			}
		})
	}
}

func TestDocumentsOfSites(t *testing.T) {
	one, err := New("/site/1042")
	if err != nil {
		t.Fatal(err)
	}
	other, err := New("/site/2")
	if err != nil {
		t.Fatal(err)
	}
	again, err := New("/site/1042")
	if err != nil {
		t.Fatal(err)
	}
	if one.Hash == other.Hash || one.Hash != again.Hash || string(one.JSON) != string(again.JSON) {
		t.Errorf("hashes %s, %s, %s", one.Hash, other.Hash, again.Hash)
	}
	t.Logf("%d bytes", len(one.JSON))
}

// TestExceptions checks operations that differ from those with the same parameters, rights or errors.
func TestExceptions(t *testing.T) {
	paths := document(t)["paths"].(map[string]any)
	operationOf := func(path, method string) map[string]any { return paths[path].(map[string]any)[method].(map[string]any) }

	if got := operationOf("/ahds/v1/availability-slot.ics", "get")["description"]; got != "Needs no bearer token: the parameter token gives access, also at a hidden site." {
		t.Errorf("the calendar: got the description %q", got)
	}
	for _, test := range []struct{ path, method, status, want string }{
		{"/ahds/v1/availability-slot.ics", "get", "200", "ETag"},
		{"/ahds/v1/availability-slot", "post", "200", "ETag Last-Modified Location"},
		{"/ahds/v1/webhook", "post", "201", "ETag Last-Modified Location"},
		{"/ahds/v1/webhook/{id}", "put", "200", "ETag Last-Modified"},
	} {
		answer := operationOf(test.path, test.method)["responses"].(map[string]any)[test.status].(map[string]any)
		sent, _ := answer["headers"].(map[string]any)
		if got := strings.Join(slices.Sorted(maps.Keys(sent)), " "); got != test.want {
			t.Errorf("%s %s: got the headers %q, want %q", test.method, test.path, got, test.want)
		}
	}
	if _, there := operationOf("/fhir", "post")["responses"].(map[string]any)["501"]; !there {
		t.Error("a Bundle: want a response 501, for a transaction on a storage that is not atomic")
	}
	for _, each := range operationOf("/fhir/AuditEvent", "get")["parameters"].([]any) {
		if p := each.(map[string]any); p["name"] == "_count" && strings.Contains(p["description"].(string), "0 returns only the total") {
			t.Error("the audit log: _count has the description of searches, but must be at least 1")
		}
	}
}
