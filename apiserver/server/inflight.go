package server

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/felixge/httpsnoop"

	"github.com/paddock-health/paddock/apiserver/limits"
)

// refusalKey is the key of a context value: the error with which admission refuses the request.
type refusalKey struct{}

// refusal returns the error with which admission must refuse the request, because withInflightLimit
// found it beyond the limit. It returns nil for other requests.
func refusal(ctx context.Context) error {
	err, _ := ctx.Value(refusalKey{}).(error)
	return err
}

// withInflightLimit limits the concurrent requests to next, and passes each request to report when it has
// ended. It does not itself refuse requests beyond the limit: it marks them, and admission refuses them,
// because each API has a format of its own for errors. A stream of events is not reported. It counts
// only until its response begins, because it lasts as long as the client reads. The limit and the
// report use one wrapper of the response, because each wrapper costs a request some microseconds.
func withInflightLimit(limit *limits.Inflight, report func(r *http.Request, status int, took time.Duration), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		siteID, _ := siteAndAPI(r.URL.Path)
		leave, err := limit.Enter(siteID)
		if err != nil {
			leave = func() {}
			r = r.WithContext(context.WithValue(r.Context(), refusalKey{}, err))
		}
		defer leave()
		status, isStream := http.StatusOK, false
		next.ServeHTTP(httpsnoop.Wrap(w, httpsnoop.Hooks{
			WriteHeader: func(writeHeader httpsnoop.WriteHeaderFunc) httpsnoop.WriteHeaderFunc {
				return func(code int) {
					status = code
					if isEventStream(w.Header()) {
						isStream = true
						leave()
					}
					writeHeader(code)
				}
			},
		}), r)
		if !isStream {
			report(r, status, time.Since(began))
		}
	})
}

// isEventStream reports whether a response is a stream of server-sent events.
func isEventStream(header http.Header) bool {
	return strings.HasPrefix(header.Get("Content-Type"), "text/event-stream")
}
