package fhir

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/settings"
)

// withIssuer serves a site with an issuer, to requests without a token alone.
func withIssuer(issuer *Issuer, consoles ...ConsoleClient) func(*Config) {
	return func(c *Config) {
		c.Find = func(*http.Request, string) (Endpoint, error) {
			return Endpoint{Settings: settings.Settings{ID: "demo"}, BaseURL: "https://h/site/demo/fhir", Issuer: issuer, Consoles: consoles}, nil
		}
		c.Admit = func(*http.Request, string) (Endpoint, access.Caller, error) {
			return Endpoint{}, access.Caller{}, &access.TokenError{Description: "no token"}
		}
	}
}

var published = Issuer{
	URL: "https://login.example.org", JWKSURI: "https://login.example.org/keys", Known: true, SMART: true,
	AuthorizationEndpoint: "https://login.example.org/authorize", TokenEndpoint: "https://login.example.org/token",
	Scopes: []string{"openid", "system/*.cruds"}, ResponseTypes: []string{"code"}, TokenAuthMethods: []string{"private_key_jwt"},
}

func TestSmartConfiguration(t *testing.T) {
	rbac, inline, unknown := published, Issuer{URL: "https://login.example.org", Known: true}, published
	rbac.SMART, rbac.GrantTypes, unknown.Known = false, []string{"client_credentials"}, false
	for name, test := range map[string]struct {
		issuer   *Issuer
		consoles []ConsoleClient
		query    string
		status   int
		want     string
	}{
		"scopes decide": {issuer: &published, status: http.StatusOK, want: `{
			"issuer":"https://login.example.org","jwks_uri":"https://login.example.org/keys",
			"authorization_endpoint":"https://login.example.org/authorize","token_endpoint":"https://login.example.org/token",
			"token_endpoint_auth_methods_supported":["private_key_jwt"],"grant_types_supported":["authorization_code"],
			"scopes_supported":["openid","system/*.cruds"],"response_types_supported":["code"],
			"capabilities":["permission-patient","permission-user","permission-v1","permission-v2"],
			"code_challenge_methods_supported":["S256"]}`},
		"RBAC decides": {issuer: &rbac, status: http.StatusOK, want: `{
			"issuer":"https://login.example.org","jwks_uri":"https://login.example.org/keys",
			"authorization_endpoint":"https://login.example.org/authorize","token_endpoint":"https://login.example.org/token",
			"token_endpoint_auth_methods_supported":["private_key_jwt"],"grant_types_supported":["client_credentials"],
			"scopes_supported":["openid","system/*.cruds"],"response_types_supported":["code"],
			"capabilities":[],"code_challenge_methods_supported":["S256"]}`},
		"keys inline": {issuer: &inline, status: http.StatusOK, want: `{
			"issuer":"https://login.example.org","grant_types_supported":[],"capabilities":[],"code_challenge_methods_supported":["S256"]}`},
		"a client for the console": {issuer: &inline, consoles: []ConsoleClient{{
			Name: "staff", Issuer: "https://staff.example.org", AuthorizationEndpoint: "https://staff.example.org/authorize",
			TokenEndpoint: "https://staff.example.org/token", ClientID: "console", Scopes: []string{"openid"},
		}}, status: http.StatusOK, want: `{
			"issuer":"https://login.example.org","grant_types_supported":[],"capabilities":[],"code_challenge_methods_supported":["S256"],
			"console_clients":[{"name":"staff","issuer":"https://staff.example.org","authorization_endpoint":"https://staff.example.org/authorize",
			"token_endpoint":"https://staff.example.org/token","client_id":"console","scopes":["openid"]}]}`},
		"not known yet": {issuer: &unknown, status: http.StatusServiceUnavailable},
		"no issuer":     {status: http.StatusNotFound},
		"a parameter":   {issuer: &published, query: "?name=a", status: http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/site/demo/fhir/.well-known/smart-configuration"+test.query, nil)
			r.Header.Set("Accept", "application/json")
			w := serveOne(t, r, withIssuer(test.issuer, test.consoles...))
			if w.Code != test.status {
				t.Fatalf("status %d, want %d: %s", w.Code, test.status, w.Body)
			}
			if test.want == "" {
				return
			}
			if kind := w.Header().Get("Content-Type"); kind != contractDialect.contentType {
				t.Errorf("Content-Type %s", kind)
			}
			if diff := cmp.Diff(decoded(t, []byte(test.want)), decoded(t, w.Body.Bytes())); diff != "" {
				t.Errorf("document (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSecurityInMetadata(t *testing.T) {
	rbac := published
	rbac.SMART, rbac.AuthorizationEndpoint = false, ""
	for name, test := range map[string]struct {
		issuer *Issuer
		want   string
	}{
		"no issuer": {want: `{"cors":false}`},
		"scopes decide": {issuer: &published, want: `{"cors":false,
			"extension":[{"url":"http://fhir-registry.smarthealthit.org/StructureDefinition/oauth-uris","extension":[
				{"url":"token","valueUri":"https://login.example.org/token"},{"url":"authorize","valueUri":"https://login.example.org/authorize"}]}],
			"service":[{"coding":[{"system":"http://terminology.hl7.org/CodeSystem/restful-security-service","code":"SMART-on-FHIR"}]}]}`},
		"RBAC decides": {issuer: &rbac, want: `{"cors":false,
			"extension":[{"url":"http://fhir-registry.smarthealthit.org/StructureDefinition/oauth-uris","extension":[
				{"url":"token","valueUri":"https://login.example.org/token"}]}],
			"service":[{"coding":[{"system":"http://terminology.hl7.org/CodeSystem/restful-security-service","code":"OAuth"}]}]}`},
		"not known yet": {issuer: &Issuer{}, want: `{"cors":false,
			"service":[{"coding":[{"system":"http://terminology.hl7.org/CodeSystem/restful-security-service","code":"OAuth"}]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := serveOne(t, httptest.NewRequest(http.MethodGet, "/site/demo/fhir/metadata", nil), withIssuer(test.issuer))
			statement := decoded(t, w.Body.Bytes())
			got := statement["rest"].([]any)[0].(map[string]any)["security"].(map[string]any)
			if got["description"] == "" {
				t.Error("the access is not described")
			}
			delete(got, "description")
			if diff := cmp.Diff(decoded(t, []byte(test.want)), got); diff != "" {
				t.Errorf("security (-want +got):\n%s", diff)
			}
		})
	}
}

func decoded(t *testing.T, content []byte) map[string]any {
	t.Helper()
	var value map[string]any
	if err := json.Unmarshal(content, &value); err != nil {
		t.Fatalf("%v: %s", err, content)
	}
	return value
}
