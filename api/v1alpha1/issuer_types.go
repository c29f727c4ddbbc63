package v1alpha1

// Issuer is an OpenID Connect issuer whose tokens a site accepts. Field names follow
// Kubernetes' AuthenticationConfiguration where it has the same field.
// +kubebuilder:validation:XValidation:rule="!(has(self.discoveryURL) && has(self.jwks))",message="discoveryURL and jwks exclude each other: keys are either discovered or given inline"
// +kubebuilder:validation:XValidation:rule="!(has(self.caBundle) && has(self.jwks))",message="caBundle has no effect with jwks: inline keys are not fetched"
type Issuer struct {
	// name identifies the issuer within the Site. Privacy rules refer to a group of this issuer as
	// name/group.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self != 'kubernetes'",message="the name kubernetes is reserved for the cluster's own issuer"
	Name string `json:"name,omitempty"`

	// url is the issuer's identifier: the "iss" claim of its tokens, compared exactly.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https' && size(url(self).getQuery()) == 0 && !self.contains('#') && !self.contains('@')",message="url must be an https URL without user, query and fragment"
	URL string `json:"url,omitempty"`

	// audiences are the accepted values of the "aud" claim, 1 to 16. A token is accepted only if its
	// "aud" contains at least one of these values.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Audiences []string `json:"audiences,omitempty"`

	// discoveryURL is the address of the OpenID Connect discovery document, if it is not
	// url + "/.well-known/openid-configuration". The document's "issuer" must equal url.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https' && !self.contains('#') && !self.contains('@')",message="discoveryURL must be an https URL without user and fragment"
	DiscoveryURL string `json:"discoveryURL,omitempty"`

	// jwks is a JSON Web Key Set (RFC 7517) with the issuer's public keys. If set, nothing is fetched
	// from the issuer. If unset, the keys are fetched through the discovery document.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	JWKS string `json:"jwks,omitempty"`

	// caBundle holds the PEM certificates of the authorities to trust when the issuer's
	// documents are fetched. Default: the authorities that the API server's image trusts.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	CABundle []byte `json:"caBundle,omitempty"`

	// claimMappings selects the claims that identify the caller and the site.
	// +optional
	// +kubebuilder:default={}
	ClaimMappings ClaimMappings `json:"claimMappings,omitzero"`

	// authorization selects how a caller's rights are determined. RBAC uses the Kubernetes RBAC rights
	// of the mapped username and groups. SMART uses the SMART on FHIR v2 scopes in the
	// "scope" claim. Default: RBAC.
	// +optional
	// +kubebuilder:default=RBAC
	Authorization IssuerAuthorization `json:"authorization,omitempty"`

	// console is the public OAuth 2 client with which the web console of this site signs people in.
	// If unset, the console does not offer this issuer. The client's redirect URI is the address of
	// the site, followed by /console/callback. The console also cannot offer an issuer with jwks,
	// because only the discovery document has the addresses at which people sign in.
	// +optional
	Console *ConsoleClient `json:"console,omitempty"`
}

// IssuerAuthorization selects how the rights of an issuer's callers are determined.
// +kubebuilder:validation:Enum=RBAC;SMART
type IssuerAuthorization string

const (
	// AuthorizationRBAC gives callers the Kubernetes RBAC rights of their mapped username and groups.
	AuthorizationRBAC IssuerAuthorization = "RBAC"
	// AuthorizationSMART gives callers the rights of the SMART on FHIR v2 scopes in their token.
	AuthorizationSMART IssuerAuthorization = "SMART"
)

// ClaimMappings selects claims of a token. Usernames and groups have the prefix site:<namespace>: in
// the checks of Kubernetes RBAC. A token whose username or group begins with "system:" is rejected.
type ClaimMappings struct {
	// username is the claim with the caller's name, a string. Default: sub.
	// +optional
	// +kubebuilder:default={claim: sub}
	Username *ClaimMapping `json:"username,omitempty"`

	// groups is the claim with the caller's groups, a string or an array of strings. If
	// unset, callers have no groups.
	// +optional
	Groups *ClaimMapping `json:"groups,omitempty"`

	// site is the claim that names the sites for which a token is valid. The value of the claim must
	// equal the siteID, or be an array of strings that includes the siteID. If unset, the audience
	// alone determines which site a token is for.
	// +optional
	Site *ClaimMapping `json:"site,omitempty"`
}

// ClaimMapping selects a claim of a token by its name.
type ClaimMapping struct {
	// claim is the name of a top-level claim.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Claim string `json:"claim,omitempty"`
}

// ConsoleClient is a public OAuth 2 client that uses PKCE (RFC 7636).
type ConsoleClient struct {
	// clientID is the client_id that the issuer has assigned to the console.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	ClientID string `json:"clientID,omitempty"`

	// scopes are the OAuth 2 scopes that the console requests, at most 64. Default: openid.
	// +optional
	// +listType=set
	// +kubebuilder:default={openid}
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Scopes []string `json:"scopes,omitempty"`
}
