package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/paddock-health/paddock/apiserver/aggregated"
	"github.com/paddock-health/paddock/apiserver/store"
)

// What the process can serve.
const (
	serveFacade     = "facade"
	serveAggregated = "aggregated"
)

// serveList is what to serve, at least one thing.
type serveList map[string]bool

// set takes the value of the flag.
func (l serveList) set(value string) error {
	clear(l)
	for name := range strings.SplitSeq(value, ",") {
		if name != serveFacade && name != serveAggregated {
			return fmt.Errorf("%q is neither %s nor %s", name, serveFacade, serveAggregated)
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
	flags.StringVar(&o.address, "aggregated-address", ":6443", "address of the aggregated API, for kube-apiserver")
	flags.StringVar(&o.certFile, "aggregated-tls-cert-file", "", "certificate chain of the aggregated API, read again when it changes")
	flags.StringVar(&o.keyFile, "aggregated-tls-key-file", "", "private key of that certificate")
}

func (o *aggregatedOptions) check() error {
	if o.certFile == "" || o.keyFile == "" {
		return errors.New("--serve=aggregated needs --aggregated-tls-cert-file and --aggregated-tls-key-file: kube-apiserver speaks TLS only")
	}
	return nil
}

// startAggregated serves the aggregated API, if it is wanted, until ctx ends. The
// function that it returns lets requests finish, as long as its own context lasts.
func (s *server) startAggregated(ctx context.Context, group *errgroup.Group) (stop func(context.Context)) {
	if !s.options.serve[serveAggregated] {
		return func(context.Context) {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	group.Go(func() error {
		defer close(ended)
		return aggregated.Run(ctx, aggregated.Config{
			Kubeconfig: s.options.kubeconfig,
			Address:    s.options.aggregated.address,
			CertFile:   s.options.aggregated.certFile,
			KeyFile:    s.options.aggregated.keyFile,
			Sites:      s.admission,
			Authorizer: s.admission.access,
			Facades:    map[string]aggregated.Facade{"fhir": visited("fhir", s.handler), "ahds": visited("ahds", s.handler)},
			Trace:      s.tracing.resources,
			DrainTime:  drainTime,
			Started: func() {
				s.log.InfoContext(ctx, "serving the aggregated API", "listen", s.options.aggregated.address)
				s.ready.aggregatedStarted()
			},
		})
	})
	return func(drained context.Context) {
		cancel()
		select {
		case <-ended:
		case <-drained.Done():
		}
	}
}

// Site implements aggregated.Sites.
func (a *admission) Site(namespace string) (aggregated.Site, error) {
	if !a.ready.knowsSites() {
		return aggregated.Site{}, fmt.Errorf("%w: the sites are being listed", store.ErrUnavailable)
	}
	site, found := a.sites.InNamespace(namespace)
	if !found {
		return aggregated.Site{}, aggregated.ErrNoSite
	}
	return aggregated.Site{
		ID:                site.ID,
		Access:            site.Access,
		Store:             site.Store,
		UpdateCreate:      site.UpdateCreate,
		EnforceReferences: site.EnforceReferences,
		MaxBodySize:       site.MaxBodySize,
		Bases:             a.fhirURLs(site),
	}, nil
}
