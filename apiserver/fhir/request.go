package fhir

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/errorcode"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/suggest"
	"github.com/paddock-health/paddock/apiserver/web"
)

// request is an HTTP request and what the facade has derived from it.
type request struct {
	*http.Request
	// query has the parameters of the query string. A search by POST adds those of its form.
	query url.Values
	// dialect is the dialect of the response.
	dialect *dialect
	// pretty is true if the response is indented.
	pretty bool

	site   Endpoint
	caller access.Caller
	kind   r4.Type
	// segment is the resource type as the path spells it. Links repeat this spelling.
	segment string
	// compartment is the compartment that the path searches. It is nil for other paths.
	compartment *compartment
	// id and version are those of the path, or empty.
	id, version string

	// projection is the part of the record that the response to a read or a write has.
	projection projection

	authorizer access.Authorizer
	errorPages errorcode.Pages
	// inBundle is true for an entry of a batch or transaction.
	inBundle bool

	// lastModified and isOutcome describe the response, for the entry of a Bundle response: when
	// the version in it was written, and whether its body is an OperationOutcome.
	lastModified time.Time
	isOutcome    bool
}

// serve returns the handler of one path.
func (h *handler) serve(supported methods) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), cmp.Or(supported[r.Method].timeout, requestTimeout))
		defer cancel()
		req := &request{Request: r.WithContext(ctx), authorizer: h.Authorizer, errorPages: h.ErrorPages}
		if err := h.interact(w, req, supported); err != nil {
			h.fail(w, req, err)
		}
	}
}

// interact finds the interaction of a request, admits the caller and performs the interaction.
func (h *handler) interact(w http.ResponseWriter, r *request, supported methods) error {
	matched, siteID, err := r.match(supported)
	r.recordInteraction(matched)
	if err != nil {
		return err
	}
	if matched.public {
		r.site, err = h.Find(r.Request, siteID)
	} else {
		r.site, r.caller, err = h.Admit(r.Request, siteID)
	}
	if err != nil {
		return err
	}
	return h.perform(w, r, matched)
}

// match negotiates the dialect of the response, finds the interaction and parses the path.
func (r *request) match(supported methods) (matched interaction, siteID string, err error) {
	if err := r.negotiate(); err != nil {
		return interaction{}, "", err
	}
	if name := r.operationInPath(); name != "" {
		return interaction{}, "", &operationUnknownError{name: name}
	}
	if matched, err = findInteraction(supported, r.Method); err != nil {
		return interaction{}, "", r.refusedMethod(err)
	}
	siteID, err = r.parsePath(matched.allTypes)
	return matched, siteID, err
}

// findInteraction returns the interaction of a method at a path. Errors: *web.MethodError.
func findInteraction(supported methods, method string) (interaction, error) {
	if supported[http.MethodGet].noHead && method != http.MethodGet {
		return interaction{}, &web.MethodError{Allowed: []string{http.MethodGet}}
	}
	return supported.Find(method)
}

// refusedMethod returns the error for a method that the path of r does not support: notAllowed or, if
// the path names an unknown type, the error that all methods have there. Errors: *typeUnknownError,
// and notAllowed.
func (r *request) refusedMethod(notAllowed error) error {
	parsed := *r // the audit entry of a refused method names neither record nor compartment
	var unknown *typeUnknownError
	if _, err := parsed.parsePath(false); errors.As(err, &unknown) {
		return unknown
	}
	return notAllowed
}

// perform authorizes an admitted caller and performs the interaction.
func (h *handler) perform(w http.ResponseWriter, r *request, matched interaction) error {
	if matched.verb != "" && r.kind.Name != "" { // a search of several types checks rights itself
		if err := r.authorize(matched.verb); err != nil {
			return err
		}
	}
	if r.site.Store == nil && !matched.public {
		return store.ErrUnavailable
	}
	if matched.searches || matched.verb == "list" {
		end, err := r.site.Limiter.Search(r.Context(), r.caller.Name)
		if err != nil {
			return err
		}
		defer end()
	}
	if matched.run != nil {
		return matched.run(w, r)
	}
	nextStep, err := matched.plan(w, r)
	if err != nil {
		return err
	}
	result, err := r.execute(nextStep)
	if err != nil {
		return err
	}
	return matched.respond(w, r, result)
}

// negotiate parses the query string and chooses the dialect of the response. If it returns an
// error, r has a dialect all the same, for the response to the error.
func (r *request) negotiate() error {
	r.dialect = contractDialect
	query, err := web.ParseQuery(r.URL.RawQuery)
	if err != nil {
		if accepted := acceptedDialect(r.Header); accepted != nil {
			r.dialect = accepted
		}
		return &invalidError{code: codeInvalidQuery, diagnostics: "the query string is invalid: " + err.Error()}
	}
	return r.setQuery(query)
}

// setQuery sets the query string and what follows from it: the dialect and the format of the
// response.
func (r *request) setQuery(query url.Values) error {
	r.query = query
	chosen, err := negotiate(r.Header, query)
	if err != nil {
		return err
	}
	r.dialect = chosen
	r.pretty, err = wantsPretty(query)
	return err
}

// rejectUnknownParameters returns an error for parameters that are not known, and for known
// parameters that are repeated. _format and _pretty are always accepted. Errors: search.Errors.
func rejectUnknownParameters(query url.Values, known ...string) error {
	var wrong search.Errors
	for _, name := range slices.Sorted(maps.Keys(search.WithoutPresentation(query))) {
		switch {
		case !slices.Contains(known, name):
			wrong = append(wrong, search.Error{Parameter: name, Problem: "the parameter is not supported" + suggest.Among(name, append(known, "_format", "_pretty"), "supported parameters:")})
		case len(query[name]) > 1:
			wrong = append(wrong, search.Error{Parameter: name, Problem: "the parameter is given more than once; give it once"})
		}
	}
	if len(wrong) > 0 {
		return wrong[:min(len(wrong), maxIssues)]
	}
	return nil
}

// isOperation reports whether a path segment names an operation. R4 operations.html#extensibility.
func isOperation(segment string) bool { return strings.HasPrefix(segment, "$") }

// operationInPath returns the name of an operation in the place of a type, an id or a version, or
// "". It is not supported, because supported operations have their own routes.
func (r *request) operationInPath() string {
	for _, name := range []string{"type", "id", "vid"} {
		if value := web.PathParameter(r.Request, name); isOperation(value) {
			return value
		}
	}
	return ""
}

// parsePath sets type, id, version and compartment from the path, and returns the siteId. If
// allTypes is set, the request searches all types in the compartment of the record in the path.
func (r *request) parsePath(allTypes bool) (siteID string, err error) {
	values := map[string]string{}
	for _, name := range []string{"siteId", "type", "id", "vid", "members"} {
		values[name] = web.PathParameter(r.Request, name)
	}
	r.segment, r.id, r.version = values["type"], values["id"], values["vid"]
	if strings.Contains(r.Pattern, "{type}") {
		var ok bool
		if r.kind, ok = r4.TypeOf(r.segment); !ok {
			return "", &typeUnknownError{segment: r.segment}
		}
	}
	if r.id != "" && !r4.ValidID(r.id) {
		return "", r.invalidID()
	}
	members := values["members"]
	if allTypes {
		members = allMembers
	}
	if members != "" {
		if err := r.enterCompartment(members); err != nil {
			return "", err
		}
	}
	return values["siteId"], nil
}

// invalidID returns the error for a path with an id that no record can have: 400 for a PUT, 404 for
// other methods.
func (r *request) invalidID() error {
	if r.Method == http.MethodPut {
		return &invalidError{code: r4.CodeInvalidID, diagnostics: "the id " + r4.Quote(r.id) + " in the path is not valid; send " + r4.IDPattern}
	}
	return store.ErrNotFound
}

// authorize checks that the caller has the right to a verb on the record in the path, or on its
// type.
func (r *request) authorize(verb string) error {
	action := access.Action{Verb: verb, Group: Group, Resource: r.kind.Resource}
	if verb != "list" { // neither a collection nor the history of one record has a resource name
		action.Name = strings.ToLower(r.id)
	}
	return r.authorizer.Authorize(r.Context(), r.caller, r.site.Access, action)
}

func (r *request) authorizeList(kind r4.Type) error {
	return r.authorizer.Authorize(r.Context(), r.caller, r.site.Access,
		access.Action{Verb: "list", Group: Group, Resource: kind.Resource})
}

// key returns the key of the record in the path. Its ID is empty if the path has only a type.
func (r *request) key() store.Key { return store.Key{Type: r.kind.Name, ID: r.id} }

func (r *request) pagesURL() string { return cmp.Or(r.site.PagesURL, r.site.BaseURL) }

func (r *request) typeURL() string { return r.pagesURL() + "/" + r.segment }

// recordPath returns the path of a record relative to the base. The type is spelled as in the
// request, or as in FHIR if the request names no type.
func (r *request) recordPath(key store.Key) string {
	return r.typeSegment(key.Type) + "/" + key.ID
}

// typeSegment returns a type in the spelling of the request.
func (r *request) typeSegment(typeName string) string {
	own, ok := r4.TypeOf(r.segment)
	kind, known := r4.TypeOf(typeName)
	if ok && known && r.segment == own.Segment {
		return kind.Segment
	}
	return typeName
}

func (r *request) recordURL(key store.Key) string { return r.site.BaseURL + "/" + r.recordPath(key) }

func (r *request) versionURL(rec store.Record) string {
	return r.recordURL(rec.Key) + "/_history/" + strconv.FormatInt(rec.Version, 10)
}
