package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/paddock-health/paddock/apiserver/egress"
	"github.com/paddock-health/paddock/controllers/secrets"
)

type options struct {
	publicURL      string
	namespace      string
	leaderElect    bool
	metricsAddress string
	healthAddress  string
	// webhookAddress is where kube-apiserver asks about Sites, "0" for nowhere, and webhookSecret
	// has the certificate.
	webhookAddress, webhookSecret string
	// secrets is where the controller may read Secrets.
	secrets secrets.Access
	// postgresNetworks may be reached beside public addresses.
	postgresNetworks egress.Networks
	// The images of databases that Sites have made, without a tag.
	postgresImage, cloudNativePGImage string
	// exposure says which addresses Sites may have.
	exposure exposureOptions
	// certificateNames are the API servers' DNS names, if the controller keeps their certificate.
	certificateNames []string
	// pageTokenSecret holds the key of page tokens, if the controller makes it.
	pageTokenSecret string
	// webhookNames are the DNS names of the webhook server, if the controller keeps its certificate.
	webhookNames []string

	logLevel    slog.Level
	showVersion bool
}

// parseOptions reads the command line; out gets the usage text.
func parseOptions(args []string, out io.Writer) (options, error) {
	opts := options{}
	fs := flag.NewFlagSet("controller", flag.ContinueOnError)
	fs.SetOutput(out)
	// --kubeconfig is the library's own, and found by it in the process's flag set.
	config.RegisterFlags(flag.CommandLine)
	kubeconfig := flag.CommandLine.Lookup(config.KubeconfigFlagName)
	fs.Var(kubeconfig.Value, kubeconfig.Name, "path of a kubeconfig; without it, $KUBECONFIG, the pod's service account, ~/.kube/config")
	fs.StringVar(&opts.publicURL, "public-url", "",
		"address under which the API servers are reached, such as https://fhir.example.org; a site is at <public-url>/site/<siteID>")
	fs.StringVar(&opts.namespace, "namespace", "paddock-system", "the operator's namespace: of the leader's lease, and of what API servers are handed")
	fs.Var(&opts.postgresNetworks, "postgres-networks", "networks, with a comma between, in which Sites' databases may be besides at public addresses, such as 10.0.0.0/8; loopback and link-local addresses need networks of their own; the same for the API servers")
	fs.StringVar(&opts.postgresImage, "postgres-image", "docker.io/library/postgres",
		"image of the databases that Sites have made with engine StatefulSet, without a tag: that is the version. It must keep the conventions of the official image")
	fs.StringVar(&opts.cloudNativePGImage, "cloudnativepg-image", "ghcr.io/cloudnative-pg/postgresql",
		"image of the databases that Sites have made with engine CloudNativePG, without a tag")
	fs.Func("certificate-names", "DNS names, with a comma between, of the certificate for the API servers that the controller keeps in Secret "+
		certificateSecret+" of its namespace; without any it keeps none", func(names string) error {
		opts.certificateNames = strings.Split(names, ",")
		return checkNames(opts.certificateNames)
	})
	fs.Func("webhook-certificate-names", "DNS names, with a comma between, of the certificate of the admission webhook that the controller keeps in the Secret "+
		"named by --webhook-secret; without any it keeps none", func(names string) error {
		opts.webhookNames = strings.Split(names, ",")
		return checkNames(opts.webhookNames)
	})
	fs.StringVar(&opts.pageTokenSecret, "page-token-secret", "",
		"Secret of the operator's namespace for which the controller makes the key of page tokens, which the API servers are given by --page-token-key-file; without it the controller makes none")
	opts.secrets = secrets.Cluster
	fs.Func("secrets", "where the controller may read Secrets: Cluster, everywhere, or Namespaced, where the owner of a namespace bound ClusterRole "+
		secrets.Role+" (default Cluster)", func(access string) error {
		opts.secrets = secrets.Access(access)
		if opts.secrets != secrets.Cluster && opts.secrets != secrets.Namespaced {
			return errors.New("it must be Cluster or Namespaced")
		}
		return nil
	})
	fs.StringVar(&opts.webhookSecret, "webhook-secret", webhookSecret, "Secret of the operator's namespace with the certificate of the admission webhook: tls.crt and tls.key")
	fs.StringVar(&opts.webhookAddress, "webhook-address", ":9443", "address of the admission webhook, TLS; 0 turns it off")
	opts.exposure.register(fs)
	fs.BoolVar(&opts.leaderElect, "leader-elect", true, "run as one of several, of which one works")
	fs.StringVar(&opts.metricsAddress, "metrics-address", "127.0.0.1:8082", "address of /metrics, plain HTTP; 0 turns it off")
	fs.StringVar(&opts.healthAddress, "health-address", ":8081", "address of /livez and /readyz, plain HTTP; 0 turns it off")
	fs.TextVar(&opts.logLevel, "log-level", slog.LevelInfo, "debug, info, warn or error")
	fs.BoolVar(&opts.showVersion, "version", false, "print the version and exit")
	if err := fs.Parse(args); err != nil {
		return opts, err
	}
	if fs.NArg() > 0 {
		return opts, fmt.Errorf("unexpected argument %q: there are flags only", fs.Arg(0))
	}
	if opts.showVersion {
		return opts, nil
	}
	_, _, err := opts.webhookHostPort()
	return opts, errors.Join(opts.checkPublicURL(), err, checkImage("postgres-image", opts.postgresImage),
		checkImage("cloudnativepg-image", opts.cloudNativePGImage), opts.exposure.check())
}

// checkNames refuses what is not the name of a host.
func checkNames(names []string) error {
	for _, name := range names {
		if faults := validation.IsDNS1123Subdomain(name); len(faults) > 0 {
			return fmt.Errorf("%q is not the DNS name of a host: %s", name, strings.Join(faults, "; "))
		}
	}
	return nil
}

// webhookHostPort is the address of the webhook server in its parts.
func (o *options) webhookHostPort() (host string, port int, err error) {
	if o.webhookAddress == "0" {
		return "", 0, nil
	}
	host, text, err := net.SplitHostPort(o.webhookAddress)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("--webhook-address: %q is not an address with a port, such as :9443, nor 0", o.webhookAddress)
	}
	return host, port, nil
}

// checkImage refuses what a tag cannot be added to.
func checkImage(flag, image string) error {
	if name := image[strings.LastIndexByte(image, '/')+1:]; name == "" || strings.ContainsAny(name, ":@") {
		return fmt.Errorf("--%s: %q is not the name of an image without a tag or digest, such as docker.io/library/postgres", flag, image)
	}
	return nil
}

func (o *options) checkPublicURL() error {
	u, err := url.Parse(o.publicURL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("--public-url: %q is not an http or https address without user, query and fragment, "+
			"such as https://fhir.example.org", o.publicURL)
	}
	o.publicURL = strings.TrimRight(o.publicURL, "/")
	return nil
}
