package fhir

import (
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/paddock-health/paddock/apiserver/access"
)

// Issuer is the OAuth 2 server that issues tokens for a site. Its fields other than SMART and Known
// are from the metadata that it publishes.
type Issuer struct {
	URL     string
	JWKSURI string
	// AuthorizationEndpoint, TokenEndpoint and the endpoints after them are URLs of the issuer. A URL
	// is empty if the issuer does not publish that endpoint.
	AuthorizationEndpoint, TokenEndpoint, RegistrationEndpoint, IntrospectionEndpoint, RevocationEndpoint string

	GrantTypes, ResponseTypes, Scopes, TokenAuthMethods []string
	// SMART is true if SMART on FHIR scopes decide what a token permits.
	SMART bool
	// Known is false if the metadata could not be fetched. A request for the SMART configuration is
	// then answered with 503.
	Known bool
}

// SMARTConfiguration is the SMART App Launch 2 configuration (conformance.html).
type SMARTConfiguration struct {
	Issuer                string   `json:"issuer"`
	JWKSURI               string   `json:"jwks_uri,omitempty"`
	AuthorizationEndpoint string   `json:"authorization_endpoint,omitempty"`
	TokenEndpoint         string   `json:"token_endpoint,omitempty"`
	TokenAuthMethods      []string `json:"token_endpoint_auth_methods_supported,omitempty"`
	GrantTypes            []string `json:"grant_types_supported"`
	RegistrationEndpoint  string   `json:"registration_endpoint,omitempty"`
	IntrospectionEndpoint string   `json:"introspection_endpoint,omitempty"`
	RevocationEndpoint    string   `json:"revocation_endpoint,omitempty"`
	Scopes                []string `json:"scopes_supported,omitempty"`
	ResponseTypes         []string `json:"response_types_supported,omitempty"`
	Capabilities          []string `json:"capabilities"`
	CodeChallengeMethods  []string `json:"code_challenge_methods_supported"`
	// Consoles are the clients with which the console signs people in. SMART App Launch does not
	// define this member.
	Consoles []ConsoleClient `json:"console_clients,omitempty"`
}

// ConsoleClient is a public OAuth 2 client with which the console signs people in, and the
// endpoints of its issuer.
type ConsoleClient struct {
	Name                  string   `json:"name"`
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	ClientID              string   `json:"client_id"`
	Scopes                []string `json:"scopes"`
}

// scopeCapabilities are the SMART capabilities of this server: the scopes that it understands. It
// lists no capabilities for obtaining tokens, because the issuer has those.
var scopeCapabilities = []string{"permission-patient", "permission-user", "permission-v1", "permission-v2"}

// smartConfiguration serves GET .well-known/smart-configuration.
func (h *handler) smartConfiguration(w http.ResponseWriter, r *request) error {
	if err := rejectUnknownParameters(r.query); err != nil {
		return err
	}
	issuer := r.site.Issuer
	if issuer == nil {
		return errUnknownPath
	}
	if !issuer.Known {
		return access.ErrUnavailable
	}
	document := SMARTConfiguration{
		Issuer: issuer.URL, JWKSURI: issuer.JWKSURI,
		AuthorizationEndpoint: issuer.AuthorizationEndpoint, TokenEndpoint: issuer.TokenEndpoint,
		RegistrationEndpoint: issuer.RegistrationEndpoint, IntrospectionEndpoint: issuer.IntrospectionEndpoint,
		RevocationEndpoint: issuer.RevocationEndpoint,
		GrantTypes:         issuer.GrantTypes, ResponseTypes: issuer.ResponseTypes, Scopes: issuer.Scopes,
		TokenAuthMethods: issuer.TokenAuthMethods, CodeChallengeMethods: []string{"S256"},
		Consoles: r.site.Consoles,
	}
	if document.GrantTypes == nil && issuer.AuthorizationEndpoint != "" {
		document.GrantTypes = []string{"authorization_code"} // the default of OpenID Connect Discovery 1.0 §3
	}
	if issuer.SMART {
		document.Capabilities = scopeCapabilities
	}
	body, err := json.Marshal(document)
	if err != nil {
		return err
	}
	r.dialect = contractDialect // always application/json
	return r.respond(w, http.StatusOK, body)
}

type security struct {
	Extension   []oauthExtension  `json:"extension,omitempty"`
	CORS        bool              `json:"cors"`
	Service     []securityService `json:"service,omitempty"`
	Description string            `json:"description"`
}

// oauthExtension lists the endpoints of an OAuth 2 server, as in SMART App Launch 1.
type oauthExtension struct {
	URL       string           `json:"url"`
	ValueURI  string           `json:"valueUri,omitempty"`
	Extension []oauthExtension `json:"extension,omitempty"`
}

type securityService struct {
	Coding []securityCoding `json:"coding"`
}

type securityCoding struct {
	System string `json:"system"`
	Code   string `json:"code"`
}

const (
	oauthURIs        = "http://fhir-registry.smarthealthit.org/StructureDefinition/oauth-uris"
	securityServices = "http://terminology.hl7.org/CodeSystem/restful-security-service"

	securityDescription = "All requests but this one and .well-known/smart-configuration carry Authorization: Bearer <token>. " +
		"What a caller may do is decided per type by the rights to get, list, create, update, patch, delete and purge."
	issuerDescription = " Tokens of the issuer that .well-known/smart-configuration describes are accepted."
	smartDescription  = " With its tokens, SMART on FHIR scopes decide: r for get, s for list and every history, c for create, u for update and patch, d for delete."
)

func securityOf(site Endpoint) security {
	description := security{CORS: site.CORS != nil, Description: securityDescription}
	issuer := site.Issuer
	if issuer == nil {
		return description
	}
	code := "OAuth"
	description.Description += issuerDescription
	if issuer.SMART {
		code = "SMART-on-FHIR"
		description.Description += smartDescription
	}
	description.Service = []securityService{{Coding: []securityCoding{{System: securityServices, Code: code}}}}
	var endpoints []oauthExtension
	if issuer.TokenEndpoint != "" {
		endpoints = append(endpoints, oauthExtension{URL: "token", ValueURI: issuer.TokenEndpoint})
	}
	if issuer.AuthorizationEndpoint != "" {
		endpoints = append(endpoints, oauthExtension{URL: "authorize", ValueURI: issuer.AuthorizationEndpoint})
	}
	if len(endpoints) > 0 {
		description.Extension = []oauthExtension{{URL: oauthURIs, Extension: endpoints}}
	}
	return description
}
