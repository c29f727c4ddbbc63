// Package native serves the native format of a site, in which a record is one line of NDJSON with all
// its versions, claims and metadata, or several lines if it is large. An import of an export restores
// the same records in another site. It reads and writes the storage without privacy rules, so it needs
// rights of its own on the Site. It knows no engine and no facade. See
// docs/decisions/0023-native-format.md.
package native

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/errorcode"
	"github.com/paddock-health/paddock/apiserver/limits"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// The right that a caller needs: a verb on the Site object.
const (
	group      = "paddock.health"
	resource   = "sites"
	verbExport = "export"
	verbImport = "import"
)

// requestTimeout is how long one request may take. A longer one is answered with 503.
const requestTimeout = 45 * time.Second

// Store is the storage of a site, with the methods that exports and imports need.
type Store interface {
	store.Store
	store.Archive
}

// Site has the parts of a Site that the native API needs.
type Site struct {
	Access access.Tenant
	// Store is the storage of the site, without restrictions to what the caller can see. It is nil
	// while the storage is not open.
	Store Store
	// Limiter limits the concurrent searches of the site. A page of an export counts as a search.
	Limiter *limits.SiteLimiter
}

// Problem is an error in the body of a version of a record.
type Problem struct {
	// Expression is the FHIRPath of the element with the error, such as Patient.active.
	Expression string
	// Code is the error code for programs. Message is a text for people.
	Code, Message string
}

// Config has the dependencies of the native API. All are required unless noted.
type Config struct {
	// Admit finds the site and authenticates the caller. Errors: *access.TokenError,
	// access.ErrSiteHidden, access.ErrUnavailable, *limits.ExceededError.
	Admit      func(r *http.Request, siteID string) (Site, access.Caller, error)
	Authorizer access.Authorizer
	// CheckBody returns the errors in the type and id of a record and in a stored body of it, or none. A
	// deleted version has an empty body, which is valid.
	CheckBody func(key store.Key, body store.Body) []Problem
	// Audit records requests. If it is nil, requests are not recorded.
	Audit *audit.Auditor
	// ErrorPages is the address of the pages that explain the codes of errors. The type of a problem is
	// the page of its code.
	ErrorPages errorcode.Pages
	Log        *slog.Logger
}

type handler struct {
	Config
	// imports limits the memory of the bodies of concurrent imports, in MiB.
	imports *limits.Inflight
}

// errUnknownPath is the error of a path that the API does not have.
var errUnknownPath = &web.UnknownPathError{Paths: "the path of this API is /site/{siteId}/native"}

// New returns the handler of /site/{siteId}/native, which exports and imports all records of a site
// with all versions.
func New(config Config) http.Handler {
	h := &handler{config, limits.NewInflight(maxImports * maxImport >> 20)}
	routes := chi.NewRouter()
	routes.Use(web.DecodeUnreserved)
	routes.NotFound(func(w http.ResponseWriter, r *http.Request) { h.fail(w, r, errUnknownPath) })
	routes.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) { h.fail(w, r, &web.UnknownMethodError{}) })
	routes.Handle("/site/{siteId}/native", h.serve(web.Methods[operation]{
		http.MethodGet:  {verbExport, audit.Read, h.export},
		http.MethodPost: {verbImport, audit.Update, h.importLines},
	}))
	return web.Identify(web.Recover(h.Log, h.fail, h.Audit.Handler("native", routes, h.fail)))
}

// operation is what one method does. verb is the right that it needs.
type operation struct {
	verb   string
	action audit.Action
	run    func(w http.ResponseWriter, r *http.Request, site Site, caller access.Caller) error
}

func (h *handler) serve(methods web.Methods[operation]) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		r = r.WithContext(ctx)
		if err := h.operate(w, r, methods); err != nil {
			h.fail(w, r, err)
		}
	}
}

func (h *handler) operate(w http.ResponseWriter, r *http.Request, methods web.Methods[operation]) error {
	op, err := methods.Find(r.Method)
	if err != nil {
		return err
	}
	recorder := audit.From(r.Context())
	recorder.Interaction("native-"+op.verb, op.action, store.Key{})
	siteID := web.PathParameter(r, "siteId")
	if siteID == "" {
		return errUnknownPath
	}
	site, caller, err := h.Admit(r, siteID)
	if err != nil {
		return err
	}
	action := access.Action{Verb: op.verb, Group: group, Resource: resource, Name: site.Access.Name}
	if err := h.Authorizer.Authorize(r.Context(), caller, site.Access, action); err != nil {
		return err
	}
	if err := recorder.Ready(); err != nil {
		return err
	}
	if site.Store == nil {
		return store.ErrUnavailable
	}
	return op.run(w, r, site, caller)
}

// invalidError is an invalid query string or parameter of it, or a body with too many lines. problem
// continues a sentence that begins with subject.
type invalidError struct{ subject, problem string }

func (e *invalidError) Error() string { return e.subject + " " + e.problem }

// queryError returns the error for a query string that cannot be parsed.
func queryError(err error) error {
	return &invalidError{"the query string", "is invalid: " + err.Error()}
}

// parametersOf returns the parameters of a request, of which none may be repeated. Errors: *invalidError, those
// of queryError.
func parametersOf(r *http.Request) (url.Values, error) {
	query, err := web.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, queryError(err)
	}
	for name, values := range query {
		if len(values) > 1 {
			return nil, invalidParameter(name, "is repeated; send it once")
		}
	}
	return query, nil
}

func invalidParameter(name, problem string) error { return &invalidError{"parameter " + name, problem} }

// fail responds with a problem. RFC 9457.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	f := web.FailureOf(err)
	var invalid *invalidError
	var broken *web.BrokenBodyError
	switch {
	case errors.As(err, &invalid):
		f = web.Failure{Status: http.StatusBadRequest, Code: "invalid_request", Detail: err.Error()}
	case errors.As(err, &broken):
		f = web.Failure{Status: http.StatusBadRequest, Code: "unparseable_json", Detail: err.Error()}
	case errors.Is(err, store.ErrQueryTimeout):
		f = web.RetryLater(http.StatusServiceUnavailable, web.CodeTimeout, err.Error())
	}
	if f.Status >= http.StatusInternalServerError && f.Status != http.StatusNotImplemented {
		h.Log.ErrorContext(r.Context(), "request failed", "request", web.RequestID(r.Context()), "site", web.PathParameter(r, "siteId"), "method", r.Method, "status", f.Status, "err", err)
	}
	for name, value := range f.Header {
		w.Header().Set(name, value)
	}
	body, _ := json.Marshal(map[string]any{"type": h.ErrorPages.Of(f.Code), "title": errorcode.Text(f.Code), "status": f.Status, "code": f.Code, "detail": f.Detail}) // strings and numbers can always be encoded
	web.Respond(w, r, f.Status, "application/problem+json", body)
}
