package main

import (
	"context"
	"net/http"
	"net/url"

	"github.com/paddock-health/paddock/apiserver/aggregated"
)

type visitKey struct{}

// visitOf is the visit that a request is, through kube-apiserver.
func visitOf(ctx context.Context) (aggregated.Visit, bool) {
	visit, ok := ctx.Value(visitKey{}).(aggregated.Visit)
	return visit, ok
}

// visited serves an API of sites, by the name it has in their paths, to visitors: it is
// the same handler that serves the public addresses, and finds out there whose request it
// is and what that caller may do.
func visited(name string, handler http.Handler) aggregated.Facade {
	return func(w http.ResponseWriter, r *http.Request, visit aggregated.Visit) {
		path, err := url.Parse("/site/" + url.PathEscape(visit.SiteID) + "/" + name + visit.Path)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		inside := r.Clone(context.WithValue(r.Context(), visitKey{}, visit))
		inside.URL.Path, inside.URL.RawPath = path.Path, path.RawPath
		inside.RequestURI = inside.URL.RequestURI()
		handler.ServeHTTP(w, inside)
	}
}
