package v1alpha1

// CORS selects the origins whose web pages can call the APIs of a site from a browser. A page's
// rights are those of the token that it sends. Cookies and other credentials of the browser are never
// used.
type CORS struct {
	// allowOrigins are the origins whose web pages can call the site, at most 64, as browsers send
	// them: scheme, host, and the port unless it is the default of the scheme. Examples:
	// https://app.example.org, http://localhost:3000. A host that begins with *. matches all
	// subdomains. * alone matches all origins.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.size() == 1 || !('*' in self)",message="* matches every origin: remove the other origins"
	// +listType=set
	AllowOrigins []Origin `json:"allowOrigins,omitempty"`
}

// Origin is the scheme, host and port of web pages, in lower case.
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^(\*|https?://(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(:[1-9][0-9]{0,4})?)$`
type Origin string
