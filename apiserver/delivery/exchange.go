package delivery

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/paddock-health/paddock/apiserver/events/signing"
)

// The header fields of Standard Webhooks.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// ownHeaders are header fields that a webhook cannot set: those of the body, and those of the
// connection (RFC 9110 §7.6.1).
var ownHeaders = map[string]bool{
	"Host": true, "Content-Length": true, "Content-Type": true, "Content-Encoding": true,
	"Connection": true, "Keep-Alive": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true, "Expect": true,
	"Proxy-Authenticate": true, "Proxy-Authorization": true, "Proxy-Connection": true,
}

// newRequest returns the request of an attempt. Errors: *SecretError.
func newRequest(ctx context.Context, webhook Webhook, userAgent, id string, at time.Time, body []byte) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, webhook.URL, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("create a request: %w", err)
	}
	header := request.Header
	header.Set("User-Agent", userAgent)
	// Without a value the field is not sent, but allows net/http to repeat the request if the receiver
	// closes an idle connection. The receiver recognizes a copy by webhook-id.
	header["Idempotency-Key"] = []string{}
	for name, value := range webhook.Header {
		name = http.CanonicalHeaderKey(name)
		if ownHeaders[name] || strings.HasPrefix(name, "Webhook-") {
			continue
		}
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, &SecretError{Webhook: webhook, Problem: "headersSecretRef: the Secret has a header field whose name or value is not valid in HTTP: " + strconv.Quote(name) + "; correct or remove it"}
		}
		header.Set(name, value)
	}
	header.Set("Content-Type", "application/json")
	header.Set(headerID, id)
	header.Set(headerTimestamp, strconv.FormatInt(at.Unix(), 10))
	header.Set(headerSignature, signing.Sign(webhook.Keys, id, at, body))
	return request, nil
}

// answer is the response to an attempt.
type answer struct {
	status int
	header http.Header
	// body is the start of the body, at most MaxResponse bytes.
	body []byte
}

// exchange sends a request and reads the response, with at most MaxResponse bytes of its body. It
// does not follow redirects. It returns the first error, even if there is a status.
func (t *transports) exchange(request *http.Request, webhook Webhook) (answer, error) {
	transport, err := t.of(webhook)
	if err != nil {
		return answer{}, err
	}
	if request, err = t.route(request); err != nil {
		return answer{}, err
	}
	var requested atomic.Bool
	response, err := transport.RoundTrip(request.WithContext(context.WithValue(request.Context(), certificateRequested{}, &requested)))
	if err != nil && requested.Load() {
		return answer{}, fmt.Errorf("%w: %w", errCertificateRequested, err)
	}
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusSwitchingProtocols { // its body is the connection, which no deadline ends
		return answer{status: response.StatusCode, header: response.Header}, nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, MaxResponse))
	return answer{status: response.StatusCode, header: response.Header, body: body}, err
}
