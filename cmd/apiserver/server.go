package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/paddock-health/paddock/apiserver/access/kubernetes"
	"github.com/paddock-health/paddock/apiserver/customresources"
	"github.com/paddock-health/paddock/apiserver/egress"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search/fold"
	"github.com/paddock-health/paddock/apiserver/sites"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
)

const (
	// drainTime is how long requests may take to finish once the process is told to stop.
	drainTime = 20 * time.Second
	// readHeaderTimeout and the rest bound what slow clients can hold.
	readHeaderTimeout = 10 * time.Second
	requestTimeout    = 60 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
)

// server is the process: the engine, the registry of sites and the listeners. The
// facade is nil where it is not served.
type server struct {
	options   *options
	log       *slog.Logger
	engine    *cluster.Cluster
	sites     *sites.Sites
	ready     readiness
	admission *admission
	tracing   *tracing
	// handler serves the FHIR and AHDS APIs, whichever way requests come.
	handler http.Handler
	facade  *http.Server
	health  *http.Server
}

func newServer(ctx context.Context, o *options, log *slog.Logger) (*server, error) {
	config, err := clientConfig(o.kubeconfig)
	if err != nil {
		return nil, err
	}
	tracing, err := startTracing(ctx)
	if err != nil {
		return nil, err
	}
	tracing.client(config)
	engine, err := cluster.New(config, cluster.Options{
		MaxRecords: o.maxRecords, MaxBytes: o.maxBytes, Extract: extract, AfterStep: failpoint,
	})
	if err != nil {
		return nil, err
	}
	registry, err := sites.New(config, sites.Options{
		Cluster: engine, Namespace: o.namespace, Dial: egress.NewDialer(o.postgresNetworks).DialContext,
		Tracer:     tracing.statements(),
		Extraction: sites.Extraction{Version: extractVersion, Extract: extract, References: fhir.References, Facet: isFacet, Fold: fold.String},
	})
	if err != nil {
		return nil, err
	}
	s := &server{options: o, log: log, engine: engine, sites: registry, tracing: tracing}
	s.measureIndex()
	if err := metrics.Registry.Register(registry.Collector()); err != nil {
		return nil, err
	}
	s.ready.aggregatedStarting = o.serve[serveAggregated]
	if s.handler, err = s.makeHandler(config); err != nil {
		return nil, err
	}
	if o.serve[serveFacade] {
		s.facade = &http.Server{
			Addr: s.options.listenAddress, Handler: tracing.handler(s.crossOrigin(s.handler)),
			ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout,
			IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
			ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		}
	}
	s.health = &http.Server{
		Addr: o.healthAddress, Handler: s.healthHandler(),
		ReadHeaderTimeout: readHeaderTimeout, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// makeHandler makes the FHIR and AHDS APIs.
func (s *server) makeHandler(config *rest.Config) (http.Handler, error) {
	reviews, err := kubernetes.New(config, append(resources(), ahdsResources()...))
	if err != nil {
		return nil, err
	}
	objects, err := customresources.New(config, time.Now)
	if err != nil {
		return nil, err
	}
	s.admission = &admission{sites: s.sites, access: reviews, ready: &s.ready, publicURL: s.options.publicURL, resources: objects}
	forFHIR, err := fhir.New(fhir.Config{
		Admit:      s.admission.admit,
		Find:       s.admission.find,
		Version:    version,
		Authorizer: reviews,
		TokenKey:   s.options.tokenKey,
		Log:        s.log,
		Now:        time.Now,
	})
	if err != nil {
		return nil, err
	}
	forAHDS, err := s.newAHDS(reviews)
	if err != nil {
		return nil, err
	}
	return measured(forFHIR, forAHDS), nil // apis.go
}

func clientConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("find the cluster: %w (outside a pod, give --kubeconfig)", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read --kubeconfig: %w", err)
	}
	return config, nil
}

// resources are the FHIR types, a right on any of which shows a caller that a site exists.
func resources() []schema.GroupResource {
	var all []schema.GroupResource
	for _, t := range r4.Types {
		all = append(all, schema.GroupResource{Group: fhir.Group, Resource: t.Resource})
	}
	return all
}

// run serves until ctx ends, then lets requests finish.
func (s *server) run(ctx context.Context) error {
	var listener net.Listener
	var err error
	if s.facade != nil {
		if listener, err = s.listen(ctx); err != nil {
			return err
		}
	}
	healthListener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.options.healthAddress)
	if err != nil {
		return fmt.Errorf("listen for probes: %w", err)
	}
	// What requests need outlives the signal by the time they have to finish.
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	group, failed := errgroup.WithContext(background)
	group.Go(func() error { s.engine.Run(failed); return nil })
	group.Go(func() error { return s.sites.Run(failed, s.ready.sitesKnown) })
	if s.facade != nil {
		group.Go(func() error { return serve(s.facade, listener) })
		s.log.InfoContext(ctx, "serving", "listen", listener.Addr().String(), "publicURL", s.options.publicURL)
	}
	stopAggregated := s.startAggregated(failed, group)
	group.Go(func() error { return serve(s.health, healthListener) })
	group.Go(func() error {
		select {
		case <-s.engine.Synced():
			s.ready.recordsKnown()
		case <-failed.Done():
		}
		return nil
	})
	select {
	case <-ctx.Done():
	case <-failed.Done():
	}
	s.ready.stop()
	drained, done := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer done()
	stopAggregated(drained)
	if s.facade != nil {
		err = s.facade.Shutdown(drained)
	}
	err = errors.Join(err, s.health.Shutdown(drained), s.tracing.stop(drained))
	cancel()
	return errors.Join(err, group.Wait())
}

func serve(s *http.Server, listener net.Listener) error {
	if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	}
	return nil
}
