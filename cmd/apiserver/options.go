package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"

	"github.com/paddock-health/paddock/apiserver/egress"
	"github.com/paddock-health/paddock/apiserver/server"
)

// options are the flags of the command.
type options struct {
	serve         serveList
	kubeconfig    string
	healthAddress string
	publicURL     string
	keys          keyOptions
	listener      server.Listener
	// connectionsNamespace is where the controller stores the connections to databases.
	connectionsNamespace string
	// postgresNetworks are allowed for databases in addition to public addresses.
	postgresNetworks egress.Networks
	// issuerNetworks are allowed for token issuers in addition to public addresses.
	issuerNetworks egress.Networks
	maxRecords     int64
	maxBytes       int64
	maxInflight    int
	logLevel       slog.Level
	showVersion    bool
	auditLogPath   string
	aggregated     aggregatedOptions
	delivery       deliveryOptions
	profiling      bool
	check          checkOptions
}

// parseOptions parses and validates the command line. It writes the usage text to out.
func parseOptions(args []string, out io.Writer) (*options, error) {
	o := &options{serve: serveList{serveFacade: true}}
	flags := flag.NewFlagSet("apiserver", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Func("serve", "comma-separated `list` of what to serve: facade (the FHIR and AHDS APIs), aggregated (the same records as Kubernetes objects), "+
		"or delivery alone (sends events to webhooks) (default facade)", o.serve.set)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`path` of a kubeconfig; if unset, the pod's service account is used")
	flags.StringVar(&o.listener.Address, "listen-address", ":8443", "`address` of the FHIR and AHDS APIs")
	flags.StringVar(&o.healthAddress, "health-address", ":8081", "`address` of /livez, /readyz, /version and /metrics, which are served over plain HTTP")
	flags.StringVar(&o.publicURL, "public-url", "",
		"base `URL` at which clients reach the servers, such as https://fhir.example.org; links in responses start with it. Required unless --serve=delivery or --check is set")
	o.keys.addFlags(flags) // keys.go
	flags.StringVar(&o.listener.CertFile, "tls-cert-file", "", "`path` of the file with the certificate chain, reloaded when it changes; if unset, the FHIR and AHDS APIs are served over plain HTTP, for use behind a proxy or on loopback")
	flags.StringVar(&o.listener.KeyFile, "tls-private-key-file", "", "`path` of the file with the private key of --tls-cert-file; required with that flag")
	flags.StringVar(&o.connectionsNamespace, "connections-namespace", "paddock-connections",
		"`namespace` in which the controller stores the database connections for the API servers; it must contain nothing else")
	flags.Var(&o.postgresNetworks, "postgres-networks", "comma-separated `CIDRs` allowed for Sites' databases in addition to public addresses, such as 10.0.0.0/8; loopback and link-local addresses are allowed only by networks that lie within their ranges, such as 127.0.0.0/8; must equal the controller's flag")
	flags.Var(&o.issuerNetworks, "issuer-networks", "comma-separated `CIDRs` allowed for Sites' token issuers in addition to public addresses, such as 10.0.0.0/8; loopback and link-local addresses are allowed only by networks that lie within their ranges, such as 127.0.0.0/8; must equal the controller's flag")
	flags.Int64Var(&o.maxRecords, "cluster-max-records", 20000, "maximum `number` of records that all Sites together may store as objects of the cluster; writes of further records are refused")
	flags.Int64Var(&o.maxBytes, "cluster-max-bytes", 512<<20, "maximum `number` of bytes that all Sites together may store as objects of the cluster; writes that need more are refused")
	flags.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "minimum `level` of logged messages: debug, info, warn or error")
	flags.StringVar(&o.auditLogPath, "audit-log-path", "", "`path` of a file to which each audit entry is appended as a line of JSON, in addition to the Site's storage; rotate it by copying and truncating (default stdout)")
	flags.IntVar(&o.listener.MaxConnections, "max-connections", 10000, "maximum `number` of open connections to the FHIR and AHDS APIs; further connections wait; 0 means no limit")
	flags.IntVar(&o.listener.MaxConnectionsPerAddress, "max-connections-per-address", 2000,
		"maximum `number` of open connections to the FHIR and AHDS APIs from one client address; further connections are closed; the clients behind a proxy share one address; 0 means no limit")
	flags.IntVar(&o.maxInflight, "max-requests-inflight", 600,
		"maximum `number` of requests to the FHIR and AHDS APIs that run concurrently, of which a Site may have three quarters; further requests are refused with 429; streams of deliveries do not count; 0 means no limit")
	flags.BoolVar(&o.profiling, "profiling", false, "sample allocations, and serve /debug/pprof at --health-address")
	o.aggregated.addFlags(flags)
	o.delivery.addFlags(flags)
	o.check.addFlags(flags)
	flags.BoolVar(&o.showVersion, "version", false, "print the version and exit")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: the command takes only flags", flags.Arg(0))
	}
	if o.showVersion {
		return o, nil
	}
	return o, o.validate()
}

func (o *options) validate() error {
	if o.check.wanted() {
		return o.check.validate()
	}
	if o.serve[serveDelivery] {
		if len(o.serve) > 1 {
			return errors.New("--serve: delivery must be the only value, because its process may read Secrets that processes of the APIs must not read")
		}
		return nil
	}
	if o.serve[serveAggregated] {
		if err := o.aggregated.check(); err != nil {
			return err
		}
	}
	return o.checkFacade()
}

// checkFacade validates the flags of the FHIR and AHDS APIs, and opens the key files. A process that
// serves only the aggregated API needs these flags, too.
func (o *options) checkFacade() error {
	base, err := url.Parse(o.publicURL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil || strings.ContainsAny(o.publicURL, "?#") {
		// The value is not quoted, because it can have a password, and the error is logged.
		return errors.New("--public-url must be an http or https URL without user, query and fragment, such as https://fhir.example.org")
	}
	o.publicURL = strings.TrimRight(o.publicURL, "/")
	if o.listener.MaxConnections < 0 || o.listener.MaxConnectionsPerAddress < 0 {
		return errors.New("--max-connections and --max-connections-per-address must not be negative")
	}
	if o.maxInflight < 0 {
		return errors.New("--max-requests-inflight must not be negative")
	}
	if (o.listener.CertFile == "") != (o.listener.KeyFile == "") {
		return errors.New("set both --tls-cert-file and --tls-private-key-file, or neither")
	}
	return o.keys.open()
}

func (o *options) health() server.Health {
	return server.Health{Address: o.healthAddress, Version: version, Profiling: o.profiling}
}
