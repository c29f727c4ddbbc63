package fhir

import (
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// failUnserved answers with err in place of the response, if the audit entry cannot be stored.
func (h *handler) failUnserved(w http.ResponseWriter, r *http.Request, err error) {
	req := &request{Request: r, errorPages: h.ErrorPages}
	_ = req.negotiate() // sets a dialect even if it fails
	h.fail(w, req, err)
}

// Codes of some interactions in the audit log. The method interaction returns further codes. R4
// valueset-type-restful-interaction.html.
const (
	interactionSearchType  = "search-type"
	interactionTransaction = "transaction"
	interactionPurge       = "purge"
)

// writeStatuses are the statuses of the responses to a create, an update, a patch and a delete.
var writeStatuses = map[store.Outcome]int{
	store.Unchanged: http.StatusOK, store.Created: http.StatusCreated, store.Updated: http.StatusOK, store.Removed: http.StatusOK,
}

// recordInteraction adds the interaction, its action, its record and the owner of its compartment
// to the audit entry of the request. A request for a public interaction has no audit entry, unless it
// is denied.
func (r *request) recordInteraction(matched interaction) {
	recorder := audit.From(r.Context())
	name, action := r.interaction()
	key := store.Key{Type: r.kind.Name}
	if r4.ValidID(r.id) {
		key = r.key()
	}
	recorder.Interaction(name, action, key)
	if name != interactionPurge {
		recorder.Statuses(writeStatuses)
	}
	if r.compartment != nil {
		recorder.AddRead(store.Key{Type: r.compartment.Type, ID: r.compartment.ID})
	}
	if matched.public {
		recorder.Skip()
	}
}

// interaction returns the code of the interaction and its action. Both are empty for a method that
// no interaction has. R4 http.html, valueset-audit-event-action.html.
func (r *request) interaction() (string, audit.Action) {
	last := path.Base(strings.TrimSuffix(r.URL.Path, "/"))
	level := "-system"
	switch {
	case r.id != "":
		level = "-instance"
	case r.kind.Name != "":
		level = "-type"
	}
	switch {
	case r.version != "":
		return "vread", audit.Read
	case last == "_history", path.Base(r.Pattern) == "history": // in another pattern, history is an id
		return "history" + level, audit.Read
	case last == purgeOperation:
		return interactionPurge, audit.Delete
	case isOperation(last), strings.Contains(r.Pattern, "/{job}"):
		return "operation", audit.Execute
	case last == "_search", r.compartment != nil, r.id == "" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		return "search" + level, audit.Execute
	case r.Method == http.MethodPost && r.kind.Name == "":
		return "batch", audit.Execute
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return "read", audit.Read
	case http.MethodPost:
		return "create", audit.Create
	case http.MethodPut:
		return "update", audit.Update
	case http.MethodPatch:
		return "patch", audit.Update
	case http.MethodDelete:
		return "delete", audit.Delete
	default:
		return "", ""
	}
}

// recordParameters records in the audit log the names of the accepted parameters of a query, if the
// log of the site names parameters. The parameters in ignored are left out, because an unknown name
// may be a misplaced value.
func (r *request) recordParameters(ignored []string) {
	recorder := audit.From(r.Context())
	if !recorder.NamesParameters() {
		return
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(r.query)), func(name string) bool { return slices.Contains(ignored, name) })
	recorder.Parameters(names...)
}

// recordStatuses records in the audit log the status of each entry of a Bundle.
func recordStatuses(entries []*bundleEntry) {
	for _, e := range entries {
		audit.From(e.request.Context()).Status(e.response.status)
	}
}
