// Package localissuer runs an OpenID Connect issuer as a process of its own, for tests. The
// program is hack/tools/issuer.
package localissuer

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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/paddock-health/paddock/hack/dev/freeport"
)

const (
	startTimeout  = time.Minute
	startInterval = 20 * time.Millisecond
)

// Issuer is a running issuer.
type Issuer struct {
	// URL is the "iss" claim of its tokens.
	URL string
	// CA is the certificate, in PEM, of the authority that signed its serving certificate.
	CA string

	program, address, dir string
	process               *exec.Cmd
	input                 io.Closer
	client                *http.Client
}

// Start runs an issuer on a free port of 127.0.0.1, and returns when it serves. program is the path
// of the executable, and dir the folder of the keys, certificates and log.
func Start(ctx context.Context, program, dir string) (*Issuer, error) {
	address, err := freeport.Address()
	if err != nil {
		return nil, err
	}
	i := &Issuer{URL: "https://" + address, program: program, address: address, dir: dir}
	return i, i.Resume(ctx)
}

// Resume starts an issuer that was stopped, on the same port and with the same keys, and returns
// when the issuer serves.
func (i *Issuer) Resume(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(i.dir, "issuer.log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open the issuer's log: %w", err)
	}
	defer func() { _ = log.Close() }()
	i.process = exec.Command(i.program, "--address", i.address, "--dir", i.dir)
	i.process.Stdout, i.process.Stderr = log, log
	if i.input, err = i.process.StdinPipe(); err != nil {
		return fmt.Errorf("start the issuer: %w", err)
	}
	if err := i.process.Start(); err != nil {
		return fmt.Errorf("start the issuer (make issuer builds it): %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, startInterval, startTimeout, true, func(ctx context.Context) (bool, error) {
		err := i.trust()
		if err == nil {
			_, err = i.Fetches(ctx)
		}
		return err == nil, nil
	})
	if err != nil {
		content, _ := os.ReadFile(log.Name())
		return errors.Join(fmt.Errorf("start the issuer: %w\n%s", err, content), i.Stop())
	}
	return nil
}

// trust reads the authority that the program has made.
func (i *Issuer) trust() error {
	content, err := os.ReadFile(filepath.Join(i.dir, "ca.crt"))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(content)
	i.CA = string(content)
	i.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}}
	return nil
}

// Stop ends the process. Nothing listens at its port until Resume.
func (i *Issuer) Stop() error {
	if err := i.input.Close(); err != nil {
		return fmt.Errorf("stop the issuer: %w", err)
	}
	return i.process.Wait()
}

// Fetches returns how often clients have fetched the keys of the issuer since it was started or
// resumed.
func (i *Issuer) Fetches(ctx context.Context) (int, error) {
	var counts struct{ Keys int }
	err := i.call(ctx, http.MethodGet, "/test/fetches", nil, &counts)
	return counts.Keys, err
}

// Rotate makes a key for an algorithm, which signs from now on, and returns its id. The issuer still
// publishes the earlier keys.
func (i *Issuer) Rotate(ctx context.Context, algorithm jose.SignatureAlgorithm) (string, error) {
	var made struct{ KID string }
	err := i.call(ctx, http.MethodPost, "/test/rotate?alg="+string(algorithm), nil, &made)
	return made.KID, err
}

// Retire removes a key from those that the issuer publishes. Sign can still use the key.
func (i *Issuer) Retire(ctx context.Context, keyID string) error {
	return i.call(ctx, http.MethodPost, "/test/retire?kid="+url.QueryEscape(keyID), nil, nil)
}

// Order is a token to sign.
type Order struct {
	// Key is the id of the key. Default: the newest.
	Key string `json:"key,omitempty"`
	// Header has more header parameters. alg and kid are those of the key unless they are given here.
	Header map[string]any `json:"header,omitempty"`
	// Claims is the JSON value to sign.
	Claims json.RawMessage `json:"claims"`
}

// Sign signs any claims with a key of the issuer.
func (i *Issuer) Sign(ctx context.Context, order Order) (string, error) {
	var signed struct{ Token string }
	err := i.call(ctx, http.MethodPost, "/test/sign", order, &signed)
	return signed.Token, err
}

// Client is a client of the issuer. Its id is the subject of its tokens, unless a person signs in.
type Client struct {
	ID       string         `json:"id"`
	Secret   string         `json:"secret"`
	Audience []string       `json:"audience"`
	Claims   map[string]any `json:"claims"`
	// RedirectURIs, if not empty, make it a public client with which a person, alice, signs in.
	RedirectURIs []string `json:"redirectURIs,omitempty"`
}

// Register registers a client.
func (i *Issuer) Register(ctx context.Context, client Client) error {
	return i.call(ctx, http.MethodPost, "/test/clients", client, nil)
}

// Token registers a client and gets a token as clients do, by the grant client_credentials.
func (i *Issuer) Token(ctx context.Context, client Client, scopes ...string) (string, error) {
	if err := i.Register(ctx, client); err != nil {
		return "", err
	}
	form := url.Values{"grant_type": {"client_credentials"}, "scope": {strings.Join(scopes, " ")}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, i.URL+"/oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.SetBasicAuth(url.QueryEscape(client.ID), url.QueryEscape(client.Secret))
	var granted struct {
		Token string `json:"access_token"`
	}
	err = i.do(request, &granted)
	return granted.Token, err
}

// Keys returns the keys that the issuer publishes.
func (i *Issuer) Keys(ctx context.Context) (jose.JSONWebKeySet, error) {
	var set jose.JSONWebKeySet
	err := i.call(ctx, http.MethodGet, "/keys", nil, &set)
	return set, err
}

func (i *Issuer) call(ctx context.Context, method, path string, body, into any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, i.URL+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	return i.do(request, into)
}

func (i *Issuer) do(request *http.Request, into any) error {
	response, err := i.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", request.URL.Path, response.Status, content)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(content, into)
}
