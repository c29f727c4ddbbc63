package v1alpha1

// CORS says which origins' pages may use a site from a browser. Rights stay those of the
// token that a page sends: cookies and other credentials of the browser are never asked for.
type CORS struct {
	// allowOrigins are origins as browsers send them, scheme, host and port where it is not the
	// scheme's own, such as https://app.example.org or http://localhost:3000. The host may
	// begin with *. for every name below it; * alone is every origin.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.size() == 1 || !('*' in self)",message="* is every origin: give it alone"
	// +listType=set
	AllowOrigins []Origin `json:"allowOrigins,omitempty"`
}

// Origin is scheme, host and port of pages, in lower case.
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^(\*|https?://(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(:[1-9][0-9]{0,4})?)$`
type Origin string
