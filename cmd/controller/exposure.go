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

// exposureOptions are flags about the addresses that Sites may have.
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
	fs.Func("ingress-hosts", "hosts, with a comma between, that Sites may choose by spec.exposure.ingress; *.example.org allows one label before it", func(text string) error {
		o.hosts = strings.Split(text, ",")
		var errs []error
		for _, host := range o.hosts {
			errs = append(errs, checkNames([]string{strings.TrimPrefix(host, "*.")}))
		}
		return errors.Join(errs...)
	})
	fs.StringVar(&o.scheme, "ingress-scheme", "https", "how those hosts are reached: https or http")
	fs.StringVar(&o.class, "ingress-class", "", "class of the Ingresses of Sites; default: the cluster's")
	fs.Func("ingress-annotation", "name=value of an annotation of the Ingresses of Sites; may be given several times", func(text string) error {
		name, value, found := strings.Cut(text, "=")
		if faults := validation.IsQualifiedName(strings.ToLower(name)); !found || len(faults) > 0 {
			return fmt.Errorf("%q is not the name of an annotation, =, and its value", text)
		}
		if o.annotations == nil {
			o.annotations = map[string]string{}
		}
		o.annotations[name] = value
		return nil
	})
	fs.StringVar(&o.tlsSecret, "ingress-tls-secret", "", "Secret of the operator's namespace with the certificate of those hosts; without it the Ingresses have none")
	fs.Func("gateways", "Gateways, as namespace/name with a comma between, that Sites may choose by spec.exposure.httpRoute", func(text string) error {
		for gateway := range strings.SplitSeq(text, ",") {
			namespace, name, found := strings.Cut(gateway, "/")
			if !found || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
				return fmt.Errorf("%q is not the namespace and the name of a Gateway with a slash between", gateway)
			}
			o.gateways = append(o.gateways, types.NamespacedName{Namespace: namespace, Name: name})
		}
		return nil
	})
	fs.IntVar(&o.facadePort, "facade-port", 80, "port of the Service paddock-facade, to which Ingresses and HTTPRoutes lead")
}

func (o *exposureOptions) check() error {
	if o.scheme != "https" && o.scheme != "http" {
		return fmt.Errorf("--ingress-scheme: %q is neither https nor http", o.scheme)
	}
	if faults := validation.IsValidPortNum(o.facadePort); len(faults) > 0 {
		return fmt.Errorf("--facade-port: %d is no port: %s", o.facadePort, strings.Join(faults, "; "))
	}
	return nil
}

// forSites are the options as the controller of Sites takes them.
func (o *exposureOptions) forSites(namespace string) exposure.Options {
	return exposure.Options{
		Namespace: namespace, Port: int32(o.facadePort), Hosts: o.hosts, Scheme: o.scheme, IngressClass: o.class,
		Annotations: o.annotations, TLSSecret: o.tlsSecret, Gateways: o.gateways,
	}
}
