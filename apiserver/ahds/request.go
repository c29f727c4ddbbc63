package ahds

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/ahds/document"
	"github.com/paddock-health/paddock/apiserver/ahds/fault"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// request is an HTTP request with what the facade has found out about it.
type request struct {
	*http.Request
	query url.Values

	site   Site
	caller access.Caller
	// id is the path's, empty where there is none.
	id string
}

// serve makes the handler of one path.
func (h *handler) serve(paths methods) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		req := &request{Request: r.WithContext(ctx)}
		if err := h.operate(w, req, paths); err != nil {
			h.fail(w, req, err)
		}
	}
}

// operate brings a request to its operation, or tells why not.
func (h *handler) operate(w http.ResponseWriter, r *request, paths methods) error {
	what, ok := paths.Find(r.Method)
	if !ok {
		return &methodError{allowed: paths.Allowed()}
	}
	if err := checkAccept(r.Header, what.produces); err != nil {
		return err
	}
	siteID, err := r.parsePath()
	if err != nil {
		return err
	}
	if err := h.admit(r, what, siteID); err != nil {
		return err
	}
	if r.query, err = web.ParseQuery(r.URL.RawQuery); err != nil {
		return fault.Faults{{In: fault.Parameter, Code: fault.CodeInvalidQuery, Detail: "the query string cannot be read: " + err.Error()}}
	}
	if _, named := r.parameter("id"); named && !document.IsUUID(r.id) {
		return fault.Faults{{In: fault.Parameter, At: "id", Code: fault.CodeInvalidValue, Detail: "the id in the path: " + document.NotUUID(r.id)}}
	}
	if !r.site.keeps(what.group) {
		return store.ErrUnavailable
	}
	return what.run(w, r)
}

// admit finds the site and asks whether the caller may do what the operation says.
func (h *handler) admit(r *request, what operation, siteID string) (err error) {
	if what.open {
		r.site, err = h.Find(siteID)
		return err
	}
	if r.site, r.caller, err = h.Admit(r.Request, siteID); err != nil {
		return err
	}
	return h.Authorizer.Authorize(r.Context(), r.caller, r.site.Access,
		access.Action{Verb: what.verb, Group: cmp.Or(what.group, Group), Resource: what.resource, Name: strings.ToLower(r.id)})
}

// parsePath takes site and id out of the path.
func (r *request) parsePath() (siteID string, err error) {
	siteID, _ = r.parameter("siteId")
	r.id, _ = r.parameter("id")
	if siteID == "" {
		return "", &pathUnknownError{}
	}
	return siteID, nil
}

// parameter is a parameter of the path, if the path has it. The router matches the escaped
// path where URL.Path alone does not say how it was written.
func (r *request) parameter(name string) (value string, ok bool) {
	value = r.PathValue(name)
	if value == "" {
		return "", false
	}
	if r.URL.RawPath == "" {
		return value, true
	}
	if text, err := url.PathUnescape(value); err == nil {
		return text, true
	}
	return value, true
}
