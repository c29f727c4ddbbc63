package ahds

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/paddock-health/paddock/apiserver/web"
)

// operation is one thing that can be done at a path.
type operation struct {
	// verb and resource are the right it needs, in the terms of Kubernetes RBAC. Without a
	// group the resource is one of this facade's own, and in the site's store.
	verb, resource, group string
	// open operations need no bearer token: they check a token of their own.
	open bool
	// produces is the media type of its answer; empty: JSON.
	produces string
	run      func(w http.ResponseWriter, r *request) error
}

// methods are the operations of one path.
type methods = web.Methods[operation]

// routes lists every path of the facade. Contract 4.
func (h *handler) routes() http.Handler {
	router := chi.NewRouter()
	// Every path takes all methods that HTTP defines, to answer 405 itself.
	router.MethodNotAllowed(h.fails(&methodUnknownError{}))
	router.NotFound(h.fails(&pathUnknownError{}))
	router.Route("/site/{siteId}/ahds/v1", func(site chi.Router) {
		h.routeRecords(site, slots)
		h.routeRecords(site, eventGroups)
		h.routeSlots(site)
		h.routeFeeds(site)
		h.routeResources(site, webhookEvents)
		h.routeResources(site, webhooks)
		h.routeWebhooks(site)
	})
	return router
}

// routeRecords lists the paths that every kind of record has.
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

// routeSlots lists what can be asked of a slot beside.
func (h *handler) routeSlots(site chi.Router) {
	base := "/" + slots.segment + "/{id}"
	site.Handle(base+"/hold", h.serve(methods{http.MethodPost: {verb: "update", resource: slots.resource, run: h.hold}}))
	site.Handle(base+"/book", h.serve(methods{http.MethodPost: {verb: "update", resource: slots.resource, run: h.book}}))
	site.Handle(base+"/release", h.serve(methods{http.MethodPost: {verb: "update", resource: slots.resource, run: h.release}}))
}

// fails answers every request with an error.
func (h *handler) fails(err error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { h.fail(w, &request{Request: r}, err) }
}
