package server

import (
	"context"
	"net/http"
	"net/url"

	"github.com/paddock-health/paddock/apiserver/aggregated"
)

// delegationKey is the context key of an aggregated.DelegatedRequest.
type delegationKey struct{}

// delegationOf returns the delegation of a request that came through kube-apiserver. It reports
// whether the request is delegated.
func delegationOf(ctx context.Context) (aggregated.DelegatedRequest, bool) {
	delegation, ok := ctx.Value(delegationKey{}).(aggregated.DelegatedRequest)
	return delegation, ok
}

// delegated returns a facade that serves requests from kube-apiserver with the handler of the
// public URLs. name is the API's segment in the paths of Sites. The handler takes the caller from
// the delegation and authorizes it as usual.
func delegated(name string, handler http.Handler) aggregated.Facade {
	return func(w http.ResponseWriter, r *http.Request, delegation aggregated.DelegatedRequest) {
		path, err := url.Parse("/site/" + url.PathEscape(delegation.SiteID) + "/" + name + delegation.Path)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		inside := r.Clone(context.WithValue(r.Context(), delegationKey{}, delegation))
		inside.URL.Path, inside.URL.RawPath = path.Path, path.RawPath
		inside.RequestURI = inside.URL.RequestURI()
		handler.ServeHTTP(w, inside)
	}
}
