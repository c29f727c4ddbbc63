package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/smoketest"
)

// checkOptions are the flags of the smoke test of a Site, which runs instead of a server.
type checkOptions struct {
	url, tokenFile, caFile string
	timeout                time.Duration
}

func (o *checkOptions) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.url, "check", "",
		"run a smoke test instead of serving: create, find and delete a Patient at this `URL` of a Site's FHIR API, such as https://fhir.example.org/site/1042/fhir, and exit")
	flags.StringVar(&o.tokenFile, "check-token-file", "", "`path` of the file with the smoke test's bearer token; required with --check")
	flags.StringVar(&o.caFile, "check-ca-file", "", "`path` of the file with the CA certificates that the smoke test trusts, in PEM; if unset, the smoke test trusts the CA certificates of the system")
	flags.DurationVar(&o.timeout, "check-timeout", 2*time.Minute, "time limit of the whole smoke test")
}

// wanted reports whether --check is set.
func (o *checkOptions) wanted() bool { return o.url != "" }

func (o *checkOptions) validate() error {
	if site, err := url.Parse(o.url); err != nil || site.Scheme != "http" && site.Scheme != "https" || site.Host == "" || site.RawQuery != "" {
		return fmt.Errorf("--check: %q is not the URL of a Site's FHIR API, such as https://fhir.example.org/site/1042/fhir", o.url)
	}
	if o.timeout <= 0 {
		return fmt.Errorf("--check-timeout: %s is not positive", o.timeout)
	}
	if o.tokenFile == "" {
		return errors.New("--check needs --check-token-file, because Sites refuse requests without a token")
	}
	return nil
}

func (o *checkOptions) run(ctx context.Context) error {
	return smoketest.Run(ctx, smoketest.Options{
		URL: strings.TrimRight(o.url, "/"), TokenFile: o.tokenFile, CAFile: o.caFile, Timeout: o.timeout, Out: os.Stdout,
	})
}
