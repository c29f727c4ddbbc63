package sites

import (
	"context"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/access/oidc"
	"github.com/paddock-health/paddock/apiserver/access/oidc/discovery"
)

// openIssuers returns the issuers of a Site, or nil if it has none. before are its previous issuers,
// which oidc.Open reuses or closes.
func (s *Sites) openIssuers(ctx context.Context, object *sitesv1.Site, before *oidc.Issuers) *oidc.Issuers {
	issuers := make([]oidc.Issuer, 0, len(object.Spec.Access.Issuers))
	for i := range object.Spec.Access.Issuers {
		issuers = append(issuers, describeIssuer(&object.Spec.Access.Issuers[i]))
	}
	site := oidc.Owner{ID: object.SiteID(), Namespace: object.Namespace}
	return oidc.Open(ctx, site, issuers, before, oidc.Options{Dial: s.options.DialIssuers})
}

func describeIssuer(spec *sitesv1.Issuer) oidc.Issuer {
	issuer := oidc.Issuer{
		Name: spec.Name,
		Keys: discovery.Issuer{
			URL: spec.URL, DiscoveryURL: spec.DiscoveryURL, JWKS: spec.JWKS, CABundle: string(spec.CABundle),
		},
		Audiences: spec.Audiences,
		Username:  "sub",
		SMART:     spec.Authorization == sitesv1.AuthorizationSMART,
	}
	if spec.Console != nil {
		issuer.Console = &oidc.ConsoleClient{ID: spec.Console.ClientID, Scopes: spec.Console.Scopes}
	}
	mappings := spec.ClaimMappings
	if mappings.Username != nil {
		issuer.Username = mappings.Username.Claim
	}
	if mappings.Groups != nil {
		issuer.Groups = mappings.Groups.Claim
	}
	if mappings.Site != nil {
		issuer.Site = mappings.Site.Claim
	}
	return issuer
}
