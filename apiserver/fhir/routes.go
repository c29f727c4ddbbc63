package fhir

import (
	"net/http"
	"path"

	"github.com/go-chi/chi/v5"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// interaction is one thing that can be done at a path.
type interaction struct {
	// verb is the right it needs, in the terms of Kubernetes RBAC. Without one, it
	// asks for rights itself.
	verb string
	// public interactions need no token, and no storage.
	public bool
	// run serves an interaction that writes nothing. One that writes has plan, which
	// reads what is asked for, and answer, which says what became of it.
	run    func(w http.ResponseWriter, r *request) error
	plan   func(w http.ResponseWriter, r *request) (decision, error)
	answer func(w http.ResponseWriter, r *request, done store.Result) error
}

// methods are the interactions of one path.
type methods = web.Methods[interaction]

// routes lists every path of the facade. On an id, history is accepted in the
// contract's spelling too; on a type it would be an id.
func (h *handler) routes() http.Handler {
	router := chi.NewRouter()
	router.Use(web.StripSlash)
	// Every path takes all methods that HTTP defines, to answer 405 itself.
	router.MethodNotAllowed(h.fails(func(*http.Request) error { return &methodUnknownError{} }))
	router.NotFound(h.fails(notRouted))
	router.Route("/site/{siteId}/fhir", func(site chi.Router) {
		site.Handle("/", h.serve(methods{
			http.MethodGet:     {run: h.search},
			http.MethodPost:    {run: h.bundle},
			http.MethodOptions: {public: true, run: h.metadata},
		}))
		site.Handle("/metadata", h.serve(methods{
			http.MethodGet: {public: true, run: h.metadata},
		}))
		site.Handle("/_history", h.serve(methods{
			http.MethodGet: {run: h.siteHistory},
		}))
		site.Handle("/_search", h.serve(methods{
			http.MethodPost: {run: h.searchByPost},
		}))
		site.Handle("/{type}", h.serve(methods{
			http.MethodGet:    {verb: "list", run: h.search},
			http.MethodPost:   {verb: "create", plan: h.create, answer: answerWritten},
			http.MethodPut:    {verb: "update", plan: h.updateChosen, answer: answerWritten},
			http.MethodPatch:  {verb: "patch", plan: h.patchChosen, answer: answerWritten},
			http.MethodDelete: {verb: "delete", plan: h.removeChosen, answer: answerDeleted},
		}))
		site.Handle("/{type}/_search", h.serve(methods{
			http.MethodPost: {verb: "list", run: h.searchByPost},
		}))
		validate := h.serve(methods{http.MethodPost: {verb: "create", run: h.validate}})
		site.Handle("/{type}/$validate", validate)
		site.Handle("/{type}/%24validate", validate) // as some clients write it
		site.Handle("/{type}/_history", h.serve(methods{
			http.MethodGet: {verb: "list", run: h.typeHistory},
		}))
		site.Handle("/{type}/{id}", h.serve(methods{
			http.MethodGet:    {verb: "get", run: h.read},
			http.MethodPut:    {verb: "update", plan: h.update, answer: answerWritten},
			http.MethodPatch:  {verb: "patch", plan: h.patch, answer: answerWritten},
			http.MethodDelete: {verb: "delete", plan: h.remove, answer: answerDeleted},
		}))
		validateRecord := h.serve(methods{http.MethodPost: {verb: "update", run: h.validate}})
		site.Handle("/{type}/{id}/$validate", validateRecord)
		site.Handle("/{type}/{id}/%24validate", validateRecord)
		history := h.serve(methods{http.MethodGet: {verb: "list", run: h.history}})
		site.Handle("/{type}/{id}/history", history)
		site.Handle("/{type}/{id}/_history", history)
		site.Handle("/{type}/{id}/{members}", h.members(h.serve(methods{http.MethodGet: {verb: "list", run: h.search}})))
		inCompartmentByPost := h.serve(methods{http.MethodPost: {verb: "list", run: h.searchByPost}})
		site.Handle("/{type}/{id}/{members}/_search", h.members(inCompartmentByPost))
		site.Handle("/{type}/{id}/_search", ofAllMembers(inCompartmentByPost))
		site.Handle("/{type}/{id}/_history/{vid}", h.serve(methods{
			http.MethodGet: {verb: "get", run: h.readVersion},
		}))
	})
	return router
}

// notRouted is the error of a path that no route matches.
func notRouted(r *http.Request) error {
	if name := path.Base(r.URL.Path); isOperation(name) {
		return &operationUnknownError{name: name}
	}
	return &pathUnknownError{}
}

// fails answers every request with the error that why returns.
func (h *handler) fails(why func(*http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if e := entryOf(r.Context()); e != nil {
			e.err = why(r)
			return
		}
		req := &request{Request: r}
		if err := req.negotiate(); err != nil {
			h.fail(w, req, err)
			return
		}
		h.fail(w, req, why(r))
	}
}
