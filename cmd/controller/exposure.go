package main

import (
	"errors"
	"flag"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/paddock-health/paddock/controllers/site/exposure"
)

// exposureOptions are the flags for spec.exposure of Sites.
type exposureOptions struct {
	hosts       []string
	scheme      string
	class       string
	annotations map[string]string
	tlsSecret   string
	gateways    []types.NamespacedName
	facadePort  int
}

func (o *exposureOptions) register(fs *flag.FlagSet) {
	fs.Func("ingress-hosts", "comma-separated `hosts` allowed in spec.exposure.ingress of Sites; *.example.org allows any single label in place of *", func(text string) error {
		o.hosts = strings.Split(text, ",")
		var errs []error
		for _, host := range o.hosts {
			errs = append(errs, checkNames([]string{strings.TrimPrefix(host, "*.")}))
		}
		return errors.Join(errs...)
	})
	fs.StringVar(&o.scheme, "ingress-scheme", "https", "`scheme` of the URLs of --ingress-hosts: https or http")
	fs.StringVar(&o.class, "ingress-class", "", "`class` of the Ingresses of Sites; if unset, the cluster's default class")
	fs.Func("ingress-annotation", "annotation of the Ingresses of Sites, as `name=value`; can be repeated", func(text string) error {
		name, value, found := strings.Cut(text, "=")
		if faults := validation.IsQualifiedName(strings.ToLower(name)); !found || len(faults) > 0 {
			return fmt.Errorf("%q is not an annotation of the form name=value", text)
		}
		if o.annotations == nil {
			o.annotations = map[string]string{}
		}
		o.annotations[name] = value
		return nil
	})
	fs.StringVar(&o.tlsSecret, "ingress-tls-secret", "", "`Secret` in --namespace with the certificate of --ingress-hosts; if unset, the Ingresses have no TLS")
	fs.Func("gateways", "comma-separated `Gateways`, as namespace/name, allowed in spec.exposure.httpRoute of Sites", func(text string) error {
		for gateway := range strings.SplitSeq(text, ",") {
			namespace, name, found := strings.Cut(gateway, "/")
			if !found || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
				return fmt.Errorf("%q is not a Gateway of the form namespace/name", gateway)
			}
			o.gateways = append(o.gateways, types.NamespacedName{Namespace: namespace, Name: name})
		}
		return nil
	})
	fs.IntVar(&o.facadePort, "facade-port", 80, "`port` of the Service paddock-facade, the backend of Ingresses and HTTPRoutes")
}

func (o *exposureOptions) check() error {
	if o.scheme != "https" && o.scheme != "http" {
		return fmt.Errorf("--ingress-scheme: %q must be https or http", o.scheme)
	}
	if faults := validation.IsValidPortNum(o.facadePort); len(faults) > 0 {
		return fmt.Errorf("--facade-port: %d is not a valid port: %s", o.facadePort, strings.Join(faults, "; "))
	}
	return nil
}

// forSites returns the options for the Site controller.
func (o *exposureOptions) forSites(namespace string) exposure.Options {
	return exposure.Options{
		Namespace: namespace, Port: int32(o.facadePort), Hosts: o.hosts, Scheme: o.scheme, IngressClass: o.class,
		Annotations: o.annotations, TLSSecret: o.tlsSecret, Gateways: o.gateways,
	}
}
