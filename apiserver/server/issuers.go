package server

import (
	"context"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/access/oidc"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/sites"
)

// authenticate identifies the caller of a Site. The issuer named in the token determines how the token
// is verified. A token of one of the Site's issuers is verified with that issuer's keys and not sent
// to kube-apiserver for review. Any other token is only sent for review. After an error at a hidden
// Site, admitToHidden sends the token for review in any case, as for a Site that does not exist.
func (a *admission) authenticate(ctx context.Context, site sites.ServedSite, token string) (access.Caller, error) {
	caller, named, err := site.Issuers.Authenticate(ctx, token)
	if named {
		return caller, err
	}
	return a.access.Authenticate(ctx, &site.Access, token)
}

// consoleClients returns the clients with which the console signs people in at a Site.
func consoleClients(issuers *oidc.Issuers) []fhir.ConsoleClient {
	var clients []fhir.ConsoleClient
	for _, c := range issuers.Consoles() {
		clients = append(clients, fhir.ConsoleClient{
			Name: c.Name, Issuer: c.Document.Issuer, AuthorizationEndpoint: c.Document.AuthorizationEndpoint,
			TokenEndpoint: c.Document.TokenEndpoint, ClientID: c.Client.ID, Scopes: c.Client.Scopes,
		})
	}
	return clients
}

// describeIssuer returns the issuer that the FHIR API publishes for a Site: the first one whose tokens
// authorize by SMART scopes or, without such an issuer, the first one. It is nil if the Site has no
// issuers.
func describeIssuer(issuers *oidc.Issuers) *fhir.Issuer {
	if issuers == nil {
		return nil
	}
	document, smart, known := issuers.Published()
	return &fhir.Issuer{
		URL: document.Issuer, JWKSURI: document.JWKSURI,
		AuthorizationEndpoint: document.AuthorizationEndpoint, TokenEndpoint: document.TokenEndpoint,
		RegistrationEndpoint: document.RegistrationEndpoint, IntrospectionEndpoint: document.IntrospectionEndpoint,
		RevocationEndpoint: document.RevocationEndpoint,
		GrantTypes:         document.GrantTypes, ResponseTypes: document.ResponseTypes, Scopes: document.Scopes,
		TokenAuthMethods: document.TokenAuthMethods, SMART: smart, Known: known,
	}
}
