// Package server serves the APIs of Sites over HTTP: listeners, admission, delegation, health,
// metrics and tracing. Deliver runs the process that sends events to webhooks. Command apiserver
// makes its parts from flags.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/paddock-health/paddock/apiserver/access/kubernetes"
	"github.com/paddock-health/paddock/apiserver/access/smart"
	"github.com/paddock-health/paddock/apiserver/aggregated"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/keyring"
	"github.com/paddock-health/paddock/apiserver/limits"
	"github.com/paddock-health/paddock/apiserver/sites"
	"github.com/paddock-health/paddock/apiserver/traffic"
	"github.com/paddock-health/paddock/apiserver/webhookstore"
)

const (
	// readHeaderTimeout and the following constants limit how long a slow client can keep a connection,
	// and how much memory the header of a request takes.
	readHeaderTimeout = 10 * time.Second
	requestTimeout    = 60 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
)

// Config has the parts and settings of a Server. All are required unless noted.
type Config struct {
	Kubernetes *rest.Config
	Engine     Engine
	Sites      *sites.Sites
	// Tracing, if set, exports spans.
	Tracing *Tracing
	// AuditLog receives copies of the audit entries of all Sites. The Server closes it.
	AuditLog *audit.Lines
	Keys     Keys
	// PublicURL is the base URL at which clients reach the servers, without a trailing slash.
	PublicURL string
	// Listener configures the port of the FHIR and AHDS APIs. If nil, these APIs are served only
	// through the aggregated API.
	Listener *Listener
	// MaxRequestsInflight is the maximum number of concurrent requests to the FHIR and AHDS APIs, the
	// native format and the portal together. One Site may have at most three quarters of them. Further
	// requests to Sites fail with 429. A stream of events counts only until its response begins. 0 means
	// no limit.
	MaxRequestsInflight int
	// Aggregated has the Kubeconfig, the Address and the certificate of the aggregated API; the
	// Server sets the other fields. If nil, the aggregated API is not served.
	Aggregated *aggregated.Config
	Health     Health
	Log        *slog.Logger
}

// Engine is the storage engine that stores records as objects of the cluster (in etcd).
type Engine interface {
	// Run updates the search index until ctx ends.
	Run(ctx context.Context)
	// Synced returns a channel that is closed when the search index has all records that existed when
	// Run started.
	Synced() <-chan struct{}
	// Indexed returns the number of records in the search index, without tombstones.
	Indexed() int64
}

// Keys are the keys that sign page tokens, hold tokens and calendar feed URLs. All replicas must have
// the same keys.
type Keys struct {
	Page, Hold, Feed keyring.Source
}

// Server serves the FHIR, AHDS and aggregated APIs of all Sites, with probes and metrics.
type Server struct {
	config    Config
	ready     readiness
	admission *admission
	// tokens seals and opens continue tokens and the cursors of lists of changes.
	tokens search.Tokens
	audit  *audit.Auditor
	// traffic counts the requests of Sites.
	traffic *traffic.Recorder
	// handler serves the FHIR and AHDS APIs, the native format, the portal and the console, to clients
	// and, for FHIR and AHDS, through kube-apiserver.
	handler http.Handler
	// facade serves handler to clients. It is nil without a Listener.
	facade *http.Server
	health *http.Server
	// stopping is closed when Run's context ends or a part fails. Streams of deliveries end then.
	stopping chan struct{}
}

// New returns a Server and registers its metrics, so that a process can call it only once. The Server
// serves nothing until Run is called.
func New(config Config) (*Server, error) {
	host, err := os.Hostname() // in a cluster, the name of the pod
	if err != nil {
		return nil, fmt.Errorf("get the host name of this API server: %w", err)
	}
	s := &Server{config: config, audit: newAuditor(config.AuditLog), traffic: traffic.New(host, time.Now), stopping: make(chan struct{})}
	s.measureIndex()
	err = metrics.Registry.Register(config.Sites.Collector())
	if err != nil {
		return nil, err
	}
	if s.tokens, err = search.NewTokens(config.Keys.Page); err != nil {
		return nil, err
	}
	s.ready.aggregatedStarting = config.Aggregated != nil
	if s.handler, err = s.makeHandler(); err != nil {
		return nil, err
	}
	if config.Listener != nil {
		s.facade = facadeServer(closeConnections(config.Tracing.handler(s.crossOrigin(s.handler)), s.stopping))
		s.facade.ErrorLog = slog.NewLogLogger(config.Log.Handler(), slog.LevelDebug)
	}
	s.health = healthServer(config.Health, s.ready.missing, gatherer(config.Aggregated != nil))
	return s, nil
}

// facadeServer returns the server of a handler for clients, with time limits.
func facadeServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
	}
}

// makeHandler returns the value of s.handler, and sets s.admission.
func (s *Server) makeHandler() (http.Handler, error) {
	reviews, err := kubernetes.New(s.config.Kubernetes, append(resources(), ahdsResources()...))
	if err != nil {
		return nil, err
	}
	objects, err := webhookstore.New(s.config.Kubernetes, time.Now)
	if err != nil {
		return nil, err
	}
	events, err := kubernetes.NewEvents(s.config.Kubernetes)
	if err != nil {
		return nil, err
	}
	rights := smart.Authorizer{Next: reviews, Restricted: true}
	s.admission = &admission{
		sites: s.config.Sites, access: reviews, rights: rights, ready: &s.ready, publicURL: s.config.PublicURL, resources: objects, events: events,
		limits: limits.New(time.Now),
	}
	forFHIR, err := fhir.New(fhir.Config{
		Admit:      s.admission.admit,
		Find:       s.admission.find,
		Version:    s.config.Health.Version,
		Authorizer: rights,
		Audit:      s.audit,
		TokenKeys:  s.config.Keys.Page,
		ErrorPages: s.errorPages(),
		Log:        s.config.Log,
		Now:        time.Now,
	})
	if err != nil {
		return nil, err
	}
	forAHDS, err := s.newAHDS(rights)
	if err != nil {
		return nil, err
	}
	apis := measured(forFHIR, forAHDS, s.newNative(rights), s.newPortal())                                // apis.go
	limited := withInflightLimit(limits.NewInflight(s.config.MaxRequestsInflight), s.recordTraffic, apis) // inflight.go, traffic.go
	return s.withConsole(limited), nil                                                                    // console.go
}

// resources returns the resources of the FHIR API. A hidden Site exists for a caller with a right
// to any of them.
func resources() []schema.GroupResource {
	var all []schema.GroupResource
	for _, t := range r4.Types {
		all = append(all, schema.GroupResource{Group: fhir.Group, Resource: t.Resource})
	}
	return all
}

// Run serves until ctx ends or a part fails. For closeDelay after that, it still accepts requests, and
// closes each connection after its response. Then it waits up to drainTime for open requests.
func (s *Server) Run(ctx context.Context) error {
	var listener net.Listener
	var err error
	if s.facade != nil {
		if listener, err = s.config.Listener.listen(ctx, s.config.Log); err != nil {
			return err
		}
	}
	healthListener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.health.Addr)
	if err != nil {
		return fmt.Errorf("listen for probes and metrics: %w", err)
	}
	// Open requests still need the caches and queues while they drain, so these outlive ctx.
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	group, failed := errgroup.WithContext(background)
	group.Go(func() error { s.config.Engine.Run(failed); return nil })
	group.Go(func() error { return s.admission.events.Run(failed) })
	group.Go(func() error { s.admission.access.Run(failed); return nil })
	group.Go(func() error { return s.config.Sites.Run(failed, s.ready.sitesKnown) })
	group.Go(func() error { return s.admission.resources.Run(failed, s.ready.webhooksKnown) })
	if s.facade != nil {
		group.Go(func() error { return serve(s.facade, listener) })
		s.config.Log.InfoContext(ctx, "serving the FHIR and AHDS APIs", "listen", listener.Addr().String(), "publicURL", s.config.PublicURL)
	}
	stopAggregated := s.startAggregated(failed, group)
	group.Go(func() error { return serve(s.health, healthListener) })
	group.Go(func() error {
		select {
		case <-s.config.Engine.Synced():
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
	close(s.stopping)
	if s.facade != nil {
		wait(failed, closeDelay)
	}
	drained, done := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer done()
	stopAggregated(drained)
	if s.facade != nil {
		err = s.facade.Shutdown(drained)
	}
	s.config.Sites.CloseAudit(drained)
	s.audit.Close()
	err = errors.Join(err, s.health.Shutdown(drained), s.config.Tracing.stop(drained))
	cancel()
	return errors.Join(err, group.Wait())
}

func serve(s *http.Server, listener net.Listener) error {
	if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	}
	return nil
}
