package fhir

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// request is an HTTP request with what the facade has found out about it.
type request struct {
	*http.Request
	// query is the query string, with the form of a POST search merged in.
	query url.Values
	// dialect of the answer.
	dialect *dialect
	pretty  bool

	site   Site
	caller access.Caller
	kind   r4.Type
	// segment is the type as the path spells it, and so do links.
	segment string
	// compartment, unless nil, is the one that the path names to search in.
	compartment *compartment
	// id and version are the path's, empty where there is none.
	id, version string

	// shown is the part of a record to answer with, to a read or a write of one.
	shown part

	authorizer access.Authorizer
	// inBundle is set for an entry of a batch or transaction.
	inBundle bool

	// What the answer is about, for an entry's response: when the version in it was
	// written, and whether it is an OperationOutcome.
	updated     time.Time
	saysOutcome bool
}

// serve makes the handler of one path. The entry of a bundle is not served yet: it
// learns what it asks for.
func (h *handler) serve(paths methods) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if e := entryOf(r.Context()); e != nil {
			e.request.Request = r
			e.what, _, e.err = e.request.find(paths)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		req := &request{Request: r.WithContext(ctx), authorizer: h.Authorizer}
		if err := h.interact(w, req, paths); err != nil {
			h.fail(w, req, err)
		}
	}
}

// interact brings a request to its interaction, or tells why not.
func (h *handler) interact(w http.ResponseWriter, r *request, paths methods) error {
	what, siteID, err := r.find(paths)
	if err != nil {
		return err
	}
	if what.public {
		r.site, err = h.Find(siteID)
	} else {
		r.site, r.caller, err = h.Admit(r.Request, siteID)
	}
	if err != nil {
		return err
	}
	return h.perform(w, r, what)
}

// find settles how to answer, what is asked for and of which site.
func (r *request) find(paths methods) (what interaction, siteID string, err error) {
	if err := r.negotiate(); err != nil {
		return interaction{}, "", err
	}
	if name := r.operationInPath(); name != "" {
		return interaction{}, "", &operationUnknownError{name: name}
	}
	what, ok := paths.Find(r.Method)
	if !ok {
		return interaction{}, "", &methodError{allowed: paths.Allowed()}
	}
	siteID, err = r.parsePath()
	return what, siteID, err
}

// perform does what an admitted caller asks for, if the caller may.
func (h *handler) perform(w http.ResponseWriter, r *request, what interaction) error {
	if what.verb != "" && r.kind.Name != "" { // a search of several types asks for rights itself
		if err := r.authorize(what.verb); err != nil {
			return err
		}
	}
	if r.site.Store == nil && !what.public {
		return store.ErrUnavailable
	}
	if what.run != nil {
		return what.run(w, r)
	}
	decide, err := what.plan(w, r)
	if err != nil {
		return err
	}
	done, err := r.carryOut(decide)
	if err != nil {
		return err
	}
	return what.answer(w, r, done)
}

// negotiate settles how to answer, before anything can go wrong.
func (r *request) negotiate() error {
	r.dialect = contractDialect
	query, err := web.ParseQuery(r.URL.RawQuery)
	if err != nil {
		if accepted := acceptedDialect(r.Header.Values("Accept")); accepted != nil {
			r.dialect = accepted
		}
		return &invalidError{code: codeInvalidQuery, diagnostics: "the query string cannot be read: " + err.Error()}
	}
	return r.setQuery(query)
}

// setQuery takes the parameters, and the format of the answer from them.
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

// refuseOthers refuses parameters beside those known, each of which may be given
// once, and those that every request may have.
func refuseOthers(query url.Values, known ...string) error {
	var wrong search.Errors
	for _, name := range slices.Sorted(maps.Keys(search.WithoutPresentation(query))) {
		switch {
		case !slices.Contains(known, name):
			wrong = append(wrong, search.Error{Parameter: name, Problem: "is not known here; known are " + strings.Join(append(known, "_format", "_pretty"), ", ")})
		case len(query[name]) > 1:
			wrong = append(wrong, search.Error{Parameter: name, Problem: "is given more than once"})
		}
	}
	if len(wrong) > 0 {
		return wrong[:min(len(wrong), maxIssues)]
	}
	return nil
}

// isOperation reports whether a segment of a path names an operation. R4 operations.html#extensibility.
func isOperation(segment string) bool { return strings.HasPrefix(segment, "$") }

// operationInPath returns the operation that stands where the route expects a type, an id or a
// version, and is empty if there is none. Operations of this server have routes of their own.
func (r *request) operationInPath() string {
	for _, name := range []string{"type", "id", "vid"} {
		if value, err := r.parameter(name); err == nil && isOperation(value) {
			return value
		}
	}
	return ""
}

// parsePath takes site, type and id out of the path.
func (r *request) parsePath() (siteID string, err error) {
	values := map[string]string{}
	for _, name := range []string{"siteId", "type", "id", "vid", "members"} {
		if values[name], err = r.parameter(name); err != nil {
			return "", &pathUnknownError{}
		}
	}
	r.segment, r.id, r.version = values["type"], values["id"], values["vid"]
	if slices.Contains(chi.RouteContext(r.Context()).URLParams.Keys, "type") {
		var ok bool
		if r.kind, ok = r4.TypeOf(r.segment); !ok {
			return "", &typeUnknownError{segment: r.segment}
		}
	}
	if r.id != "" && !r4.ValidID(r.id) {
		return "", r.invalidID()
	}
	if members := values["members"]; members != "" {
		if err := r.enterCompartment(members); err != nil {
			return "", err
		}
	}
	return values["siteId"], nil
}

// parameter is a parameter of the path. The router matches the escaped path where
// URL.Path alone does not say how it was written.
func (r *request) parameter(name string) (string, error) {
	if r.URL.RawPath == "" {
		return r.PathValue(name), nil
	}
	return url.PathUnescape(r.PathValue(name))
}

// invalidID says what to make of a path with an id that no record can have. To
// write there is a mistake; otherwise there is just nothing.
func (r *request) invalidID() error {
	if r.Method == http.MethodPut {
		return &invalidError{code: r4.CodeInvalidID, diagnostics: "the id " + r4.Quote(r.id) + " in the path is not " + r4.IDPattern}
	}
	return store.ErrNotFound
}

// authorize asks whether the caller may do what the verb says to the record that
// the path names, or to its type.
func (r *request) authorize(verb string) error {
	action := access.Action{Verb: verb, Group: Group, Resource: r.kind.Resource}
	if verb != "list" { // a collection has no name, nor has one record's history
		action.Name = strings.ToLower(r.id)
	}
	return r.authorizer.Authorize(r.Context(), r.caller, r.site.Access, action)
}

// authorizeList asks whether the caller may list the records of a type.
func (r *request) authorizeList(kind r4.Type) error {
	return r.authorizer.Authorize(r.Context(), r.caller, r.site.Access,
		access.Action{Verb: "list", Group: Group, Resource: kind.Resource})
}

// key names the record of the path, or its type where it names no record.
func (r *request) key() store.Key { return store.Key{Type: r.kind.Name, ID: r.id} }

// pagesURL is where links to pages start.
func (r *request) pagesURL() string { return cmp.Or(r.site.PagesURL, r.site.BaseURL) }

// typeURL is the address of the pages of the type.
func (r *request) typeURL() string { return r.pagesURL() + "/" + r.segment }

// recordPath is where a record is below the base. The type is spelled as in the
// request; a request that names none gets FHIR's spelling.
func (r *request) recordPath(key store.Key) string {
	return r.spelled(key.Type) + "/" + key.ID
}

// spelled is a type as the path spells its own.
func (r *request) spelled(typeName string) string {
	own, ok := r4.TypeOf(r.segment)
	kind, known := r4.TypeOf(typeName)
	if ok && known && r.segment == own.Segment {
		return kind.Segment
	}
	return typeName
}

// recordURL is the address of a record.
func (r *request) recordURL(key store.Key) string { return r.site.BaseURL + "/" + r.recordPath(key) }

// versionURL is the address of a version.
func (r *request) versionURL(rec store.Record) string {
	return r.recordURL(rec.Key) + "/_history/" + strconv.FormatInt(rec.Version, 10)
}
