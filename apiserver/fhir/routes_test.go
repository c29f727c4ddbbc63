package fhir

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/keyring"
	"github.com/paddock-health/paddock/apiserver/settings"
	"github.com/paddock-health/paddock/apiserver/web"
)

// allowAll lets everybody do everything.
type allowAll struct{}

func (allowAll) Authorize(context.Context, access.Caller, access.Tenant, access.Action) error {
	return nil
}

// authorizerFunc decides by a function.
type authorizerFunc func(access.Action) error

func (f authorizerFunc) Authorize(_ context.Context, _ access.Caller, _ access.Tenant, a access.Action) error {
	return f(a)
}

// serveOne sends one request to a facade parts of which the test replaces.
func serveOne(t *testing.T, r *http.Request, change func(*Config)) *httptest.ResponseRecorder {
	t.Helper()
	find := func(_ *http.Request, siteID string) (Endpoint, error) {
		if siteID != "demo" {
			return Endpoint{}, access.ErrSiteHidden
		}
		return Endpoint{
			Settings: settings.Settings{ID: "demo", Limits: v1alpha1.Limits{MaxBodySize: resource.NewQuantity(1<<10, resource.BinarySI)}},
			BaseURL:  "https://h/site/demo/fhir",
		}, nil
	}
	config := Config{
		Find: find,
		Admit: func(r *http.Request, siteID string) (Endpoint, access.Caller, error) {
			site, err := find(r, siteID)
			return site, access.Caller{Name: "ann"}, err
		},
		Authorizer: allowAll{},
		TokenKeys:  keyring.Fixed(make([]byte, 32)),
		Log:        slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	if change != nil {
		change(&config)
	}
	handler, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// outcomeOf parses a response that must be an OperationOutcome.
func outcomeOf(t *testing.T, res *httptest.ResponseRecorder) outcome {
	t.Helper()
	var o outcome
	if err := json.NewDecoder(res.Body).Decode(&o); err != nil {
		t.Fatal(err)
	}
	if o.ResourceType != "OperationOutcome" || len(o.Issue) == 0 {
		t.Fatalf("not an OperationOutcome: %+v", o)
	}
	return o
}

// TestFailures sends requests that fail before they need the storage. The site has none, so 503
// means that a request was not rejected.
func TestFailures(t *testing.T) {
	const throughToStorage, patient = 503, "/site/demo/fhir/patient"
	json := http.Header{"Content-Type": {"application/json"}}
	tests := map[string]struct {
		method, path string
		header       http.Header
		body         string
		status       int
		code         string
		allow        string
	}{
		"search":                           {"GET", patient, nil, "", throughToStorage, web.CodeUnavailable, ""},
		"search by FHIR's spelling":        {"GET", "/site/demo/fhir/PractitionerRole", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"search by the contract's":         {"GET", "/site/demo/fhir/practitioner-role", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"an id with escapes":               {"GET", patient + "/a%2Db", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"an id escaped twice":              {"GET", patient + "/a%252Db", nil, "", 404, codeNotFound, ""},
		"an id with a slash":               {"GET", patient + "/a%2Fb", nil, "", 404, codeNotFound, ""},
		"a type with escapes":              {"GET", "/site/demo/fh%69r/%70ractitioner%2Drole", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"an escaped _history":              {"DELETE", patient + "/%5Fhistory", nil, "", 405, web.CodeMethodNotAllowed, "GET, HEAD"},
		"an escaped history":               {"DELETE", patient + "/1/h%69story", nil, "", 405, web.CodeMethodNotAllowed, "GET, HEAD"},
		"an escaped history of the site":   {"DELETE", "/site/demo/fhir/%5fhistory/", nil, "", 405, web.CodeMethodNotAllowed, "GET, HEAD"},
		"a history escaped twice":          {"DELETE", patient + "/1/%255Fhistory", nil, "", 404, web.CodeUnknownPath, ""},
		"a history with a slash":           {"DELETE", patient + "/1%2F_history", nil, "", 404, codeNotFound, ""},
		"an escaped compartment":           {"POST", patient + "/1/%50erson", json, "{}", 405, web.CodeMethodNotAllowed, "GET, HEAD"},
		"an id of escaped dots":            {"DELETE", patient + "/%2E%2e", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"an id named history":              {"GET", patient + "/history", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"history":                          {"GET", patient + "/1/history", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"_history":                         {"GET", patient + "/1/_history", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"vread":                            {"GET", patient + "/1/_history/1", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"no site path":                     {"GET", "/", nil, "", 404, web.CodeUnknownPath, ""},
		"PUT at the base":                  {"PUT", "/site/demo/fhir", json, "{}", 405, web.CodeMethodNotAllowed, "GET, HEAD, OPTIONS, POST"},
		"GET on the site's _search":        {"GET", "/site/demo/fhir/_search", nil, "", 405, web.CodeMethodNotAllowed, "POST"},
		"a bundle":                         {"POST", "/site/demo/fhir", json, "{}", throughToStorage, web.CodeUnavailable, ""},
		"a bundle, with a slash":           {"POST", "/site/demo/fhir/", json, "{}", throughToStorage, web.CodeUnavailable, ""},
		"metadata of an unknown site":      {"GET", "/site/other/fhir/metadata", nil, "", 404, web.CodeUnknownSite, ""},
		"OPTIONS of an unknown site":       {"OPTIONS", "/site/other/fhir", nil, "", 404, web.CodeUnknownSite, ""},
		"metadata of terminology":          {"GET", "/site/demo/fhir/metadata?mode=terminology", nil, "", 400, codeInvalidQuery, ""},
		"metadata by other parameters":     {"GET", "/site/demo/fhir/metadata?_id=rest", nil, "", 400, codeInvalidQuery, ""},
		"a summary of metadata, counted":   {"GET", "/site/demo/fhir/metadata?_summary=count", nil, "", 400, codeInvalidQuery, ""},
		"POST on metadata":                 {"POST", "/site/demo/fhir/metadata", json, "{}", 405, web.CodeMethodNotAllowed, "GET, HEAD"},
		"site history":                     {"GET", "/site/demo/fhir/_history", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"DELETE on site history":           {"DELETE", "/site/demo/fhir/_history", nil, "", 405, web.CodeMethodNotAllowed, "GET, HEAD"},
		"history of an unknown type":       {"GET", "/site/demo/fhir/observation/_history", nil, "", 404, codeUnknownType, ""},
		"a type with a slash":              {"GET", patient + "/", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"no type":                          {"GET", "/site/demo/fhir//1", nil, "", 404, codeUnknownType, ""},
		"too deep a path":                  {"GET", patient + "/1/_history/1/x", nil, "", 404, web.CodeUnknownPath, ""},
		"version under history":            {"GET", patient + "/1/history/1", nil, "", 404, web.CodeUnknownPath, ""},
		"an unknown site":                  {"GET", "/site/other/fhir/patient", nil, "", 404, web.CodeUnknownSite, ""},
		"an unknown type":                  {"GET", "/site/demo/fhir/observation", nil, "", 404, codeUnknownType, ""},
		"a type in capitals":               {"GET", "/site/demo/fhir/PATIENT", nil, "", 404, codeUnknownType, ""},
		"OPTIONS of an unknown type":       {"OPTIONS", "/site/demo/fhir/Bogus", nil, "", 404, codeUnknownType, ""},
		"POST on a record of unknown type": {"POST", "/site/demo/fhir/Bogus/1", json, "{}", 404, codeUnknownType, ""},
		"DELETE on an unknown history":     {"DELETE", "/site/demo/fhir/Bogus/1/_history", nil, "", 404, codeUnknownType, ""},
		"an RBAC resource":                 {"GET", "/site/demo/fhir/patients", nil, "", 404, codeUnknownType, ""},
		"type history":                     {"GET", patient + "/_history", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"an operation":                     {"POST", patient + "/$validate", json, "{}", throughToStorage, web.CodeUnavailable, ""},
		"an operation, escaped":            {"POST", patient + "/%24validate", json, "{}", throughToStorage, web.CodeUnavailable, ""},
		"an operation on a record":         {"POST", patient + "/1/%24validate", json, "{}", throughToStorage, web.CodeUnavailable, ""},
		"an operation on no id":            {"POST", patient + "/a_b/$validate", json, "{}", 404, codeNotFound, ""},
		"GET on an operation":              {"GET", patient + "/1/$validate", nil, "", 405, web.CodeMethodNotAllowed, "POST"},
		"an export":                        {"GET", "/site/demo/fhir/$export", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"an export of patients, escaped":   {"GET", patient + "/%24export", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"PUT on an export":                 {"PUT", "/site/demo/fhir/$export/1", json, "{}", 405, web.CodeMethodNotAllowed, "DELETE, GET, HEAD"},
		"a file of an export":              {"GET", "/site/demo/fhir/$export/1/1", http.Header{"Accept": {"application/fhir+ndjson"}}, "", throughToStorage, web.CodeUnavailable, ""},
		"POST on a file of an export":      {"POST", "/site/demo/fhir/%24export/1/1", json, "{}", 405, web.CodeMethodNotAllowed, "GET, HEAD"},
		"an import":                        {"POST", "/site/demo/fhir/$import", json, "{}", throughToStorage, web.CodeUnavailable, ""},
		"GET on an import":                 {"GET", "/site/demo/fhir/%24import", nil, "", 405, web.CodeMethodNotAllowed, "POST"},
		"an unknown operation":             {"GET", patient + "/$everything", nil, "", 404, codeUnknownOperation, ""},
		"an unknown operation on a record": {"POST", patient + "/1/$export", nil, "", 404, codeUnknownOperation, ""},
		"everything":                       {"GET", patient + "/1/$everything", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"everything, escaped":              {"GET", patient + "/1/%24everything/", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"everything of no id":              {"GET", patient + "/a_b/$everything", nil, "", 404, codeNotFound, ""},
		"everything by POST":               {"POST", patient + "/1/$everything", json, `{"resourceType":"Parameters"}`, throughToStorage, web.CodeUnavailable, ""},
		"everything by PUT":                {"PUT", patient + "/1/$everything", json, "{}", 405, web.CodeMethodNotAllowed, "GET, HEAD, POST"},
		"everything of a Practitioner":     {"GET", "/site/demo/fhir/practitioner/1/$everything", nil, "", 404, codeUnknownOperation, ""},
		"everything of an Organization":    {"POST", "/site/demo/fhir/Organization/1/%24everything", json, "{}", 404, codeUnknownOperation, ""},
		"everything of an unknown type":    {"GET", "/site/demo/fhir/Encounter/1/$everything", nil, "", 404, codeUnknownOperation, ""},
		"a compartment":                    {"GET", patient + "/1/Person", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"a compartment, with a slash":      {"GET", patient + "/1/Person/", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"a whole compartment":              {"GET", patient + "/1/*", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"a whole compartment, escaped":     {"GET", patient + "/1/%2a", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"a compartment by POST":            {"POST", patient + "/1/Person/_search", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"POST on a compartment":            {"POST", patient + "/1/Person", json, "{}", 405, web.CodeMethodNotAllowed, "GET, HEAD"},
		"GET on a compartment's _search":   {"GET", patient + "/1/*/_search", nil, "", 405, web.CodeMethodNotAllowed, "POST"},
		"an unknown type in a compartment": {"GET", patient + "/1/observation", nil, "", 404, codeUnknownType, ""},
		"POST on an unknown compartment":   {"POST", patient + "/1/observation", json, "{}", 404, codeUnknownType, ""},
		"GET on an unknown _search":        {"GET", patient + "/1/observation/_search", nil, "", 404, codeUnknownType, ""},
		"POST on what is not in one":       {"POST", patient + "/1/location", json, "{}", 405, web.CodeMethodNotAllowed, "GET, HEAD"},
		"a whole compartment by POST":      {"POST", patient + "/1/_search", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"GET on an id's _search":           {"GET", patient + "/1/_search", nil, "", 405, web.CodeMethodNotAllowed, "POST"},
		"too deep in a compartment":        {"GET", patient + "/1/Person/2", nil, "", 404, web.CodeUnknownPath, ""},
		"not in a compartment":             {"GET", patient + "/1/location", nil, "", 400, codeNotInCompartment, ""},
		"no compartment":                   {"GET", "/site/demo/fhir/location/1/*", nil, "", 400, codeNotInCompartment, ""},
		"a compartment of no id":           {"GET", patient + "/a_b/Person", nil, "", 404, codeNotFound, ""},
		"a compartment of an unknown type": {"GET", "/site/demo/fhir/encounter/1/Patient", nil, "", 404, codeUnknownType, ""},
		"a part of an unknown name":        {"GET", patient + "/1/_meta", nil, "", 404, web.CodeUnknownPath, ""},
		"an escaped unknown operation":     {"POST", patient + "/1/%24export", json, "{}", 404, codeUnknownOperation, ""},
		"a read of no id":                  {"GET", patient + "/a_b", nil, "", 404, codeNotFound, ""},
		"a delete of no id":                {"DELETE", patient + "/" + strings.Repeat("x", 65), nil, "", 404, codeNotFound, ""},
		"an update of no id":               {"PUT", patient + "/a_b", json, "{}", 400, "invalid_id", ""},
		"a patch":                          {"PATCH", patient + "/1", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"a patch of no id":                 {"PATCH", patient + "/a_b", nil, "", 404, codeNotFound, ""},
		"POST on a record":                 {"POST", patient + "/1", json, "{}", 405, web.CodeMethodNotAllowed, "DELETE, GET, HEAD, PATCH, PUT"},
		"a conditional update":             {"PUT", patient + "?identifier=1", json, "{}", throughToStorage, web.CodeUnavailable, ""},
		"a conditional patch":              {"PATCH", patient + "?identifier=1", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"a conditional delete":             {"DELETE", patient + "?identifier=1", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"a conditional delete, as in R4":   {"DELETE", patient + "/?identifier=1", nil, "", throughToStorage, web.CodeUnavailable, ""},
		"GET on _search":                   {"GET", patient + "/_search", nil, "", 405, web.CodeMethodNotAllowed, "POST"},
		"DELETE on history":                {"DELETE", patient + "/1/history", nil, "", 405, web.CodeMethodNotAllowed, "GET, HEAD"},
		"PUT on a version":                 {"PUT", patient + "/1/_history/1", json, "{}", 405, web.CodeMethodNotAllowed, "GET, HEAD"},
		"OPTIONS":                          {"OPTIONS", patient, nil, "", 405, web.CodeMethodNotAllowed, "DELETE, GET, HEAD, PATCH, POST, PUT"},
		"a method that HTTP does not have": {"FROB", patient, nil, "", 501, web.CodeUnknownMethod, ""},
		"no JSON acceptable":               {"GET", patient, http.Header{"Accept": {"application/fhir+xml"}}, "", 406, web.CodeNotAcceptable, ""},
		"_format without JSON":             {"GET", patient + "?_format=xml", nil, "", 406, web.CodeNotAcceptable, ""},
		"no JSON acceptable, unknown path": {"GET", "/x", http.Header{"Accept": {"text/html"}}, "", 406, web.CodeNotAcceptable, ""},
		"a broken query string":            {"GET", patient + "?a=%zz", nil, "", 400, codeInvalidQuery, ""},
		"_pretty that is not a boolean":    {"GET", patient + "?_pretty=yes", nil, "", 400, codeInvalidQuery, ""},
		"a site id with a slash":           {"GET", "/site/demo%2Ffhir/fhir/patient", nil, "", 404, web.CodeUnknownSite, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(test.method, test.path, strings.NewReader(test.body))
			for name, values := range test.header {
				r.Header[name] = values
			}
			res := serveOne(t, r, nil)
			if res.Code != test.status {
				t.Errorf("status %d, want %d", res.Code, test.status)
			}
			if got := res.Header().Get("Allow"); got != test.allow {
				t.Errorf("Allow: %s, want %s", got, test.allow)
			}
			if got := res.Header().Get("Retry-After"); (got != "") != (test.status == 503) {
				t.Errorf("Retry-After: %q", got)
			}
			if got := outcomeOf(t, res).Issue[0].Details.Coding[0].Code; got != test.code {
				t.Errorf("code %s, want %s", got, test.code)
			}
		})
	}
}

// TestExportsHaveNoHEAD sends the methods that could be taken for a kick-off. GET alone starts a job.
func TestExportsHaveNoHEAD(t *testing.T) {
	for _, path := range []string{"/$export", "/%24export", "/patient/$export", "/Group/1/%24export"} {
		for _, method := range []string{"HEAD", "POST", "OPTIONS"} {
			res := serveOne(t, httptest.NewRequest(method, "/site/demo/fhir"+path, nil), nil)
			if allow := res.Header().Get("Allow"); res.Code != http.StatusMethodNotAllowed || allow != "GET" {
				t.Errorf("%s %s: status %d, Allow %q; want 405, GET", method, path, res.Code, allow)
			}
		}
	}
	res := serveOne(t, httptest.NewRequest(http.MethodHead, "/site/demo/fhir/$export/1", nil), nil)
	if res.Code != http.StatusServiceUnavailable {
		t.Errorf("HEAD of the status of an export: status %d, want 503", res.Code)
	}
}

func TestErrorsAnswerInTheDialect(t *testing.T) {
	for accept, want := range map[string]string{"": "application/json", "application/fhir+json": "application/fhir+json; charset=utf-8"} {
		r := httptest.NewRequest(http.MethodGet, "/nowhere?_pretty=true", nil)
		r.Header.Set("Accept", accept)
		res := serveOne(t, r, nil)
		if got := res.Header().Get("Content-Type"); got != want {
			t.Errorf("Content-Type %s, want %s", got, want)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil || !bytes.HasPrefix(body, []byte("{\n  \"resourceType\": \"OperationOutcome\"")) {
			t.Errorf("not pretty: %s, %v", body, err)
		}
	}
}

func TestAdmissionErrors(t *testing.T) {
	tests := map[string]struct {
		err    error
		status int
		header string
		value  string
	}{
		"no token":  {&access.TokenError{Description: "the request has no bearer token"}, 401, "WWW-Authenticate", `Bearer realm="paddock"`},
		"hidden":    {access.ErrSiteHidden, 404, "WWW-Authenticate", ""},
		"away":      {access.ErrUnavailable, 503, "Retry-After", "5"},
		"a failure": {errors.New("boom"), 500, "Retry-After", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			res := serveOne(t, httptest.NewRequest(http.MethodGet, "/site/demo/fhir/patient", nil), func(c *Config) {
				c.Admit = func(*http.Request, string) (Endpoint, access.Caller, error) {
					return Endpoint{}, access.Caller{}, test.err
				}
			})
			if res.Code != test.status || res.Header().Get(test.header) != test.value {
				t.Errorf("got %d with %v", res.Code, res.Header())
			}
			outcomeOf(t, res)
		})
	}
}

// TestFind matches paths without serving them, as it is done for the entries of a Bundle.
func TestFind(t *testing.T) {
	routes := (&handler{}).routes()
	tests := map[string]struct{ pattern, id string }{
		"":                       {root, ""},
		"/":                      {root, ""},
		"//":                     {root, ""},
		"/metadata":              {root + "/metadata", ""},
		"/patient/":              {root + "/{type}", ""},
		"/patient/1":             {root + "/{type}/{id}", "1"},
		"/patient/a%2Fb":         {root + "/{type}/{id}", "a%2Fb"},
		"/%70atient/%31":         {root + "/{type}/{id}", "1"},
		"/patient/%5Fhistory":    {root + "/{type}/_history", ""},
		"/patient/1%5Fhistory":   {root + "/{type}/{id}", "1_history"},
		"/patient/1/_history/2":  {root + "/{type}/{id}/_history/{vid}", "1"},
		"/patient/1/*":           {root + "/{type}/{id}/{members}", "1"},
		"/patient/1/_search":     {root + "/{type}/{id}/_search", "1"},
		"/patient/%24validate":   {root + "/{type}/%24validate", ""},
		"/AuditEvent/1/x":        {root + "/AuditEvent/*", ""},
		"/patient/1/$everything": {root + "/{type}/{id}/$everything", "1"},
		"/device/1/$everything":  {},
		"/patient/1/$export":     {},
		"/patient/1/person/2":    {},
	}
	for path, test := range tests {
		t.Run(path, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/site/demo/fhir"+path, nil)
			supported, err := routes.find(r)
			if test.pattern == "" {
				if problemOf(err).status != http.StatusNotFound {
					t.Errorf("got %v, want an error of status 404", err)
				}
				return
			}
			if err != nil || supported == nil || r.Pattern != test.pattern || r.PathValue("id") != test.id {
				t.Errorf("got pattern %s, id %q, interactions %v, %v; want pattern %s, id %q", r.Pattern, r.PathValue("id"), supported, err, test.pattern, test.id)
			}
		})
	}
}

// TestActions shows which right each interaction needs.
func TestActions(t *testing.T) {
	tests := map[string]struct{ method, path, want string }{
		"search":         {"GET", "/practitioner-role", "list practitionerroles.r4.fhir.paddock.health"},
		"search by POST": {"POST", "/PractitionerRole/_search", "list practitionerroles.r4.fhir.paddock.health"},
		"create":         {"POST", "/patient", "create patients.r4.fhir.paddock.health"},
		"read":           {"GET", "/patient/ABC", "get patients.r4.fhir.paddock.health abc"},
		"head":           {"HEAD", "/patient/ABC", "get patients.r4.fhir.paddock.health abc"},
		"vread":          {"GET", "/patient/ABC/_history/1", "get patients.r4.fhir.paddock.health abc"},
		"update":         {"PUT", "/patient/ABC", "update patients.r4.fhir.paddock.health abc"},
		"delete":         {"DELETE", "/patient/ABC", "delete patients.r4.fhir.paddock.health abc"},
		"history":        {"GET", "/patient/ABC/history", "list patients.r4.fhir.paddock.health"},
		"type history":   {"GET", "/patient/_history", "list patients.r4.fhir.paddock.health"},
		"patch":          {"PATCH", "/patient/ABC", "patch patients.r4.fhir.paddock.health abc"},
		"update chosen":  {"PUT", "/patient?identifier=1", "update patients.r4.fhir.paddock.health"},
		"patch chosen":   {"PATCH", "/patient?identifier=1", "patch patients.r4.fhir.paddock.health"},
		"delete chosen":  {"DELETE", "/patient?identifier=1", "delete patients.r4.fhir.paddock.health"},
		"compartment":    {"GET", "/patient/ABC/related-person", "list relatedpersons.r4.fhir.paddock.health"},
		"a POST in one":  {"POST", "/Patient/ABC/RelatedPerson/_search", "list relatedpersons.r4.fhir.paddock.health"},
		"everything":     {"GET", "/patient/ABC/$everything", "list patients.r4.fhir.paddock.health"},
		"validate":       {"POST", "/patient/$validate", "create patients.r4.fhir.paddock.health"},
		"validate at id": {"POST", "/patient/ABC/$validate", "update patients.r4.fhir.paddock.health abc"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var asked []string
			res := serveOne(t, httptest.NewRequest(test.method, "/site/demo/fhir"+test.path, nil), func(c *Config) {
				c.Authorizer = authorizerFunc(func(a access.Action) error {
					asked = append(asked, strings.TrimSpace(a.String()+" "+a.Name))
					return &access.ForbiddenError{Caller: "ann", Action: a}
				})
			})
			if diff := cmp.Diff([]string{test.want}, asked); diff != "" {
				t.Error(diff)
			}
			if res.Code != http.StatusForbidden {
				t.Errorf("status %d", res.Code)
			}
		})
	}
}

func TestRequestIDs(t *testing.T) {
	for sent, kept := range map[string]bool{"": false, "abc-1.2_3": true, "a b": false, strings.Repeat("x", 65): false, "a\nb": false} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("X-Request-Id", sent)
		got := serveOne(t, r, nil).Header().Get("X-Request-Id")
		if got == "" || (got == sent) != kept {
			t.Errorf("%q is answered with %q", sent, got)
		}
	}
}

func TestPanics(t *testing.T) {
	var log bytes.Buffer
	r := httptest.NewRequest(http.MethodGet, "/site/demo/fhir/patient", nil)
	r.Header.Set("X-Request-Id", "the-id")
	res := serveOne(t, r, func(c *Config) {
		c.Admit = func(*http.Request, string) (Endpoint, access.Caller, error) { panic("a bug") }
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	if res.Code != http.StatusInternalServerError {
		t.Errorf("status %d", res.Code)
	}
	if said := outcomeOf(t, res).Issue[0]; said.Details.Coding[0].Code != web.CodeInternal || strings.Contains(said.Diagnostics, "a bug") {
		t.Errorf("answered %+v", said)
	}
	if text := log.String(); !strings.Contains(text, "request=the-id") || !strings.Contains(text, "a bug") {
		t.Errorf("logged %s", text)
	}
}

func TestHeadHasNoBody(t *testing.T) {
	res := serveOne(t, httptest.NewRequest(http.MethodHead, "/nowhere", nil), nil)
	body, err := io.ReadAll(res.Body)
	length := res.Header().Get("Content-Length")
	if err != nil || len(body) != 0 || res.Code != http.StatusNotFound || length == "" || length == "0" {
		t.Errorf("status %d, length %s, body %q, %v", res.Code, length, body, err)
	}
}

func TestAnswersAreCompressed(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/site/demo/fhir/patient", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	res := serveOne(t, r, func(c *Config) {
		c.Admit = func(*http.Request, string) (Endpoint, access.Caller, error) {
			return Endpoint{}, access.Caller{}, &access.TokenError{Description: strings.Repeat("long ", 1000)}
		}
	})
	if res.Header().Get("Content-Encoding") != "gzip" || !strings.Contains(strings.Join(res.Header().Values("Vary"), ","), "Accept-Encoding") {
		t.Fatalf("header %v", res.Header())
	}
	inflated, err := gzip.NewReader(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var o outcome
	if err := json.NewDecoder(inflated).Decode(&o); err != nil || o.ResourceType != "OperationOutcome" {
		t.Errorf("inflated: %+v, %v", o, err)
	}
}

func TestNewChecksItsConfig(t *testing.T) {
	admit := func(*http.Request, string) (Endpoint, access.Caller, error) { return Endpoint{}, access.Caller{}, nil }
	find := func(*http.Request, string) (Endpoint, error) { return Endpoint{}, nil }
	for name, config := range map[string]Config{
		"no Admit":      {Find: find, Authorizer: allowAll{}, TokenKeys: keyring.Fixed(make([]byte, 32))},
		"no Find":       {Admit: admit, Authorizer: allowAll{}, TokenKeys: keyring.Fixed(make([]byte, 32))},
		"no Authorizer": {Admit: admit, Find: find, TokenKeys: keyring.Fixed(make([]byte, 32))},
		"no key":        {Admit: admit, Find: find, Authorizer: allowAll{}},
		"a short key":   {Admit: admit, Find: find, Authorizer: allowAll{}, TokenKeys: keyring.Fixed(make([]byte, 16))},
	} {
		if _, err := New(config); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
