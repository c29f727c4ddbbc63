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

	"github.com/paddock-health/paddock/apiserver/check"
)

// checkOptions are the flags of the check of a site, which runs instead of a server.
type checkOptions struct {
	url, tokenFile, caFile string
	timeout                time.Duration
}

func (o *checkOptions) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.url, "check", "",
		"serve nothing: write, find and delete a Patient at this address of a site's FHIR API, such as https://fhir.example.org/site/1042/fhir, and exit")
	flags.StringVar(&o.tokenFile, "check-token-file", "", "file with the bearer token to check with")
	flags.StringVar(&o.caFile, "check-ca-file", "", "certificate of the authority to check with; without it, the system's")
	flags.DurationVar(&o.timeout, "check-timeout", 2*time.Minute, "how long all of the check may take")
}

func (o *checkOptions) wanted() bool { return o.url != "" }

func (o *checkOptions) validate() error {
	if site, err := url.Parse(o.url); err != nil || site.Scheme != "http" && site.Scheme != "https" || site.Host == "" || site.RawQuery != "" {
		return fmt.Errorf("--check: %q is not the address of a site's FHIR API, such as https://fhir.example.org/site/1042/fhir", o.url)
	}
	if o.timeout <= 0 {
		return fmt.Errorf("--check-timeout: %s is no time to check in: give a positive one", o.timeout)
	}
	if o.tokenFile == "" {
		return errors.New("--check needs --check-token-file: sites answer nobody without a token")
	}
	return nil
}

func (o *checkOptions) run(ctx context.Context) error {
	return check.Run(ctx, check.Options{
		URL: strings.TrimRight(o.url, "/"), TokenFile: o.tokenFile, CAFile: o.caFile, Timeout: o.timeout, Out: os.Stdout,
	})
}
