package ahds

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// request is an HTTP request with its site and its caller.
type request struct {
	*http.Request
	query url.Values

	site   DataStore
	caller access.Caller
	// open is set if the operation requires no bearer token.
	open bool
	// id is the id in the path. It is empty if the path has none.
	id string
}

// serve returns the handler of one path.
func (h *handler) serve(paths methods) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if op, _ := paths.Find(r.Method); !op.streams {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, requestTimeout)
			defer cancel()
		}
		began, req := time.Now(), &request{Request: r.WithContext(ctx)}
		if err := h.operate(w, req, paths); err != nil {
			h.fail(w, req, req.conceal(began, err))
		}
	}
}

// conceal returns the error to respond with. If a request of an open operation fails at a hidden
// site, conceal returns the error of a site that does not exist, and waits until the response has
// the timing of such a site.
func (r *request) conceal(began time.Time, err error) error {
	if !r.open || !r.site.Access.Hidden && !errors.Is(err, access.ErrSiteHidden) {
		return err
	}
	audit.From(r.Context()).Conceal(true)
	access.AwaitAbsent(r.Context(), began)
	return access.ErrSiteHidden
}

// operate checks a request and runs its operation.
func (h *handler) operate(w http.ResponseWriter, r *request, paths methods) error {
	op, err := paths.Find(r.Method)
	if err != nil {
		return err
	}
	if err := checkAccept(r.Header, op.produces); err != nil {
		return err
	}
	siteID, err := r.parsePath()
	if err != nil {
		return err
	}
	r.auditOperation(op)
	if err := h.admit(r, op, siteID); err != nil {
		return err
	}
	if err := audit.From(r.Context()).Ready(); err != nil {
		return err
	}
	if r.query, err = web.ParseQuery(r.URL.RawQuery); err != nil {
		return fielderror.Errors{{In: fielderror.Parameter, Code: fielderror.CodeInvalidQuery, Detail: "the query string is invalid: " + err.Error()}}
	}
	if r.id != "" && !schema.IsUUID(r.id) {
		return fielderror.Errors{{In: fielderror.Parameter, At: "id", Code: fielderror.CodeInvalidValue, Detail: "the id in the path: " + schema.NotUUID(r.id)}}
	}
	if !r.site.isOpen(op.group) {
		return store.ErrUnavailable
	}
	if op.verb != "list" {
		return op.run(w, r)
	}
	end, err := r.site.Limiter.Search(r.Context(), r.caller.Name)
	if err != nil {
		return err
	}
	defer end()
	return op.run(w, r)
}

// admit finds the site, authenticates the caller and authorizes the operation.
func (h *handler) admit(r *request, op operation, siteID string) (err error) {
	if r.open = op.open; r.open {
		r.site, err = h.Find(r.Request, siteID)
		audit.From(r.Context()).At(r.site.Audit)
		return err
	}
	if r.site, r.caller, err = h.Admit(r.Request, siteID); err != nil {
		return err
	}
	switch op.verb {
	case "":
		return nil
	case verbBatch:
		return h.authorizeAny(r, op)
	}
	return h.Authorizer.Authorize(r.Context(), r.caller, r.site.Access,
		access.Action{Verb: op.verb, Group: cmp.Or(op.group, Group), Resource: op.resource, Name: r.objectName(op.resource)})
}

// objectName returns the name of the object that the request is about, to which a right can be limited.
// It is empty if the request is about all objects of the resource.
func (r *request) objectName(resource string) string {
	if resource == siteResource {
		return r.site.Access.Name
	}
	return strings.ToLower(r.id)
}

// parsePath returns the siteId of the path and sets r.id.
func (r *request) parsePath() (siteID string, err error) {
	r.id = web.PathParameter(r.Request, "id")
	if siteID = web.PathParameter(r.Request, "siteId"); siteID == "" {
		return "", &web.UnknownPathError{Paths: "the paths of this API begin with /site/{siteId}/ahds/v1"}
	}
	return siteID, nil
}
