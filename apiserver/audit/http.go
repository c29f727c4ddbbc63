package audit

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/access"
)

// Auditor records the requests to HTTP APIs in the audit logs of Sites. A nil *Auditor records
// nothing.
type Auditor struct {
	// Lines, if set, receives a copy of each entry.
	Lines *Lines
	// Now returns the current time. It is required.
	Now func() time.Time
}

// Close closes Lines, which writes the waiting lines.
func (a *Auditor) Close() {
	if a != nil {
		a.Lines.Close()
	}
}

// Fail writes the response to a request that failed with an error.
type Fail func(w http.ResponseWriter, r *http.Request, err error)

// commitTimeout limits how long a response waits until its entry is stored. At the limit the request
// fails with ErrUnavailable unless Settings.Continue is set, and the entry may still be stored later.
const commitTimeout = 10 * time.Second

// Handler records the requests that next serves. api is Entry.API. If the entries of a request
// cannot be stored, fail writes the response instead of next, with ErrUnavailable or ErrWritten.
// fail is not called if Settings.Continue is set or the Recorder is concealed. If an outer Handler
// already records the request, both use the same Recorder, and the inner Handler commits it.
func (a *Auditor) Handler(api string, next http.Handler, fail Fail) http.Handler {
	if a == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorder := From(r.Context())
		if recorder == nil {
			recorder = newRecorder(r)
			r = r.WithContext(recorder.with(r.Context()))
		}
		recorder.begin(a, api, r.Method)
		recorder.Identify(requestIDs(w.Header()))
		answer := &answer{ResponseWriter: w, auditor: a, recorder: recorder, request: r, fail: fail}
		defer func() {
			if cause := recover(); cause != nil {
				_ = answer.commit(http.StatusInternalServerError) // an outer handler responds to the panic
				panic(cause)
			}
		}()
		next.ServeHTTP(answer, r)
		if !answer.started {
			answer.WriteHeader(http.StatusOK)
		}
	})
}

func newRecorder(r *http.Request) *Recorder {
	recorder := &Recorder{}
	recorder.entry.Address = r.RemoteAddr
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		recorder.entry.Address = host
	}
	recorder.entry.BreakGlass = strings.TrimSpace(r.Header.Get(access.BreakGlassHeader)) != ""
	return recorder
}

// begin sets the Auditor, the API and the method of the request.
func (r *Recorder) begin(auditor *Auditor, api, method string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.auditor = auditor
	r.entry.API = api
	r.entry.Method = knownMethod(method)
}

// knownMethod returns the method if it is one of the common methods of HTTP. Otherwise it returns
// other, because the client chooses the text of an unknown method.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	default:
		return "other"
	}
}

// responseHeaders are the header fields that describe a response. They are removed if fail replaces it.
var responseHeaders = []string{
	"Accept-Patch", "Age", "Allow", "Cache-Control", "Content-Encoding", "Content-Length", "Content-Location", "Content-Type", "Etag",
	"Last-Modified", "Link", "Location", "Www-Authenticate",
}

// answer is a ResponseWriter that commits the Recorder when the response starts.
type answer struct {
	http.ResponseWriter
	auditor  *Auditor
	recorder *Recorder
	request  *http.Request
	fail     Fail
	// started reports whether a status was written, and refused whether fail wrote it.
	started, refused bool
}

// Unwrap returns the wrapped ResponseWriter, for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.started || status < http.StatusOK {
		if !a.refused {
			a.ResponseWriter.WriteHeader(status)
		}
		return
	}
	a.started = true
	if err := a.commit(status); err != nil {
		a.refused = true
		for _, name := range responseHeaders {
			a.Header().Del(name)
		}
		a.fail(a.ResponseWriter, a.request, err)
		return
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(body []byte) (int, error) {
	if !a.started {
		a.WriteHeader(http.StatusOK)
	}
	if a.refused {
		return len(body), nil
	}
	return a.ResponseWriter.Write(body)
}

// Flush implements http.Flusher.
func (a *answer) Flush() {
	if !a.started {
		a.WriteHeader(http.StatusOK)
	}
	if flusher, ok := a.ResponseWriter.(http.Flusher); ok && !a.refused {
		flusher.Flush()
	}
}

// commit adds the entries of the request to Lines and to the log of the Site. If finish reports
// that the response must wait, commit waits until the entries are stored, at most commitTimeout.
// Errors: ErrUnavailable, ErrWritten.
func (a *answer) commit(status int) error {
	r := a.recorder
	r.Identify(requestIDs(a.Header()))
	entries, durable := r.finish(status, a.auditor.Now())
	if len(entries) == 0 {
		return nil
	}
	if r.isStored(entries) {
		return nil
	}
	a.auditor.Lines.add(entries)
	log, wrote, concealed := r.stored()
	if log == nil {
		return nil
	}
	durable = durable && !concealed
	ctx := context.WithoutCancel(a.request.Context())
	if durable {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, commitTimeout)
		defer cancel()
	}
	err := log.add(ctx, entries, durable)
	switch {
	case concealed:
		return nil
	case err != nil && wrote:
		return ErrWritten
	default:
		return err
	}
}

// Identify sets Entry.Request and Entry.Correlation. The Handler calls it before next, and when the response
// starts. If the header of the response has no ids before next, they must be set before the write.
func (r *Recorder) Identify(id, correlation string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entry.Request, r.entry.Correlation = id, correlation
	for _, part := range r.parts {
		part.entry.Request, part.entry.Correlation = id, correlation
	}
}

// stored returns the log for the entries, whether the request wrote records, and whether the
// response must not depend on the log.
func (r *Recorder) stored() (log *Log, wrote, concealed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wrote = r.wrote
	for _, part := range r.parts {
		wrote = wrote || part.wrote
	}
	return r.site.Log, wrote, r.concealed
}
