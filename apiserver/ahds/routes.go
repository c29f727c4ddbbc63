package ahds

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/paddock-health/paddock/apiserver/web"
)

// operation is one HTTP method of a path.
type operation struct {
	// verb, resource and group are the Kubernetes RBAC permission that the operation requires. An
	// empty group means Group, whose resources are in the site's store. With verbBatch the caller
	// must have the permission of a verb in batchVerbs, and the operation checks those of its entries.
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

// routes returns the router of all paths of the facade. Contract 4.
func (h *handler) routes() http.Handler {
	router := chi.NewRouter()
	// Every path is registered for all methods of HTTP and responds with 405 itself. The router
	// reports only methods that HTTP does not define.
	router.MethodNotAllowed(h.errorHandler(&web.UnknownMethodError{}))
	router.NotFound(h.errorHandler(errUnknownPath))
	router.Route("/site/{siteId}/ahds/v1", func(site chi.Router) {
		h.routeRecords(site, slots)
		h.routeRecords(site, eventGroups)
		h.routeSlots(site)
		h.routeFeeds(site)
		h.routeResources(site, webhookEvents)
		h.routeResources(site, webhooks)
		h.routeWebhooks(site)
		h.routeDeliveries(site)
		h.routeEvents(site)
	})
	return router
}

// routeRecords registers the paths that each kind of record has.
func (h *handler) routeRecords(site chi.Router, k *kind) {
	site.Handle("/"+k.segment, h.serve(methods{
		http.MethodGet:  {verb: "list", resource: k.resource, run: func(w http.ResponseWriter, r *request) error { return h.list(w, r, k) }},
		http.MethodPost: {verb: "create", resource: k.resource, run: func(w http.ResponseWriter, r *request) error { return h.create(w, r, k) }},
	}))
	site.Handle("/"+k.segment+"/{id}", h.serve(methods{
		http.MethodGet:    {verb: "get", resource: k.resource, run: func(w http.ResponseWriter, r *request) error { return h.read(w, r, k) }},
		http.MethodPut:    {verb: "update", resource: k.resource, run: func(w http.ResponseWriter, r *request) error { return h.replace(w, r, k) }},
		http.MethodPatch:  {verb: "patch", resource: k.resource, run: func(w http.ResponseWriter, r *request) error { return h.patch(w, r, k) }},
		http.MethodDelete: {verb: "delete", resource: k.resource, run: func(w http.ResponseWriter, r *request) error { return h.remove(w, r, k) }},
	}))
}

// routeSlots registers the further operations of slots.
func (h *handler) routeSlots(site chi.Router) {
	site.Handle("/"+slots.segment+"/batch", h.serve(methods{http.MethodPost: {verb: verbBatch, resource: slots.resource, run: h.batchSlots}}))
	site.Handle("/"+slots.segment+"/generate", h.serve(methods{http.MethodPost: {verb: "create", resource: slots.resource, run: h.generateSlots}}))
	site.Handle("/"+slots.segment+"/changes", h.serve(methods{http.MethodGet: {verb: "list", resource: slots.resource, run: h.slotChanges}}))
	base := "/" + slots.segment + "/{id}"
	site.Handle(base+"/hold", h.serve(methods{http.MethodPost: {verb: "update", resource: slots.resource, run: h.hold}}))
	site.Handle(base+"/book", h.serve(methods{http.MethodPost: {verb: "update", resource: slots.resource, run: h.book}}))
	site.Handle(base+"/release", h.serve(methods{http.MethodPost: {verb: "update", resource: slots.resource, run: h.release}}))
}

// routeEvents registers the paths of events. Events cannot be read.
func (h *handler) routeEvents(site chi.Router) {
	site.Handle("/"+eventSegment, h.serve(methods{http.MethodPost: {verb: "create", resource: eventResource, run: h.acceptEvents}}))
	site.Handle("/"+eventTypeSegment, h.serve(methods{http.MethodGet: {verb: "list", resource: eventTypeResource, run: h.eventTypes}}))
	site.Handle("/"+eventTypeSegment+"/{type}", h.serve(methods{http.MethodGet: {verb: "get", resource: eventTypeResource, run: h.eventType}}))
}

// errorHandler returns a handler that responds to every request with err.
func (h *handler) errorHandler(err error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { h.fail(w, &request{Request: r}, err) }
}
