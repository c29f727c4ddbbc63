// Package siteapi sends requests to the HTTP APIs of one site.
package siteapi

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
	"net/url"
	"strings"
	"time"
)

const (
	// requestTimeout is the time limit of a request and its response. A query of the audit log may
	// take 30 s.
	requestTimeout = time.Minute
	// maxResponse is the maximum number of bytes of a response. A longer one is an error.
	maxResponse = 256 << 20
	// pageSize is the maximum pageSize of the lists of the AHDS API.
	pageSize = "100"
)

// Config has the settings of a Client.
type Config struct {
	// BaseURL is the address of the site: https://fhir.example.org/site/1042. Required.
	BaseURL string
	// Token returns the bearer token. It is called for each request. Required.
	Token func(context.Context) (string, error)
	// CertificateAuthorities are PEM certificates of the authorities that are trusted for the site's
	// certificate. If empty, the authorities of the operating system are trusted.
	CertificateAuthorities []byte
}

// Client sends requests to the HTTP APIs of a site. It is safe for concurrent use.
type Client struct {
	// Retrying, if not nil, is called before a request of an export or an import is sent again. It
	// must be set before the first request, and must be safe for concurrent use.
	Retrying func(reason error, wait time.Duration)

	base  string
	token func(context.Context) (string, error)
	http  *http.Client
}

// New returns a Client. It returns an error if CertificateAuthorities is set and has no certificate.
func New(config Config) (*Client, error) {
	transport := http.DefaultTransport
	if len(config.CertificateAuthorities) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(config.CertificateAuthorities) {
			return nil, errors.New("the file must have at least one certificate in PEM")
		}
		own := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // net/http defines its type
		own.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		transport = own
	}
	// A redirect could send the token to another server.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{
		base: strings.TrimSuffix(config.BaseURL, "/"), token: config.Token,
		http: &http.Client{Transport: transport, CheckRedirect: stay, Timeout: requestTimeout},
	}, nil
}

// AHDS sends a request to a path of the AHDS API, relative to /ahds/v1/. The body of the request is the
// JSON encoding of in, or empty if in is nil. The response is decoded into out, unless out is nil.
// Errors: *Error.
func (c *Client) AHDS(ctx context.Context, method, path string, query url.Values, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("encode the request %s %s: %w", method, path, err)
		}
	}
	text, err := c.do(ctx, method, "/ahds/v1/"+path, query, body, "application/json")
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("%s %s: the response is not the expected JSON: %w", method, path, err)
	}
	return nil
}

// Send sends a request to a path of the site, such as /fhir/Patient/rex. body is JSON, or nil for no
// body. Send returns the body of the response. Errors: *Error.
func (c *Client) Send(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	return c.do(ctx, method, path, nil, body, "application/json")
}

// list is a page of a list of the AHDS API.
type list[T any] struct {
	Data []T `json:"data"`
	Meta struct {
		TotalPages int `json:"totalPages"`
	} `json:"meta"`
}

// List returns all items of a list of the AHDS API. It requests one page after the other. Errors:
// *Error.
func List[T any](ctx context.Context, c *Client, path string, query url.Values) ([]T, error) {
	all := []T{}
	for page := 0; ; page++ {
		asked := url.Values{"page": {fmt.Sprint(page)}, "pageSize": {pageSize}}
		for name, values := range query {
			asked[name] = values
		}
		var got list[T]
		if err := c.AHDS(ctx, http.MethodGet, path, asked, nil, &got); err != nil {
			return nil, err
		}
		all = append(all, got.Data...)
		if page+1 >= got.Meta.TotalPages {
			return all, nil
		}
	}
}

// AuditEvents returns entries of the audit log, newest first, each as an AuditEvent of FHIR.
// Errors: *Error.
func (c *Client) AuditEvents(ctx context.Context, query url.Values) ([]json.RawMessage, error) {
	text, err := c.do(ctx, http.MethodGet, "/fhir/AuditEvent", query, nil, "application/fhir+ndjson")
	if err != nil {
		return nil, err
	}
	entries := []json.RawMessage{}
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			entries = append(entries, json.RawMessage(line))
		}
	}
	return entries, nil
}

// do sends a request and returns the body of a successful response. Errors: *Error.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body []byte, accept string) ([]byte, error) {
	address := c.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	token, err := c.token(ctx)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept", accept)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponse+1))
	if err != nil {
		return nil, fmt.Errorf("%s %s: read the response: %w", method, path, err)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, newError(response, text)
	}
	if len(text) > maxResponse {
		return nil, fmt.Errorf("%s %s: the response has more than %d bytes; request fewer records", method, path, maxResponse)
	}
	return text, nil
}
