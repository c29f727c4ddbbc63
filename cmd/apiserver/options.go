package main

import (
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/paddock-health/paddock/apiserver/egress"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
)

// options are the flags of the command.
type options struct {
	serve         serveList
	kubeconfig    string
	listenAddress string
	healthAddress string
	publicURL     string
	tokenKeyFile  string
	certFile      string
	keyFile       string
	namespace     string
	// postgresNetworks may be reached beside public addresses.
	postgresNetworks egress.Networks
	maxRecords       int64
	maxBytes         int64
	logLevel         slog.Level
	showVersion      bool
	aggregated       aggregatedOptions
	profiling        bool
	check            checkOptions
	// tokenKey is what tokenKeyFile holds.
	tokenKey []byte
}

// parseOptions reads the command line; out gets the usage text.
func parseOptions(args []string, out io.Writer) (*options, error) {
	o := &options{serve: serveList{serveFacade: true}}
	flags := flag.NewFlagSet("apiserver", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Func("serve", "what to serve, with a comma between: facade, the FHIR API; aggregated, the same records as Kubernetes objects (default facade)", o.serve.set)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "path of a kubeconfig; without it, the pod's service account")
	flags.StringVar(&o.listenAddress, "listen-address", ":8443", "address of the FHIR API")
	flags.StringVar(&o.healthAddress, "health-address", ":8081", "address of /livez, /readyz, /version and /metrics, plain HTTP")
	flags.StringVar(&o.publicURL, "public-url", "",
		"address under which clients reach the servers, such as https://fhir.example.org; links in answers start with it")
	flags.StringVar(&o.tokenKeyFile, "page-token-key-file", "",
		"file with the key, 32 bytes in base64, that signs page tokens; the same on all replicas")
	flags.StringVar(&o.certFile, "tls-cert-file", "", "certificate chain, read again when it changes; without it, plain HTTP, for use behind a proxy or on loopback")
	flags.StringVar(&o.keyFile, "tls-private-key-file", "", "private key of the certificate")
	flags.StringVar(&o.namespace, "namespace", "paddock-system", "the operator's namespace, where the connections to databases are")
	flags.Var(&o.postgresNetworks, "postgres-networks", "networks, with a comma between, in which Sites' databases may be besides at public addresses, such as 10.0.0.0/8; loopback and link-local addresses need networks of their own; the same for the controller")
	flags.Int64Var(&o.maxRecords, "cluster-max-records", 20000, "most records that all sites together may keep as objects of the cluster")
	flags.Int64Var(&o.maxBytes, "cluster-max-bytes", 512<<20, "most bytes that all sites together may keep as objects of the cluster")
	flags.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "debug, info, warn or error")
	flags.BoolVar(&o.profiling, "profiling", false, "serve /debug/pprof at the health address")
	o.aggregated.addFlags(flags)
	o.check.addFlags(flags)
	flags.BoolVar(&o.showVersion, "version", false, "print the version and exit")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: there are flags only", flags.Arg(0))
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
	if o.serve[serveAggregated] {
		if err := o.aggregated.check(); err != nil {
			return err
		}
	}
	return o.checkFacade()
}

// checkFacade checks what the FHIR and AHDS APIs need, which the aggregated API hosts too.
func (o *options) checkFacade() error {
	base, err := url.Parse(o.publicURL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" || base.Fragment != "" {
		return fmt.Errorf("--public-url: %q is not an absolute http or https URL", o.publicURL)
	}
	o.publicURL = strings.TrimRight(o.publicURL, "/")
	if (o.certFile == "") != (o.keyFile == "") {
		return fmt.Errorf("--tls-cert-file and --tls-private-key-file go together")
	}
	encoded, err := os.ReadFile(o.tokenKeyFile)
	if err != nil {
		return fmt.Errorf("--page-token-key-file: %w", err)
	}
	o.tokenKey, err = base64.StdEncoding.DecodeString(strings.TrimSpace(string(encoded)))
	if err != nil || len(o.tokenKey) != search.TokenKeySize {
		return fmt.Errorf("--page-token-key-file: %s does not hold %d bytes in base64", o.tokenKeyFile, search.TokenKeySize)
	}
	return nil
}
