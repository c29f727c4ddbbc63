package commands

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/cmd/kubectl-paddock/siteapi"
)

// tokenVariable is the environment variable with the token if no flag selects one.
const tokenVariable = "PADDOCK_TOKEN" //nolint:gosec // a name

// siteFlags are the flags of commands that send requests to the HTTP APIs of a Site.
type siteFlags struct {
	command *cobra.Command
	// server is the address of Paddock, account the ServiceAccount whose tokens are used.
	server, caFile, tokenFile, account string
}

func addSiteFlags(command *cobra.Command) *siteFlags {
	f := &siteFlags{command: command}
	flags := command.Flags()
	flags.StringVar(&f.server, "server", "", "URL of Paddock, such as https://fhir.example.org; if unset, status.url of the Site is used")
	flags.StringVar(&f.caFile, "server-ca-file", "", "path of a PEM file of CA certificates that verify the certificate of Paddock; if unset, the system's CA certificates are used")
	flags.StringVar(&f.tokenFile, "token-file", "", "path of the file with a token for the Site, read for each request; if this and --as-service-account are unset, the token in $"+tokenVariable+" is used")
	flags.StringVar(&f.account, "as-service-account", "", "name of a ServiceAccount in the namespace of the Site; its tokens are requested from kube-apiserver")
	return f
}

// check returns an error if the flags are invalid. It sends no request.
func (f *siteFlags) check() error {
	if f.account != "" && f.tokenFile != "" {
		return usagef(f.command, "--as-service-account and --token-file exclude each other; set only one of them")
	}
	if f.account == "" && f.tokenFile == "" && os.Getenv(tokenVariable) == "" {
		return usagef(f.command, "there is no token; set --as-service-account, --token-file or $%s", tokenVariable)
	}
	if f.server != "" {
		return checkURL(f.command, "server", f.server)
	}
	return nil
}

// checkURL returns an error if the value of a flag is not an http or https URL. The value of --server must
// not have a query either.
func checkURL(command *cobra.Command, flag, value string) error {
	parsed, err := url.Parse(value)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.RawQuery != "" && flag == "server" {
		return usagef(command, "--%s: %q is not an http or https URL", flag, value)
	}
	return nil
}

// openSite is a Site and what requests to it need.
type openSite struct {
	object *v1alpha1.Site
	base   string
	token  func(context.Context) (string, error)
	api    *siteapi.Client
}

// open finds a Site and makes a client for it. It returns an error if the Site does not hold its siteID,
// because another Site may serve the requests.
func (a *app) open(ctx context.Context, f *siteFlags, name string) (*openSite, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	c, err := a.connect()
	if err != nil {
		return nil, err
	}
	site, err := a.site(ctx, c, name)
	if err != nil {
		return nil, err
	}
	if !meta.IsStatusConditionTrue(site.Status.Conditions, v1alpha1.ConditionAccepted) {
		return nil, fmt.Errorf("the Site %s/%s is not accepted, so requests for its siteID %q may reach another Site; see `%s status`", site.Namespace, site.Name, site.SiteID(), a.Name)
	}
	base := site.Status.URL
	if f.server != "" {
		base = strings.TrimSuffix(f.server, "/") + "/site/" + site.SiteID()
	}
	if base == "" {
		return nil, fmt.Errorf("the Site %s/%s has no status.url yet; see `%s status`, or set --server", site.Namespace, site.Name, a.Name)
	}
	opened := &openSite{object: site, base: base, token: a.tokens(c, f, site)}
	config := siteapi.Config{BaseURL: base, Token: opened.token}
	if f.caFile != "" {
		if config.CertificateAuthorities, err = os.ReadFile(f.caFile); err != nil {
			return nil, fmt.Errorf("read --server-ca-file: %w", err)
		}
	}
	if opened.api, err = siteapi.New(config); err != nil {
		return nil, fmt.Errorf("--server-ca-file: %w", err)
	}
	return opened, nil
}

// tokens returns the function that returns the token of a request.
func (a *app) tokens(c *cluster, f *siteFlags, site *v1alpha1.Site) func(context.Context) (string, error) {
	if f.account == "" {
		return func(context.Context) (string, error) { return readToken(f.tokenFile) }
	}
	return a.keepToken(func(ctx context.Context) (issuedToken, error) { return a.issue(ctx, c, site, f.account, minTokenLife) })
}

// keepToken returns a function that returns the token that issue returns, which it renews before the token
// expires. If the renewal fails, it returns the former token while that is valid.
func (a *app) keepToken(issue func(context.Context) (issuedToken, error)) func(context.Context) (string, error) {
	var lock sync.Mutex
	var current issuedToken
	return func(ctx context.Context) (string, error) {
		lock.Lock()
		defer lock.Unlock()
		if current.Token == "" || !a.now().Before(current.renewAt()) {
			made, err := issue(ctx)
			switch {
			case err == nil:
				current = made
			case !a.now().Before(current.ExpiresAt):
				return "", err
			}
		}
		return current.Token, nil
	}
}

func readToken(file string) (string, error) {
	text := os.Getenv(tokenVariable)
	if file != "" {
		read, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read --token-file: %w", err)
		}
		text = string(read)
	}
	text = strings.TrimSpace(text)
	if text == "" || strings.ContainsAny(text, " \r\n\t") {
		return "", errors.New("the token in --token-file or $" + tokenVariable + " must not be empty or contain spaces or line breaks")
	}
	return text, nil
}
