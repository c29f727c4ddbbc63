package fhir

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/fhir/search/extract"
	"github.com/paddock-health/paddock/apiserver/store"
)

const (
	purgeOperation = "$purge"
	// compartmentParameter is the parameter of a $purge that selects whether the compartment of a
	// Patient is purged too.
	compartmentParameter = "compartment"
	// maxPurged is the maximum number of records that one $purge removes. A $purge of more records fails
	// and removes nothing, because a transaction of Postgres must not hold its locks for long.
	maxPurged = 1000
	// purgeAttempts is how often a $purge looks for the members of a compartment, if they change before
	// they are removed. After that it fails.
	purgeAttempts = 5
	// purgeConcurrency is how many records a $purge removes at the same time if Store.Atomic is
	// false. Each removal sends some ten requests to kube-apiserver and mostly waits for responses.
	purgeConcurrency = 16
)

// purgeOf returns the $purge of a type for the CapabilityStatement. R5 patient-operation-purge.html
// defines it for Patients; R4 has no definition.
func purgeOf(kind r4.Type) operation {
	if kind.Name == patientType {
		return operation{"purge", "http://hl7.org/fhir/OperationDefinition/Patient-purge"}
	}
	return operation{"purge", "https://paddock.health/fhir/OperationDefinition/purge"}
}

// purge serves POST …/{type}/{id}/$purge. It removes the record, its tombstone and history, and the
// events and deliveries about it. For a Patient it also removes the records that exclusiveMembers
// returns, unless the parameter compartment is false.
func (h *handler) purge(w http.ResponseWriter, r *request) error {
	withCompartment, err := r.readPurge(w)
	if err != nil {
		return err
	}
	removed := map[string]int{}
	for range purgeAttempts {
		members, shared, err := r.toPurge(withCompartment)
		if err != nil {
			return err
		}
		err = r.removeAll(members, removed)
		if store.IsConflict(err) {
			continue // a member has changed since the search
		}
		if err != nil {
			return err
		}
		if removed[r.kind.Name] == 0 {
			return store.ErrNotFound
		}
		body, err := h.receipt(removed, shared)
		if err != nil {
			return err
		}
		return r.respond(w, http.StatusOK, body)
	}
	return fmt.Errorf("purge the compartment of %s/%s, whose records keep changing: %w", r.kind.Name, r.id, store.ErrUnavailable)
}

// readPurge reads the parameter compartment from the query string or from a Parameters resource in
// the body. It is true by default for a Patient, and always false for other types.
func (r *request) readPurge(w http.ResponseWriter) (withCompartment bool, err error) {
	if err := rejectUnknownParameters(r.query, compartmentParameter); err != nil {
		return false, err
	}
	given := r.query.Get(compartmentParameter)
	raw, err := r.readBody(w)
	if err != nil {
		return false, err
	}
	if len(raw) > 0 {
		if _, err := bodyDialect(r.Header); err != nil {
			return false, err
		}
		if !isParameters(raw) {
			return false, invalidParameters("the body of a $purge must be empty or a Parameters resource; omit it, or send such a resource")
		}
		sent, err := purgeParameter(raw)
		if err != nil {
			return false, err
		}
		if sent != "" && r.query.Has(compartmentParameter) {
			return false, invalidParameters("the parameter compartment is given twice; give it either in the query string or in the body")
		}
		if sent != "" {
			given = sent
		}
	}
	switch {
	case given == "" && !r.query.Has(compartmentParameter):
		return r.kind.Name == patientType, nil
	case given != "true" && given != "false":
		return false, invalidParameters("the parameter compartment is " + r4.Quote(given) + "; it must be true or false")
	case given == "true" && r.kind.Name != patientType:
		return false, invalidParameters("the parameter compartment can be true only for a Patient; omit it")
	}
	return given == "true", nil
}

// purgeParameter returns the value of the parameter compartment in a Parameters resource, or "" if
// it has none.
func purgeParameter(raw []byte) (value string, err error) {
	parameters, err := readParameters(raw)
	if err != nil {
		return "", err
	}
	for _, p := range parameters {
		sent := p.members["valueBoolean"]
		isBoolean := sent.Kind() == jsontext.KindTrue || sent.Kind() == jsontext.KindFalse
		if p.name != compartmentParameter || !isBoolean || value != "" {
			return "", invalidParameters("a $purge has only the parameter compartment; give it once, as valueBoolean")
		}
		value = string(sent)
	}
	return value, nil
}

// member is a record to purge, and the precondition under which it belongs to the purge.
type member struct {
	key       store.Key
	condition store.Precondition
}

// toPurge returns the records that the request purges, the record in the path last. shared is the
// number of records in the compartment that stay: other Patients, and records that also refer to
// another record by a parameter of the compartment, because they are about that record too.
func (r *request) toPurge(withCompartment bool) (members []member, shared int, err error) {
	own := member{key: r.key()}
	if !withCompartment {
		return []member{own}, 0, nil
	}
	_, err = r.site.Store.Get(r.Context(), r.key())
	if errors.Is(err, store.ErrNotFound) {
		return []member{own}, 0, nil
	}
	if err != nil && !store.IsAbsent(err) {
		return nil, 0, err
	}
	definition, _ := r4.CompartmentOf(patientType)
	types := definition.Types()
	if _, ok := definition.Member("Device"); ok && !slices.Contains(types, "Device") {
		types = append(types, "Device") // contract 1 counts the Devices of a patient among the patient's data
	}
	for i, typeName := range types {
		// Only the first search is Consistent. Later searches see at least what it saw.
		found, others, err := r.exclusiveMembers(definition, typeName, i == 0)
		if err != nil {
			return nil, 0, err
		}
		members, shared = append(members, found...), shared+others
		if len(members) >= maxPurged {
			return nil, 0, &tooManyToPurgeError{}
		}
	}
	return append(members, own), shared, nil
}

// exclusiveMembers returns the records of a type that are in the compartment of the record in the path
// and refer to no other record by the parameters of the compartment. shared is the number of other
// records of the type in the compartment. Patients other than that in the path are never returned.
// The caller needs the rights to list the type and to purge each returned record. If consistent is
// true, the search sees what other replicas wrote.
func (r *request) exclusiveMembers(definition r4.Compartment, typeName string, consistent bool) (members []member, shared int, err error) {
	kind, _ := r4.TypeOf(typeName)
	if err := r.authorizeList(kind); err != nil {
		return nil, 0, err
	}
	membership, _ := definition.Member(typeName) // the parameters by which a record is a member
	where, _ := search.InCompartment(patientType, r.id, typeName)
	query := store.Query{
		Types: []string{typeName}, Where: where, Access: store.Access{typeName: store.All{}}, Bases: r.bases(),
		Count: 100, Total: store.TotalNone, Consistent: consistent,
	}
	for {
		page, err := r.site.Store.Search(r.Context(), query)
		if err != nil {
			return nil, 0, err
		}
		for _, record := range page.Records {
			switch {
			case strings.EqualFold(record.Key.ID, r.id) && typeName == patientType:
				continue
			case typeName == patientType || !r.isExclusive(record, membership):
				shared++
				continue
			}
			if err := r.authorizer.Authorize(r.Context(), r.caller, r.site.Access,
				access.Action{Verb: "purge", Group: Group, Resource: kind.Resource, Name: strings.ToLower(record.Key.ID)}); err != nil {
				return nil, 0, err
			}
			members = append(members, member{record.Key, store.UnchangedSince(record)})
		}
		if page.Next == nil || len(members) > maxPurged {
			return members, shared, nil
		}
		query.After, query.Consistent = page.Next, false
	}
}

// isExclusive reports whether all references of a record by the parameters of the membership are to
// the record in the path.
func (r *request) isExclusive(record store.Record, membership r4.Membership) bool {
	for _, value := range extract.References(record.Key.Type, record.Body.JSON) {
		reference, ok := value.Value.(store.Reference)
		if !ok || !slices.Contains(membership.Params, value.Param) {
			continue
		}
		to, local := reference.Local(r.bases())
		if !local || to.Type != r.kind.Name || to.ID != strings.ToLower(r.id) {
			return false
		}
	}
	return true
}

// removeAll purges records, and adds to removed how many records of each type it has removed. If
// Store.Atomic is false, it removes purgeConcurrency records at a time, and the last of members after
// all other members. A request that fails may then have removed some records. If the client repeats
// the request, it removes the remaining ones.
func (r *request) removeAll(members []member, removed map[string]int) error {
	ops := make([]store.Op, len(members))
	for i, m := range members {
		ops[i] = store.Op{Kind: store.Purge, Key: m.key, Method: store.MethodDelete, If: m.condition, Erase: true}
	}
	var mu sync.Mutex
	remove := func(ops ...store.Op) error {
		results, err := r.write(ops)
		mu.Lock()
		defer mu.Unlock()
		for i, result := range results {
			if result.Outcome == store.Removed {
				removed[ops[i].Key.Type]++
			}
		}
		return err
	}
	if r.site.Store.Atomic() {
		return remove(ops...)
	}
	group, ctx := errgroup.WithContext(r.Context())
	group.SetLimit(purgeConcurrency)
	last := len(ops) - 1
	for _, op := range ops[:last] {
		group.Go(func() error {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // Wait returns the error of the removal that has failed
			}
			return remove(op)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return remove(ops[last])
}

// tooManyToPurgeError is the error of a $purge of more than maxPurged records.
type tooManyToPurgeError struct{}

func (e *tooManyToPurgeError) Error() string {
	return fmt.Sprintf("the compartment has more than %d records to purge; purge some of them first, one by one", maxPurged)
}

// outsidePurge says what a $purge cannot reach.
const outsidePurge = "Outside of this purge: backups, files that were downloaded or exported before, what webhooks have received, and the audit log, which keeps the ids. " +
	"The storage engine frees the bytes on disk later; the guide on erasure has the commands that free them now."

// receiptParameter is a parameter of a receipt.
type receiptParameter struct {
	Name         string             `json:"name"`
	ValueCode    string             `json:"valueCode,omitempty"`
	ValueInteger *int               `json:"valueInteger,omitempty"`
	ValueInstant string             `json:"valueInstant,omitempty"`
	ValueString  string             `json:"valueString,omitempty"`
	Resource     *outcome           `json:"resource,omitempty"`
	Part         []receiptParameter `json:"part,omitempty"`
}

// receipt returns the response to a $purge: Parameters without ids and values of records. Its
// parameter return is the OperationOutcome of R5.
func (h *handler) receipt(removed map[string]int, shared int) ([]byte, error) {
	count, total := []receiptParameter{}, 0
	for _, kind := range r4.Types {
		if n := removed[kind.Name]; n > 0 {
			total += n
			count = append(count, receiptParameter{Name: "purged", Part: []receiptParameter{{Name: "type", ValueCode: kind.Name}, {Name: "count", ValueInteger: &n}}})
		}
	}
	done := information("purged", fmt.Sprintf("purged records: %d, with their histories, events and deliveries", total))
	receipt := newOutcome(h.ErrorPages, []r4.Issue{done})
	parameters := []receiptParameter{
		{Name: "return", Resource: &receipt},
		{Name: "time", ValueInstant: h.Now().UTC().Format("2006-01-02T15:04:05.000Z")},
	}
	parameters = append(parameters, count...)
	parameters = append(parameters, receiptParameter{Name: "shared", ValueInteger: &shared}, receiptParameter{Name: "outside", ValueString: outsidePurge})
	return json.Marshal(struct {
		ResourceType string             `json:"resourceType"`
		Parameter    []receiptParameter `json:"parameter"`
	}{"Parameters", parameters})
}
