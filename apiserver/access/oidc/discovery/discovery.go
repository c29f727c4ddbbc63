// Package discovery fetches the discovery document and the public keys of an OpenID Connect issuer.
// The API servers verify tokens with them, and the controller reports whether they can be fetched.
package discovery

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// fetchTimeout is the time limit for fetching both the discovery document and the keys.
	fetchTimeout = 5 * time.Second
	// maxDocumentBytes is the maximum size in bytes of a response's body. A larger body is an
	// error.
	maxDocumentBytes = 256 << 10
	maxHeaderBytes   = 32 << 10
	maxRedirects     = 3
)

// wellKnown is the path of the discovery document below the issuer's URL. OpenID Connect
// Discovery 1.0 §4.
const wellKnown = "/.well-known/openid-configuration"

// ErrInvalid matches, by errors.Is, the errors of Fetch that persist until the issuer or the Site's
// settings are corrected. Other errors may be temporary.
var ErrInvalid = errors.New("the issuer cannot be used")

// Issuer describes where the keys of an OpenID Connect issuer come from.
type Issuer struct {
	// URL is the issuer's identifier. The member issuer of the discovery document must equal it.
	URL string
	// DiscoveryURL is the address of the discovery document. Default: URL with the path
	// /.well-known/openid-configuration added.
	DiscoveryURL string
	// JWKS is a JSON Web Key Set with the keys (RFC 7517). If it is set, nothing is fetched from the
	// issuer.
	JWKS string
	// CABundle has the PEM certificates of the authorities that are trusted for the issuer's server.
	// Default: the authorities of the system.
	CABundle string
}

// Document is the part of an OpenID Connect discovery document that Paddock uses.
type Document struct {
	Issuer                string   `json:"issuer"`
	JWKSURI               string   `json:"jwks_uri"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	RegistrationEndpoint  string   `json:"registration_endpoint"`
	IntrospectionEndpoint string   `json:"introspection_endpoint"`
	RevocationEndpoint    string   `json:"revocation_endpoint"`
	GrantTypes            []string `json:"grant_types_supported"`
	ResponseTypes         []string `json:"response_types_supported"`
	Scopes                []string `json:"scopes_supported"`
	TokenAuthMethods      []string `json:"token_endpoint_auth_methods_supported"`
}

// Published has the discovery document and the keys of an issuer.
type Published struct {
	// Document has only the field Issuer if Issuer.JWKS is set.
	Document Document
	Keys     []jose.JSONWebKey
}

// Dial opens a connection, as (*net.Dialer).DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Fetch returns the discovery document and the keys of an issuer. It uses dial for every connection.
// Errors: ErrInvalid; other errors mean that the issuer is unreachable, or does not respond with
// status 200. Problem describes both kinds.
func Fetch(ctx context.Context, dial Dial, issuer Issuer) (Published, error) {
	if issuer.JWKS != "" {
		keys, err := parseKeys([]byte(issuer.JWKS))
		return Published{Document: Document{Issuer: issuer.URL}, Keys: keys}, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	client, err := newClient(dial, issuer.CABundle)
	if err != nil {
		return Published{}, err
	}
	address := issuer.DiscoveryURL
	if address == "" {
		address = strings.TrimSuffix(issuer.URL, "/") + wellKnown
	}
	content, err := get(ctx, client, address)
	if err != nil {
		return Published{}, fmt.Errorf("fetch the discovery document: %w", err)
	}
	var document Document
	if err := json.Unmarshal(content, &document); err != nil {
		return Published{}, invalid("its discovery document is not the JSON object of OpenID Connect Discovery")
	}
	if document.Issuer != issuer.URL {
		return Published{}, invalid("its discovery document names another issuer: the url of the issuer in the Site must equal the document's member issuer exactly, including a trailing slash")
	}
	if content, err = get(ctx, client, document.JWKSURI); err != nil {
		return Published{}, fmt.Errorf("fetch the keys: %w", err)
	}
	keys, err := parseKeys(content)
	return Published{Document: document, Keys: keys}, err
}

// invalidError is an ErrInvalid with a description for the owner of the Site.
type invalidError string

func invalid(problem string) error { return invalidError(problem) }

func (e invalidError) Error() string { return string(e) }

// Is reports whether target is ErrInvalid.
func (e invalidError) Is(target error) bool { return target == ErrInvalid }

// statusError is a response with a status other than 200.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("the response has status %d", int(e)) }

func newClient(dial Dial, bundle string) (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if bundle != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(bundle)) {
			return nil, invalid("caBundle holds no PEM certificate")
		}
	}
	return &http.Client{
		// No proxy: the dialer has to see the issuer's own address.
		Transport: &http.Transport{
			DialContext: dial, TLSClientConfig: config, DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeaderBytes,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return invalid("a request to it is redirected more than three times")
			}
			return checkAddress(r.URL)
		},
	}, nil
}

func checkAddress(address *url.URL) error {
	if address.Scheme != "https" || address.Host == "" || address.User != nil {
		return invalid("the address of its discovery document, of its keys (jwks_uri) or of a redirect is not an https URL with a host and without a user")
	}
	return nil
}

func get(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, invalid("the address of its discovery document or of its keys (jwks_uri) is not a URL")
	}
	if err := checkAddress(parsed); err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, invalid("the address of its discovery document or of its keys (jwks_uri) is not a URL")
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, statusError(response.StatusCode)
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, maxDocumentBytes+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxDocumentBytes {
		return nil, invalid("its discovery document or its key set is larger than 256 KiB")
	}
	return content, nil
}
