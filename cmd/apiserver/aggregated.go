package main

import (
	"errors"
	"flag"
	"fmt"
	"strings"
)

// Values of --serve.
const (
	serveFacade     = "facade"
	serveAggregated = "aggregated"
	serveDelivery   = "delivery"
)

// serveList is the set of values of --serve: at least one of serveFacade, serveAggregated and
// serveDelivery.
type serveList map[string]bool

func (l serveList) set(value string) error {
	clear(l)
	for name := range strings.SplitSeq(value, ",") {
		if name != serveFacade && name != serveAggregated && name != serveDelivery {
			return fmt.Errorf("%q is not one of %s, %s, %s", name, serveFacade, serveAggregated, serveDelivery)
		}
		l[name] = true
	}
	return nil
}

// aggregatedOptions are the flags of the aggregated API.
type aggregatedOptions struct {
	address, certFile, keyFile string
}

func (o *aggregatedOptions) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.address, "aggregated-address", ":6443", "`address` on which the aggregated API listens for kube-apiserver")
	flags.StringVar(&o.certFile, "aggregated-tls-cert-file", "", "`path` of the file with the aggregated API's certificate chain, reloaded when it changes; required with --serve=aggregated")
	flags.StringVar(&o.keyFile, "aggregated-tls-key-file", "", "`path` of the file with the private key of --aggregated-tls-cert-file; required with --serve=aggregated")
}

func (o *aggregatedOptions) check() error {
	if o.certFile == "" || o.keyFile == "" {
		return errors.New("--serve=aggregated needs --aggregated-tls-cert-file and --aggregated-tls-key-file, because kube-apiserver connects only with TLS")
	}
	return nil
}
