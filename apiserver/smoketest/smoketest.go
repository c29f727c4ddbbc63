// Package smoketest is the smoke test of an installation. It creates, finds and deletes one record
// of a Site over its FHIR API.
package smoketest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// retryInterval is the pause between attempts of a step. A new Site or right may not have reached
	// every replica yet.
	retryInterval  = time.Second
	requestTimeout = 10 * time.Second
	maxResponse    = 1 << 20 // bytes of a response's body that are read
	patientID      = "paddock-check"
)

// Options configure the smoke test.
type Options struct {
	// URL is the base URL of the Site's FHIR API, such as https://fhir.example.org/site/1042/fhir.
	URL string
	// TokenFile is the path of a file with the bearer token of a caller who may read, search, write
	// and delete Patients.
	TokenFile string
	// CAFile is the path of a PEM file with the CA certificates to trust. Default: the CA
	// certificates of the system.
	CAFile string
	// Timeout is the time limit of the whole test. It must be set.
	Timeout time.Duration
	// Out receives a line of text for each completed step.
	Out io.Writer
}

// checker runs the steps of one smoke test.
type checker struct {
	Options
	client *http.Client
}

// Run creates a Patient, reads it, searches for it and deletes it. It repeats a failed step every
// retryInterval until Options.Timeout, and then returns the last error of the step. A failure that no
// repetition can change ends Run at once: see permanent.
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
		{"read the patient", http.MethodGet, one, "", succeeded},
		{"search for the patient", http.MethodGet, "/patient?_id=" + patientID, "", foundOne},
		{"delete the patient", http.MethodDelete, one, "", succeeded},
		{"read the deleted patient", http.MethodGet, one, "", isGone},
	}
	for _, step := range steps {
		var last error
		err := wait.PollUntilContextCancel(ctx, retryInterval, true, func(ctx context.Context) (bool, error) {
			status, body, err := c.send(ctx, step.method, step.path, step.body)
			if err == nil {
				err = step.want(status, body)
			}
			if err != nil && (last == nil || ctx.Err() == nil) {
				last = err
			}
			if permanent(status, err) {
				return false, errPermanent
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

// errPermanent ends a test that fails in the same way however often it is repeated.
var errPermanent = errors.New("repeating the step would not help")

// refusals are the statuses of responses that stay the same for the same request. Other statuses can
// change while an installation starts: a Site (404) or a right (403) reaches the replicas one by one,
// and servers become available (503).
var refusals = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
	http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusNotImplemented,
}

// permanent reports whether a step fails with err in each repetition: the token is missing or
// refused, the address has another scheme, or the server does not understand the request.
func permanent(status int, err error) bool {
	return err != nil && (slices.Contains(refusals, status) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, http.ErrSchemeMismatch))
}

func newClient(caFile string) (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("read the CA certificate: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read the CA certificate: %s has no certificate in PEM", caFile)
		}
	}
	return &http.Client{
		Timeout:   requestTimeout,
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config},
	}, nil
}

// send sends one request. It reads the token each time, because the kubelet renews it.
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
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	return response.StatusCode, answer, err
}

func succeeded(status int, body []byte) error {
	if status < 200 || status > 299 {
		return fmt.Errorf("got status %d, want 2xx: %s", status, body)
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
		return fmt.Errorf("parse the response to the search: %w", err)
	}
	if len(bundle.Entry) != 1 {
		return fmt.Errorf("got %d records, want 1", len(bundle.Entry))
	}
	return nil
}
