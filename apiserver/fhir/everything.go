package fhir

import (
	"net/http"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/web"
)

const (
	// patientType is the only type of this facade for which R4 defines $everything, except Group,
	// whose $everything is not supported. It is also the type whose compartment a $purge removes.
	patientType         = "Patient"
	everythingOperation = "$everything"
)

// canHaveEverything reports whether the type in the path of r has the operation $everything. It is
// true for a path that does not end in $everything.
func canHaveEverything(r *http.Request) bool {
	if !strings.HasSuffix(r.Pattern, "everything") {
		return true
	}
	kind, ok := r4.TypeOf(web.PathParameter(r, "type"))
	return ok && kind.Name == patientType
}

// everythingByPost serves POST …/Patient/{id}/$everything, which is how many clients call operations. The
// parameters of the body are added to those of the URL. R4 operations.html#request.
func (h *handler) everythingByPost(w http.ResponseWriter, r *request) error {
	body, err := r.readBody(w)
	if err != nil {
		return err
	}
	if err := r.addParameters(body); err != nil {
		return err
	}
	return h.everything(w, r)
}

// everything serves GET …/Patient/{id}/$everything: the Patient, the records of the compartment and
// the records to which these refer. The caller needs the right to get the Patient and to list
// Patients. Records of other types that the caller may not list are omitted. Errors:
// store.ErrNotFound, also for a hidden Patient, and *store.DeletedError. R4
// patient-operation-everything.html.
func (h *handler) everything(w http.ResponseWriter, r *request) error {
	options := h.searchOptions(r)
	options.Everything = r.id
	query, err := search.ParseEverything(r.query, options)
	if err != nil {
		return err
	}
	r.recordParameters(query.Ignored)
	if err := r.authorize("get"); err != nil {
		return err
	}
	if _, err := r.site.Store.Get(r.Context(), r.key()); err != nil {
		return err
	}
	listed, err := r.listableTypes(query.Types)
	if len(listed) == 0 {
		return err
	}
	query.Types = listed
	scope := r.kind.Name + "/" + strings.ToLower(r.id) + "/" + everythingOperation
	binding := r.binding(query, scope, slices.Concat(query.Types, query.ReachedTypes))
	at, err := h.cursor(query, binding)
	if err != nil {
		return err
	}
	page, err := r.searchRecords(query, at.After, r.maxLag())
	if err != nil {
		return err
	}
	base := r.pagesURL() + "/" + r.recordPath(r.key()) + "/" + everythingOperation
	links, err := h.pageLinks(base, query, binding, at, page.Next)
	if err != nil {
		return err
	}
	setLinks(w.Header(), links)
	setAge(w.Header(), page.Lag)
	found, err := r.searchset(query, page, links)
	if err != nil {
		return err
	}
	return r.respondBundle(w, found)
}
