package v1alpha1

// Exposure says under which address of its own a site is reached. The path is always
// /site/{siteID}. Certificates, classes and annotations are the operator's to choose.
// +kubebuilder:validation:XValidation:rule="has(self.ingress) != has(self.httpRoute)",message="exactly one of exposure.ingress and exposure.httpRoute must be given"
type Exposure struct {
	// ingress has the operator's ingress controller serve the site under a host that the
	// operator allows.
	// +optional
	Ingress *IngressExposure `json:"ingress,omitempty"`

	// httpRoute attaches the site to Gateways that the operator allows. It needs the Gateway
	// API, release 1.0 or later.
	// +optional
	HTTPRoute *HTTPRouteExposure `json:"httpRoute,omitempty"`
}

// IngressExposure is a host of the operator's ingress controller.
type IngressExposure struct {
	// host is the name under which the site is reached, one of those that the operator
	// allows. Several sites may have the same.
	// +required
	Host Hostname `json:"host,omitempty"`
}

// HTTPRouteExposure is a route of Gateways.
type HTTPRouteExposure struct {
	// parentRefs are the Gateways, each at most once, of those that the operator allows.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	ParentRefs []GatewayReference `json:"parentRefs,omitempty"`

	// hostnames are the names under which the site is reached; the first is that of
	// status.url. A listener of each Gateway must have them, or a wildcard for them.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	Hostnames []Hostname `json:"hostnames,omitempty"`
}

// GatewayReference names a Gateway, and one of its listeners where it has several.
type GatewayReference struct {
	// namespace of the Gateway.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`

	// name of the Gateway.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name,omitempty"`

	// sectionName is the listener. Default: every listener of the Gateway that takes the
	// route.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	SectionName string `json:"sectionName,omitempty"`
}

// Hostname is the DNS name of a host, in lower case, with a dot in it.
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)+$`
// +kubebuilder:validation:XValidation:rule="!isIP(self)",message="must be a name, not an address"
type Hostname string
