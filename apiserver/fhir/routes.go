package fhir

import (
	"maps"
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"
)

// interaction is one thing that can be done at a path.
type interaction struct {
	// verb is the right it needs, in the terms of Kubernetes RBAC.
	verb string
	run  func(w http.ResponseWriter, r *request) error
}

// methods are the interactions of one path. HEAD is wherever GET is.
type methods map[string]interaction

func (m methods) find(method string) (interaction, bool) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	i, ok := m[method]
	return i, ok
}

// allowed lists the methods for the Allow header.
func (m methods) allowed() []string {
	names := slices.Collect(maps.Keys(m))
	if _, ok := m[http.MethodGet]; ok {
		names = append(names, http.MethodHead)
	}
	slices.Sort(names)
	return names
}

// routes lists every path of the facade. On an id, history is accepted in the
// contract's spelling too; on a type it would be an id.
func (h *handler) routes() http.Handler {
	router := chi.NewRouter()
	// Every path takes all methods that HTTP defines, to answer 405 itself.
	router.MethodNotAllowed(h.fails(&methodUnknownError{}))
	router.NotFound(h.fails(&pathUnknownError{}))
	router.Route("/site/{siteId}/fhir", func(site chi.Router) {
		site.Handle("/{type}", h.serve(methods{
			http.MethodGet:  {"list", h.search},
			http.MethodPost: {"create", h.create},
		}))
		site.Handle("/{type}/_search", h.serve(methods{
			http.MethodPost: {"list", h.searchByPost},
		}))
		site.Handle("/{type}/{id}", h.serve(methods{
			http.MethodGet:    {"get", h.read},
			http.MethodPut:    {"update", h.update},
			http.MethodDelete: {"delete", h.delete},
		}))
		history := h.serve(methods{http.MethodGet: {"list", h.history}})
		site.Handle("/{type}/{id}/history", history)
		site.Handle("/{type}/{id}/_history", history)
		site.Handle("/{type}/{id}/_history/{vid}", h.serve(methods{
			http.MethodGet: {"get", h.readVersion},
		}))
	})
	return router
}

// fails answers every request with an error.
func (h *handler) fails(err error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		req := &request{Request: r}
		if negotiateErr := req.negotiate(); negotiateErr != nil {
			h.fail(w, req, negotiateErr)
			return
		}
		h.fail(w, req, err)
	}
}
