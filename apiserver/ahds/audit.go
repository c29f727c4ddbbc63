package ahds

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/ahds/event"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/store"
)

// writeStatuses are the statuses of the responses to a create, an update, a patch and a delete of a record.
var writeStatuses = map[store.Outcome]int{
	store.Unchanged: http.StatusOK, store.Created: http.StatusCreated, store.Updated: http.StatusOK, store.Removed: http.StatusNoContent,
}

// auditOperation records the operation of the request in the audit log. The type of a record is
// that in the store, and the type of another object is the name of its resource. The name of a
// subresource follows the verb: "list deliveries", "stream deliveries".
func (r *request) auditOperation(what operation) {
	if what.open { // a calendar, which lists slots
		what.verb, what.resource = "list", slots.resource
	}
	resource, subresource, _ := strings.Cut(what.resource, "/")
	key := store.Key{Type: resource}
	if what.resource == eventResource {
		key.Type = event.Type
	}
	recorder := audit.From(r.Context())
	for _, k := range kinds() {
		if k.resource == what.resource {
			key.Type = k.recordType
			recorder.Statuses(writeStatuses)
		}
	}
	if schema.IsUUID(r.id) {
		key.ID = r.id
	}
	name, action := strings.TrimSuffix(what.verb+" "+subresource, " "), audit.ActionOf(what.verb)
	if what.streams {
		name, action = "stream "+subresource, audit.Read
	}
	recorder.Interaction(name, action, key)
	if what.verb == "" || what.resource == siteResource {
		recorder.Skip() // these operations show no records, and clients poll the state of the site
	}
}

// auditParameters records the names of a list's parameters in the audit log, if the Site's audit
// level includes them.
func (r *request) auditParameters() {
	if recorder := audit.From(r.Context()); recorder.NamesParameters() {
		recorder.Parameters(slices.Sorted(maps.Keys(r.query))...)
	}
}
