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
	publicURL string
	namespace string
	// connectionsNamespace has the Secrets with connections to databases, for the API servers.
	connectionsNamespace string
	// webhooksNamespace has the Secrets of webhooks, for the delivery process.
	webhooksNamespace string
	leaderElect       bool
	metricsAddress    string
	healthAddress     string
	// webhookAddress is the address of the admission webhook, or "0" for none. webhookSecret is the
	// Secret with its certificate.
	webhookAddress, webhookSecret string
	// secrets selects the namespaces whose Secrets the controller can read.
	secrets secrets.Access
	// postgresNetworks are allowed for databases in addition to public addresses.
	postgresNetworks egress.Networks
	// issuerNetworks are allowed for issuers in addition to public addresses.
	issuerNetworks egress.Networks
	// postgresImage and cloudNativePGImage are the images of provisioned databases, without a tag.
	postgresImage, cloudNativePGImage string
	// exposure has the settings for spec.exposure of Sites.
	exposure exposureOptions
	// certificateNames are the API servers' DNS names. If empty, the controller issues no certificate
	// for them.
	certificateNames []string
	// pageTokenSecret is the Secret for the keys of tokens. If empty, the controller creates no keys.
	pageTokenSecret string
	// webhookNames are the DNS names of the webhook server. If empty, the controller issues no
	// certificate for it.
	webhookNames []string

	logLevel    slog.Level
	showVersion bool
}

// parseOptions parses and validates the command line. It writes the usage text to out.
func parseOptions(args []string, out io.Writer) (options, error) {
	opts := options{}
	fs := flag.NewFlagSet("controller", flag.ContinueOnError)
	fs.SetOutput(out)
	// controller-runtime defines --kubeconfig and reads it from flag.CommandLine.
	config.RegisterFlags(flag.CommandLine)
	kubeconfig := flag.CommandLine.Lookup(config.KubeconfigFlagName)
	fs.Var(kubeconfig.Value, kubeconfig.Name, "`path` of a kubeconfig; if unset, $KUBECONFIG, the pod's service account or ~/.kube/config is used, in this order")
	fs.StringVar(&opts.publicURL, "public-url", "",
		"base `URL` at which clients reach the API servers, such as https://fhir.example.org; a Site is at <public-url>/site/<siteID>. Required")
	fs.StringVar(&opts.namespace, "namespace", "paddock-system", "`namespace` of the controller, which contains its Lease, certificates and keys")
	fs.StringVar(&opts.connectionsNamespace, "connections-namespace", "paddock-connections",
		"`namespace` in which the controller stores the database connections for the API servers; it must contain nothing else")
	fs.StringVar(&opts.webhooksNamespace, "webhooks-namespace", "paddock-webhooks",
		"`namespace` in which the controller stores the Secrets of webhooks for API servers with --serve=delivery; it must contain nothing else")
	fs.Var(&opts.postgresNetworks, "postgres-networks", "comma-separated `CIDRs` allowed for Sites' databases in addition to public addresses, such as 10.0.0.0/8; loopback and link-local addresses are allowed only by networks that lie within their ranges, such as 127.0.0.0/8; must equal the API servers' flag")
	fs.Var(&opts.issuerNetworks, "issuer-networks", "comma-separated `CIDRs` allowed for Sites' token issuers in addition to public addresses, such as 10.0.0.0/8; loopback and link-local addresses are allowed only by networks that lie within their ranges, such as 127.0.0.0/8; must equal the API servers' flag")
	fs.StringVar(&opts.postgresImage, "postgres-image", "docker.io/library/postgres",
		"`image` of provisioned databases with engine StatefulSet, without a tag, which follows the conventions of docker.io/library/postgres; the version in the Site is the tag")
	fs.StringVar(&opts.cloudNativePGImage, "cloudnativepg-image", "ghcr.io/cloudnative-pg/postgresql",
		"`image` of provisioned databases with engine CloudNativePG, without a tag; the version in the Site is the tag")
	fs.Func("certificate-names", "comma-separated DNS `names` of the API servers' certificate, which the controller issues and renews in Secret "+
		certificateSecret+" in --namespace; if unset, the controller issues no such certificate", func(names string) error {
		opts.certificateNames = strings.Split(names, ",")
		return checkNames(opts.certificateNames)
	})
	fs.Func("webhook-certificate-names", "comma-separated DNS `names` of the admission webhook's certificate, which the controller issues and renews in "+
		"--webhook-secret; if unset, the controller issues no such certificate", func(names string) error {
		opts.webhookNames = strings.Split(names, ",")
		return checkNames(opts.webhookNames)
	})
	fs.StringVar(&opts.pageTokenSecret, "page-token-secret", "",
		"`Secret` in --namespace in which the controller creates and rotates the keys that sign page tokens, hold tokens and calendar feed URLs; if unset, the controller creates no keys")
	opts.secrets = secrets.Cluster
	fs.Func("secrets", "`scope` of the Secrets that the controller can read: Cluster (all), or Namespaced (those of namespaces in which ClusterRole "+
		secrets.Role+" is bound to the controller) (default Cluster)", func(access string) error {
		opts.secrets = secrets.Access(access)
		if opts.secrets != secrets.Cluster && opts.secrets != secrets.Namespaced {
			return errors.New("must be Cluster or Namespaced")
		}
		return nil
	})
	fs.StringVar(&opts.webhookSecret, "webhook-secret", webhookSecret, "`Secret` in --namespace with the certificate of the admission webhook: tls.crt and tls.key")
	fs.StringVar(&opts.webhookAddress, "webhook-address", ":9443", "`address` of the admission webhook, which is served over TLS; 0 disables it")
	opts.exposure.register(fs)
	fs.BoolVar(&opts.leaderElect, "leader-elect", true, "use leader election, so that only one of several replicas reconciles")
	fs.StringVar(&opts.metricsAddress, "metrics-address", "127.0.0.1:8082", "`address` of /metrics, which is served over plain HTTP; 0 disables it")
	fs.StringVar(&opts.healthAddress, "health-address", ":8081", "`address` of /livez and /readyz, which are served over plain HTTP; 0 disables it")
	fs.TextVar(&opts.logLevel, "log-level", slog.LevelInfo, "minimum `level` of logged messages: debug, info, warn or error")
	fs.BoolVar(&opts.showVersion, "version", false, "print the version and exit")
	if err := fs.Parse(args); err != nil {
		return opts, err
	}
	if fs.NArg() > 0 {
		return opts, fmt.Errorf("unexpected argument %q: the command takes only flags", fs.Arg(0))
	}
	if opts.showVersion {
		return opts, nil
	}
	_, _, err := opts.webhookHostPort()
	return opts, errors.Join(opts.checkPublicURL(), opts.checkNamespaces(), err, checkImage("postgres-image", opts.postgresImage),
		checkImage("cloudnativepg-image", opts.cloudNativePGImage), opts.exposure.check())
}

// checkNamespaces returns an error if a namespace is not valid, or serves two purposes: API servers can read all
// Secrets of the connections namespace, and those with --serve=delivery all of the webhooks namespace.
func (o *options) checkNamespaces() error {
	flags := []struct{ name, value string }{
		{"namespace", o.namespace}, {"connections-namespace", o.connectionsNamespace}, {"webhooks-namespace", o.webhooksNamespace},
	}
	for i, flag := range flags {
		if faults := validation.IsDNS1123Label(flag.value); len(faults) > 0 {
			return fmt.Errorf("--%s: %q is not the name of a namespace: %s", flag.name, flag.value, strings.Join(faults, "; "))
		}
		for _, other := range flags[i+1:] {
			if flag.value == other.value {
				return fmt.Errorf("--%s and --%s must differ: both are %q", flag.name, other.name, flag.value)
			}
		}
	}
	return nil
}

// checkNames returns an error if a name is not a DNS name.
func checkNames(names []string) error {
	for _, name := range names {
		if faults := validation.IsDNS1123Subdomain(name); len(faults) > 0 {
			return fmt.Errorf("%q is not a valid DNS name: %s", name, strings.Join(faults, "; "))
		}
	}
	return nil
}

// webhookHostPort returns host and port of --webhook-address, or port 0 if the webhook is disabled.
func (o *options) webhookHostPort() (host string, port int, err error) {
	if o.webhookAddress == "0" {
		return "", 0, nil
	}
	host, text, err := net.SplitHostPort(o.webhookAddress)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("--webhook-address: %q must be an address with a port, such as :9443, or 0", o.webhookAddress)
	}
	return host, port, nil
}

// checkImage returns an error that names the flag if the image is empty or has a tag or digest.
func checkImage(flag, image string) error {
	if name := image[strings.LastIndexByte(image, '/')+1:]; name == "" || strings.ContainsAny(name, ":@") {
		return fmt.Errorf("--%s: %q must be an image without a tag or digest, such as docker.io/library/postgres", flag, image)
	}
	return nil
}

func (o *options) checkPublicURL() error {
	u, err := url.Parse(o.publicURL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" ||
		u.User != nil || strings.ContainsAny(o.publicURL, "?#") {
		// The value is not quoted, because it can have a password, and the error is logged.
		return errors.New("--public-url must be an http or https URL without user, query and fragment, such as https://fhir.example.org")
	}
	o.publicURL = strings.TrimRight(o.publicURL, "/")
	return nil
}
