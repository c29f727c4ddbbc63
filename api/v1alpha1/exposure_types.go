package v1alpha1

// Exposure selects the host names of a site, by either ingress or httpRoute. The path is always
// /site/{siteID}. The operator of the installation chooses the certificates, ingress class and
// annotations.
// +kubebuilder:validation:XValidation:rule="has(self.ingress) != has(self.httpRoute)",message="exactly one of exposure.ingress and exposure.httpRoute must be given"
type Exposure struct {
	// ingress serves the site through the operator's ingress controller, at a host name that the
	// operator allows.
	// +optional
	Ingress *IngressExposure `json:"ingress,omitempty"`

	// httpRoute attaches the site to Gateways that the operator allows. It requires the Gateway API,
	// release 1.0 or later.
	// +optional
	HTTPRoute *HTTPRouteExposure `json:"httpRoute,omitempty"`
}

// IngressExposure is a host name that the operator's ingress controller serves.
type IngressExposure struct {
	// host is the host name of the site. The operator must allow it. Several sites can have the same
	// host.
	// +required
	Host Hostname `json:"host,omitempty"`
}

// HTTPRouteExposure selects the Gateways and host names of the HTTPRoute that the controller creates
// for a site.
type HTTPRouteExposure struct {
	// parentRefs are the Gateways that route requests to the site, 1 to 8. The operator must allow
	// each of them. A Gateway can be listed only once.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	ParentRefs []GatewayReference `json:"parentRefs,omitempty"`

	// hostnames are the host names of the site, 1 to 16. The first host name is in status.url. A
	// listener of each Gateway must match each host name, literally or by a wildcard.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	Hostnames []Hostname `json:"hostnames,omitempty"`
}

// GatewayReference names a Gateway and, optionally, one of its listeners.
type GatewayReference struct {
	// namespace is the namespace of the Gateway.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`

	// name is the name of the Gateway.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name,omitempty"`

	// sectionName is the name of a listener. If unset, the HTTPRoute attaches to each listener of the
	// Gateway that accepts the HTTPRoute.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	SectionName string `json:"sectionName,omitempty"`
}

// Hostname is a DNS name in lower case that contains a dot.
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)+$`
// +kubebuilder:validation:XValidation:rule="!isIP(self)",message="must be a DNS name, not an IP address"
type Hostname string
