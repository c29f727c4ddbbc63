package fhir

import (
	"cmp"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// interaction is a FHIR interaction: what one method does at one path.
type interaction struct {
	// verb is the right that the interaction needs, a verb of Kubernetes RBAC. If it is empty, the
	// interaction checks rights itself, or is public. A search that names no type also checks them
	// itself.
	verb string
	// searches is true for interactions without the verb list to which the limits of searches apply:
	// searches and histories of several types, and the status and the files of exports. The limits
	// also apply to each interaction with the verb list.
	searches bool
	// public is true for interactions that need no storage, and no token unless the site is hidden.
	public bool
	// allTypes is true for a search of all types in the compartment of the record, as in R5.
	allTypes bool
	// noHead is true for a GET that HEAD does not have, because the GET starts a job. It is the only
	// method of its path.
	noHead bool
	// timeout is how long the interaction may take. 0 is requestTimeout.
	timeout time.Duration
	// run serves an interaction. An interaction that writes a single record, other than $purge, has
	// plan and respond instead: plan reads the request and returns the steps of the write, respond
	// writes the response to its result.
	run     func(w http.ResponseWriter, r *request) error
	plan    func(w http.ResponseWriter, r *request) (stepFunc, error)
	respond func(w http.ResponseWriter, r *request, done store.Result) error
}

// verbPurge is the right to remove a record with its history ($purge).
const verbPurge = "purge"

// methods are the interactions of one path, by method.
type methods = web.Methods[interaction]

// root is the chi pattern of the base of the facade.
const root = "/site/{siteId}/fhir"

// paths returns the interactions of every path of the facade. A key is the chi pattern of the path
// below root. The history of a record is at history (the contract's spelling) and at _history. The
// history of a type is at _history only, because history would be an id there.
func (h *handler) paths() map[string]methods {
	validate := methods{http.MethodPost: {verb: "create", run: h.validate}}
	validateRecord := methods{http.MethodPost: {verb: "update", run: h.validate}}
	everything := methods{http.MethodGet: {verb: "list", run: h.everything}, http.MethodPost: {verb: "list", run: h.everythingByPost}}
	purge := methods{http.MethodPost: {verb: verbPurge, run: h.purge}}
	history := methods{http.MethodGet: {verb: "list", run: h.history}}
	exportSite := methods{http.MethodGet: {noHead: true, run: h.export}}
	exportPatients := methods{http.MethodGet: {verb: "list", noHead: true, run: h.export}}
	exportGroup := methods{http.MethodGet: {verb: "get", noHead: true, run: h.export}}
	exportJob := methods{http.MethodGet: {searches: true, run: h.exportStatus}, http.MethodDelete: {run: h.cancelExport}}
	importLines := methods{http.MethodPost: {timeout: importTimeout, run: h.importLines}}
	return map[string]methods{
		"/": {
			http.MethodGet:     {searches: true, run: h.search},
			http.MethodPost:    {run: h.bundle},
			http.MethodOptions: {public: true, run: h.metadata},
		},
		"/metadata":                        {http.MethodGet: {public: true, run: h.metadata}},
		"/.well-known/smart-configuration": {http.MethodGet: {public: true, run: h.smartConfiguration}},
		"/_history":                        {http.MethodGet: {searches: true, run: h.siteHistory}},
		"/_search":                         {http.MethodPost: {searches: true, run: h.searchByPost}},
		"/" + auditEvent:                   {http.MethodGet: {run: h.auditEvents}},
		"/" + auditEvent + "/*":            {}, // AuditEvents can only be searched
		exportPath:                         exportSite,
		"/%24export":                       exportSite,
		exportJobPath:                      exportJob,
		"/%24export/{job}":                 exportJob,
		exportFilePath:                     {http.MethodGet: {searches: true, run: h.exportFile}},
		"/%24export/{job}/{file}":          {http.MethodGet: {searches: true, run: h.exportFile}},
		"/$import":                         importLines,
		"/%24import":                       importLines,
		"/{type}": {
			http.MethodGet:    {verb: "list", run: h.search},
			http.MethodPost:   {verb: "create", plan: h.create, respond: respondWritten},
			http.MethodPut:    {verb: "update", plan: h.conditionalUpdate, respond: respondWritten},
			http.MethodPatch:  {verb: "patch", plan: h.conditionalPatch, respond: respondWritten},
			http.MethodDelete: {verb: "delete", plan: h.conditionalDelete, respond: respondDeleted},
		},
		"/{type}/_search":     {http.MethodPost: {verb: "list", run: h.searchByPost}},
		"/{type}/$validate":   validate,
		"/{type}/%24validate": validate, // some clients escape the $
		"/{type}/$export":     exportPatients,
		"/{type}/%24export":   exportPatients,
		"/{type}/_history":    {http.MethodGet: {verb: "list", run: h.typeHistory}},
		"/{type}/{id}": {
			http.MethodGet:    {verb: "get", run: h.read},
			http.MethodPut:    {verb: "update", plan: h.update, respond: respondWritten},
			http.MethodPatch:  {verb: "patch", plan: h.patch, respond: respondWritten},
			http.MethodDelete: {verb: "delete", plan: h.delete, respond: respondDeleted},
		},
		"/{type}/{id}/$validate":         validateRecord,
		"/{type}/{id}/%24validate":       validateRecord,
		"/{type}/{id}/$everything":       everything,
		"/{type}/{id}/%24everything":     everything,
		"/{type}/{id}/$export":           exportGroup,
		"/{type}/{id}/%24export":         exportGroup,
		"/{type}/{id}/$purge":            purge,
		"/{type}/{id}/%24purge":          purge,
		"/{type}/{id}/history":           history,
		"/{type}/{id}/_history":          history,
		"/{type}/{id}/_search":           {http.MethodPost: {verb: "list", allTypes: true, run: h.searchByPost}},
		"/{type}/{id}/{members}":         {http.MethodGet: {verb: "list", run: h.search}},
		"/{type}/{id}/{members}/_search": {http.MethodPost: {verb: "list", run: h.searchByPost}},
		"/{type}/{id}/_history/{vid}":    {http.MethodGet: {verb: "get", run: h.readVersion}},
	}
}

// router is the chi router of the facade. It serves requests. For an entry of a Bundle, find
// matches the same patterns without serving.
type router struct {
	*chi.Mux
	paths map[string]methods
}

// routes returns the router with every path of the facade.
func (h *handler) routes() router {
	routes := router{chi.NewRouter(), h.paths()}
	routes.Use(web.StripSlash)
	// Every path has a handler for all methods of HTTP, which answers 405 itself.
	routes.MethodNotAllowed(h.failWith(func(*http.Request) error { return &web.UnknownMethodError{} }))
	routes.NotFound(h.failWith(routeError))
	routes.Route(root, func(site chi.Router) {
		for path, supported := range routes.paths {
			serve := h.existing(h.serve(supported))
			if path == "/"+auditEvent || strings.HasSuffix(path, "/{job}/{file}") {
				serve = acceptNDJSON(serve)
			}
			site.Handle(path, serve)
		}
	})
	return routes
}

// find returns the interactions of the path of r. It sets r.Pattern and the path values, as the
// router does for a request that it serves. Errors: those of routeError.
func (routes router) find(r *http.Request) (methods, error) {
	matched := chi.NewRouteContext()
	if !routes.Match(matched, r.Method, web.RoutePath(r.URL)) {
		return nil, routeError(r)
	}
	r.Pattern = matched.RoutePattern()
	for i, name := range matched.URLParams.Keys {
		r.SetPathValue(name, matched.URLParams.Values[i])
	}
	if !exists(r) {
		return nil, routeError(r)
	}
	return routes.paths[cmp.Or(strings.TrimPrefix(r.Pattern, root), "/")], nil
}

// exists reports whether the facade has the path of r, for patterns that match more paths than the
// facade has.
func exists(r *http.Request) bool { return canHaveMembers(r) && canHaveEverything(r) && canExport(r) }

// existing returns a handler that serves next, but answers 404 for a path that the facade does not
// have.
func (h *handler) existing(next http.HandlerFunc) http.HandlerFunc {
	unknown := h.failWith(routeError)
	return func(w http.ResponseWriter, r *http.Request) {
		if !exists(r) {
			unknown(w, r)
			return
		}
		next(w, r)
	}
}

// routeError returns the error for a path without a route. Errors: *operationUnknownError,
// *web.UnknownPathError.
func routeError(r *http.Request) error {
	if name := path.Base(r.URL.Path); isOperation(name) {
		return &operationUnknownError{name: name}
	}
	return errUnknownPath
}

// failWith returns a handler that answers every request with the error that toError returns.
func (h *handler) failWith(toError func(*http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		req := &request{Request: r, errorPages: h.ErrorPages}
		if err := req.negotiate(); err != nil {
			h.fail(w, req, err)
			return
		}
		h.fail(w, req, toError(r))
	}
}
