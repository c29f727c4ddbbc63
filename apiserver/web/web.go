// Package web is what every HTTP facade does alike, before it knows what is asked for: ids
// of requests, panics, bodies.
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

// saneRequestID is what is taken over from a client: it ends up in logs.
var saneRequestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// maxCorrelationID bounds, in bytes, the client's X-Request-Id that a response repeats. A longer
// one is not repeated.
const maxCorrelationID = 256

type requestIDKey struct{}

// RequestID correlates what is logged about a request with its answer.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// Identify gives each request an id and returns it as X-Request-Id: the client's X-Request-Id if
// that is sane, else a UUID. X-Correlation-Id repeats the client's id as it was sent, so that the
// client finds its request again in either case. R4 http.html#custom.
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

// Recover turns a panic into a line in the log and an answer, which is fail's.
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
			log.ErrorContext(r.Context(), "panic", "request", RequestID(r.Context()), "stack", string(debug.Stack()))
			fail(w, r, fmt.Errorf("panic: %v", cause))
		}()
		next.ServeHTTP(w, r)
	})
}

// ParseQuery reads a query string or a form. A semicolon is a character of a value (RFC 3986
// §3.4, WHATWG URL §5.1), where net/url refuses it.
func ParseQuery(query string) (url.Values, error) {
	return url.ParseQuery(strings.ReplaceAll(query, ";", "%3B"))
}
