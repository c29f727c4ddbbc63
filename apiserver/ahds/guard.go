package ahds

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"runtime/debug"

	"github.com/google/uuid"
)

const requestIDHeader = "X-Request-Id"

// saneRequestID is what is taken over from a client: it ends up in logs.
var saneRequestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

type requestIDKey struct{}

// requestID correlates what is logged about a request with its answer.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// identify gives each request an id, the client's if that is sane, and returns it.
func (h *handler) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(requestIDHeader)
		if !saneRequestID.MatchString(id) {
			id = uuid.NewString()
		}
		w.Header().Set(requestIDHeader, id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id)))
	})
}

// recover turns a panic into a 500 and a line in the log.
func (h *handler) recover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if cause == http.ErrAbortHandler { //nolint:errorlint,err113 // net/http compares it like this
				panic(cause)
			}
			h.Log.ErrorContext(r.Context(), "panic", "request", requestID(r.Context()), "stack", string(debug.Stack()))
			h.fail(w, &request{Request: r}, fmt.Errorf("panic: %v", cause))
		}()
		next.ServeHTTP(w, r)
	})
}
