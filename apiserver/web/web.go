// Package web contains the HTTP code that all facades share: request ids, recovery from panics,
// bodies, methods and paths, ETags, media types, CORS, and the failures that all facades describe in
// the same way.
package web

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/google/uuid"
)

const (
	requestIDHeader     = "X-Request-Id"
	correlationIDHeader = "X-Correlation-Id"
)

// saneRequestID matches a client's X-Request-Id that may be used as the request id. Other values are
// not used, because logs contain the id.
var saneRequestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// maxCorrelationID is the maximum size in bytes of the client's X-Request-Id that a response
// repeats. A longer id is not repeated.
const maxCorrelationID = 256

type requestIDKey struct{}

// RequestID returns the id that Identify gave the request, or "" without Identify.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// Identify gives each request an id: the client's X-Request-Id if it has at most 64 letters, digits
// and the characters . _ and -, and otherwise a UUID. The response has this id in X-Request-Id.
// X-Correlation-Id repeats the client's X-Request-Id of at most 256 bytes unchanged, so that the
// client can correlate the response. R4 http.html#custom.
func Identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(requestIDHeader)
		if id != "" && len(id) <= maxCorrelationID {
			w.Header().Set(correlationIDHeader, id)
		}
		if !saneRequestID.MatchString(id) {
			id = uuid.NewString()
		}
		w.Header().Set(requestIDHeader, id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id)))
	})
}

// Recover logs a panic of next and calls fail, which must write the response. A panic with
// http.ErrAbortHandler is passed on.
func Recover(log *slog.Logger, fail func(http.ResponseWriter, *http.Request, error), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if cause == http.ErrAbortHandler { //nolint:errorlint,err113 // net/http compares it like this
				panic(cause)
			}
			log.ErrorContext(r.Context(), "handler panicked", "request", RequestID(r.Context()), "method", r.Method, "path", r.URL.Path, "panic", cause, "stack", string(debug.Stack()))
			fail(w, r, fmt.Errorf("panic: %v", cause))
		}()
		next.ServeHTTP(w, r)
	})
}

// ParseQuery parses a query string or a form. Unlike net/url it accepts a semicolon as a character
// of a value (RFC 3986 §3.4, WHATWG URL §5.1). An error says how to correct the query.
func ParseQuery(query string) (url.Values, error) {
	values, err := url.ParseQuery(strings.ReplaceAll(query, ";", "%3B"))
	if err != nil {
		return nil, fmt.Errorf("%w; percent-encode its special characters", err)
	}
	return values, nil
}
