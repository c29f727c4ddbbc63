// Package check writes, finds and removes one record of a site over HTTP, as an installation's
// own test. It knows the FHIR API's paths and nothing of what is behind them.
package check

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// interval is that of trying again what a new site, a new right or another replica does not
	// know yet.
	interval       = time.Second
	requestTimeout = 10 * time.Second
	maxAnswer      = 1 << 20
	patientID      = "paddock-check"
)

// Options say which site to check, and as whom.
type Options struct {
	// URL is the site's FHIR API, such as https://fhir.example.org/site/1042/fhir.
	URL string
	// TokenFile holds the bearer token of one who may write Patients of the site.
	TokenFile string
	// CAFile holds the authority of the server's certificate. Empty: the system's.
	CAFile string
	// Timeout is for all of it.
	Timeout time.Duration
	// Out gets a line for each step that is done.
	Out io.Writer
}

type checker struct {
	Options
	client *http.Client
}

// Run creates a Patient, reads it, searches for it and deletes it.
func Run(ctx context.Context, o Options) error {
	client, err := newClient(o.CAFile)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	c := &checker{Options: o, client: client}
	const patient = `{"resourceType":"Patient","id":"` + patientID + `","active":true}`
	one := "/patient/" + patientID
	steps := []struct {
		name, method, path, body string
		want                     func(status int, body []byte) error
	}{
		{"create a patient", http.MethodPut, one, patient, succeeded},
		{"read it", http.MethodGet, one, "", succeeded},
		{"find it", http.MethodGet, "/patient?_id=" + patientID, "", foundOne},
		{"delete it", http.MethodDelete, one, "", succeeded},
		{"miss it", http.MethodGet, one, "", isGone},
	}
	for _, step := range steps {
		var last error
		err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
			status, body, err := c.send(ctx, step.method, step.path, step.body)
			if err == nil {
				err = step.want(status, body)
			}
			if err != nil && (last == nil || ctx.Err() == nil) {
				last = err
			}
			return err == nil, nil
		})
		if err != nil {
			return fmt.Errorf("%s: %s %s: %w", step.name, step.method, c.URL+step.path, errors.Join(last, err))
		}
		fmt.Fprintln(o.Out, step.name+": done")
	}
	return nil
}

func newClient(caFile string) (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("read the authority: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read the authority: %s holds no certificate in PEM", caFile)
		}
	}
	return &http.Client{
		Timeout:   requestTimeout,
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config},
	}, nil
}

// send sends one request. The token is read each time: the kubelet renews it.
func (c *checker) send(ctx context.Context, method, path, body string) (int, []byte, error) {
	token, err := os.ReadFile(c.TokenFile)
	if err != nil {
		return 0, nil, fmt.Errorf("read the token: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	if body != "" {
		request.Header.Set("Content-Type", "application/fhir+json")
	}
	response, err := c.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return response.StatusCode, answer, err
}

func succeeded(status int, body []byte) error {
	if status < 200 || status > 299 {
		return fmt.Errorf("got status %d, want one of success: %s", status, body)
	}
	return nil
}

func isGone(status int, body []byte) error {
	if status != http.StatusGone && status != http.StatusNotFound {
		return fmt.Errorf("got status %d, want %d or %d: %s", status, http.StatusGone, http.StatusNotFound, body)
	}
	return nil
}

func foundOne(status int, body []byte) error {
	if err := succeeded(status, body); err != nil {
		return err
	}
	var bundle struct {
		Entry []json.RawMessage `json:"entry"`
	}
	if err := json.Unmarshal(body, &bundle); err != nil {
		return fmt.Errorf("read the search's answer: %w", err)
	}
	if len(bundle.Entry) != 1 {
		return fmt.Errorf("got %d records, want 1", len(bundle.Entry))
	}
	return nil
}
