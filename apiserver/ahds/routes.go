package ahds

import (
	"cmp"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/web"
)

// operation is one HTTP method of a path.
type operation struct {
	// verb, resource and group are the Kubernetes RBAC permission that the operation requires. An
	// empty group means Group, whose resources are in the site's store. With verbBatch the caller
	// must have the permission of a verb in batchVerbs, and the operation checks those of its entries.
	// Without a verb, the operation requires a valid token but no permission.
	verb, resource, group string
	// open is set if the operation requires no bearer token but checks a token of its own.
	open bool
	// streams is set if the response ends only when the client or the server ends it. Such an
	// operation only reads, whatever its verb.
	streams bool
	// produces is the media type of the response. If empty, it is JSON.
	produces string
	run      func(w http.ResponseWriter, r *request) error
}

// methods are the operations of one path.
type methods = web.Methods[operation]

// root is the chi pattern of the base of the facade.
const root = "/site/{siteId}/ahds/v1"

// paths are the operations of every path below root, by its chi pattern.
type paths map[string]methods

func (p paths) add(path string, supported methods) { p[path] = supported }

// paths returns the table of all paths of the facade. Contract 4.
func (h *handler) paths() paths {
	site := paths{}
	h.routeRecords(site, slots)
	h.routeRecords(site, eventGroups)
	h.routeSlots(site)
	h.routeFeeds(site)
	h.routeResources(site, webhookEvents)
	h.routeResources(site, webhooks)
	h.routeWebhooks(site)
	h.routeDeliveries(site)
	h.routeEvents(site)
	h.routeSite(site)
	return site
}

// Routes returns every method at every path of the facade, sorted by path and method.
func Routes() []web.Route {
	var all []web.Route
	for path, supported := range (&handler{}).paths() {
		for method, op := range supported {
			all = append(all, web.Route{
				Method: method, Path: path, Pattern: path, Public: op.open,
				Right: access.Action{Verb: op.verb, Group: cmp.Or(op.group, Group), Resource: op.resource},
			})
		}
	}
	web.SortRoutes(all)
	return all
}

// routes returns the router of the facade.
func (h *handler) routes() http.Handler {
	router := chi.NewRouter()
	router.Use(web.DecodeUnreserved)
	all := h.paths()
	h.segments = firstSegments(all)
	// Every path is registered for all methods of HTTP and responds with 405 itself. The router
	// reports only methods that HTTP does not define.
	router.MethodNotAllowed(h.errorHandler(&web.UnknownMethodError{}))
	router.NotFound(func(w http.ResponseWriter, r *http.Request) {
		h.fail(w, &request{Request: r}, h.unknownPath(r.URL.Path))
	})
	router.Route(root, func(site chi.Router) {
		for path, supported := range all {
			site.Handle(path, h.serve(supported))
		}
	})
	return router
}

// routeRecords registers the paths that each kind of record has.
func (h *handler) routeRecords(site paths, k *kind) {
	site.add("/"+k.segment, methods{
		http.MethodGet:  {verb: "list", resource: k.resource, run: func(w http.ResponseWriter, r *request) error { return h.list(w, r, k) }},
		http.MethodPost: {verb: "create", resource: k.resource, run: func(w http.ResponseWriter, r *request) error { return h.create(w, r, k) }},
	})
	site.add("/"+k.segment+"/{id}", methods{
		http.MethodGet:    {verb: "get", resource: k.resource, run: func(w http.ResponseWriter, r *request) error { return h.read(w, r, k) }},
		http.MethodPut:    {verb: "update", resource: k.resource, run: func(w http.ResponseWriter, r *request) error { return h.replace(w, r, k) }},
		http.MethodPatch:  {verb: "patch", resource: k.resource, run: func(w http.ResponseWriter, r *request) error { return h.patch(w, r, k) }},
		http.MethodDelete: {verb: "delete", resource: k.resource, run: func(w http.ResponseWriter, r *request) error { return h.remove(w, r, k) }},
	})
}

// routeSlots registers the further operations of slots.
func (h *handler) routeSlots(site paths) {
	site.add("/"+slots.segment+"/batch", methods{http.MethodPost: {verb: verbBatch, resource: slots.resource, run: h.batchSlots}})
	site.add("/"+slots.segment+"/generate", methods{http.MethodPost: {verb: "create", resource: slots.resource, run: h.generateSlots}})
	site.add("/"+slots.segment+"/changes", methods{http.MethodGet: {verb: "list", resource: slots.resource, run: h.slotChanges}})
	base := "/" + slots.segment + "/{id}"
	site.add(base+"/hold", methods{http.MethodPost: {verb: "update", resource: slots.resource, run: h.hold}})
	site.add(base+"/book", methods{http.MethodPost: {verb: "update", resource: slots.resource, run: h.book}})
	site.add(base+"/release", methods{http.MethodPost: {verb: "update", resource: slots.resource, run: h.release}})
}

// routeEvents registers the paths of events. Events cannot be read.
func (h *handler) routeEvents(site paths) {
	site.add("/"+eventSegment, methods{http.MethodPost: {verb: "create", resource: eventResource, run: h.acceptEvents}})
	site.add("/"+eventTypeSegment, methods{http.MethodGet: {verb: "list", resource: eventTypeResource, run: h.eventTypes}})
	site.add("/"+eventTypeSegment+"/{type}", methods{http.MethodGet: {verb: "get", resource: eventTypeResource, run: h.eventType}})
}

// errorHandler returns a handler that responds to every request with err.
func (h *handler) errorHandler(err error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { h.fail(w, &request{Request: r}, err) }
}
