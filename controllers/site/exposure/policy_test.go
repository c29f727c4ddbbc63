package exposure

import (
	"strings"
	"testing"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

func TestRefused(t *testing.T) {
	ingress := func(host string) *v1alpha1.Exposure {
		return &v1alpha1.Exposure{Ingress: &v1alpha1.IngressExposure{Host: v1alpha1.Hostname(host)}}
	}
	route := func(gateways ...string) *v1alpha1.Exposure {
		asked := &v1alpha1.HTTPRouteExposure{Hostnames: []v1alpha1.Hostname{"oak.example.org"}}
		for _, gateway := range gateways {
			namespace, name, _ := strings.Cut(gateway, "/")
			asked.ParentRefs = append(asked.ParentRefs, v1alpha1.GatewayReference{Namespace: namespace, Name: name})
		}
		return &v1alpha1.Exposure{HTTPRoute: asked}
	}
	tests := map[string]struct {
		asked  *v1alpha1.Exposure
		reason string
	}{
		"nothing":                       {nil, ""},
		"a host by its name":            {ingress("fhir.example.org"), ""},
		"one label before a suffix":     {ingress("oak.clinics.example.org"), ""},
		"two labels":                    {ingress("a.oak.clinics.example.org"), v1alpha1.ReasonHostNotAllowed},
		"the suffix itself":             {ingress("clinics.example.org"), v1alpha1.ReasonHostNotAllowed},
		"the suffix without its dot":    {ingress("evilclinics.example.org"), v1alpha1.ReasonHostNotAllowed},
		"below a host":                  {ingress("oak.fhir.example.org"), v1alpha1.ReasonHostNotAllowed},
		"another host":                  {ingress("fhir.example.net"), v1alpha1.ReasonHostNotAllowed},
		"an allowed Gateway":            {route("infra/public"), ""},
		"two":                           {route("infra/public", "infra/partners"), ""},
		"another Gateway":               {route("infra/private"), v1alpha1.ReasonGatewayNotAllowed},
		"one and another":               {route("infra/public", "infra/private"), v1alpha1.ReasonGatewayNotAllowed},
		"of that name, somewhere else":  {route("clinic-oak/public"), v1alpha1.ReasonGatewayNotAllowed},
		"of another name, put together": {route("infra/public/public"), v1alpha1.ReasonGatewayNotAllowed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			site := &v1alpha1.Site{Spec: v1alpha1.SiteSpec{Exposure: tt.asked}}
			if reason, message := Refused(site, testOptions); reason != tt.reason || (reason == "") != (message == "") {
				t.Errorf("got %q, %q, want %q", reason, message, tt.reason)
			}
		})
	}
	if reason, _ := Refused(&v1alpha1.Site{Spec: v1alpha1.SiteSpec{Exposure: ingress("fhir.example.org")}}, Options{}); reason == "" {
		t.Error("a host is allowed where none is")
	}
}
