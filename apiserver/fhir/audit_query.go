package fhir

import (
	"encoding/binary"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/suggest"
)

// The code systems and codes in AuditEvents.
const (
	auditTypeSystem    = "http://terminology.hl7.org/CodeSystem/audit-event-type"
	auditTypeRest      = "rest"
	auditSubtypeSystem = "http://hl7.org/fhir/restful-interaction"
)

// auditSearch is a query of AuditEvents.
type auditSearch struct {
	audit.Query
	// matchesNone is true if the parameters exclude every entry.
	matchesNone bool
	// hasCount is true if the client sent _count.
	hasCount bool
	token    string
}

// auditParameter is a search parameter of AuditEvent, of type kind. read parses one value into q.
type auditParameter struct {
	kind       string
	repeatable bool
	read       func(q *auditSearch, value string, r *request, now time.Time) error
}

// auditSearchParameters are the supported search parameters of AuditEvent. R4
// auditevent.html#search.
var auditSearchParameters = map[string]auditParameter{
	"date":    {"date", true, readAuditDate},
	"entity":  {"reference", false, readAuditEntity},
	"agent":   {"string", false, func(q *auditSearch, value string, _ *request, _ time.Time) error { q.Caller = value; return nil }},
	"action":  {"token", false, readAuditAction},
	"outcome": {"token", false, readAuditOutcome},
	"type":    {"token", false, readAuditType},
	"subtype": {"token", false, readAuditSubtype},
}

// auditCapabilities describes AuditEvents in the CapabilityStatement.
func auditCapabilities() resourceCapability {
	capability := resourceCapability{
		Type: auditEvent, Profile: "http://hl7.org/fhir/StructureDefinition/" + auditEvent,
		Interaction: []coded{{interactionSearchType}}, Versioning: "no-version",
		ConditionalRead: "not-supported", ConditionalDelete: "not-supported",
	}
	for _, name := range slices.Sorted(maps.Keys(auditSearchParameters)) {
		p := searchParameter{Name: name, Type: auditSearchParameters[name].kind}
		if name != "agent" { // a string here, but a reference in HL7's definition
			p.Definition = "http://hl7.org/fhir/SearchParameter/AuditEvent-" + name
		}
		capability.SearchParam = append(capability.SearchParam, p)
	}
	return capability
}

// parseAuditQuery parses the parameters of a search for AuditEvents. Errors: search.Errors.
func (r *request) parseAuditQuery(now time.Time) (auditSearch, error) {
	q := auditSearch{Query: audit.Query{Count: search.DefaultCount}}
	var wrong search.Errors
	for _, name := range slices.Sorted(maps.Keys(search.WithoutPresentation(r.query))) {
		values := r.query[name]
		if err := q.parameter(name, values, r, now); err != nil {
			wrong = append(wrong, search.Error{Parameter: name, Problem: err.Error()})
		}
	}
	if len(wrong) > 0 {
		return q, wrong[:min(len(wrong), maxIssues)]
	}
	return q, nil
}

func (q *auditSearch) parameter(name string, values []string, r *request, now time.Time) error {
	known, ok := auditSearchParameters[name]
	switch {
	case name == "_count", name == "_page_token":
	case !ok:
		return errors.New("AuditEvent has no such parameter" + suggest.Among(name, append(AuditParameters(), "_count", "_format", "_page_token", "_pretty"), "supported parameters:"))
	}
	if len(values) > 1 && !known.repeatable {
		return errors.New("the parameter is given more than once; give it once")
	}
	for _, value := range values {
		switch {
		case value == "":
			return errors.New("the parameter has no value; give one, or omit the parameter")
		case name == "_page_token":
			q.token = value
		case name == "_count":
			count, err := strconv.Atoi(value)
			if err != nil || count < 1 {
				return errors.New(r4.Quote(value) + " is not a number of items; give 1 to " + strconv.Itoa(search.MaxCount))
			}
			q.Count, q.hasCount = min(count, search.MaxCount), true
		default:
			if err := known.read(q, value, r, now); err != nil {
				return err
			}
		}
	}
	return nil
}

func readAuditDate(q *auditSearch, value string, r *request, now time.Time) error {
	requested, err := search.TimeRange(value, now, r.site.Zone)
	if err != nil {
		return err
	}
	both := requested.Intersection(store.TimeRange{From: q.From, Until: q.Until})
	q.From, q.Until = both.From, both.Until
	q.matchesNone = q.matchesNone || both.Empty()
	return nil
}

// readAuditEntity accepts {type}/{id}, relative or below an address of the site.
func readAuditEntity(q *auditSearch, value string, r *request, _ time.Time) error {
	below := value
	for _, base := range r.bases() {
		below = strings.TrimPrefix(below, base+"/")
	}
	typeName, id, found := strings.Cut(below, "/")
	if !found || !r4.ValidID(id) {
		return errors.New(r4.Quote(value) + " does not name a record; write {type}/{id}, for example Patient/rex")
	}
	if kind, ok := r4.TypeOf(typeName); ok {
		typeName = kind.Name
	}
	q.Entity = audit.Entity(store.Key{Type: typeName, ID: id})
	return nil
}

func readAuditAction(q *auditSearch, value string, _ *request, _ time.Time) error {
	switch action := audit.Action(value); action {
	case audit.Create, audit.Read, audit.Update, audit.Delete, audit.Execute:
		q.Action = action
		return nil
	default:
		return errors.New(r4.Quote(value) + " is not an action; give C, R, U, D or E")
	}
}

func readAuditOutcome(q *auditSearch, value string, _ *request, _ time.Time) error {
	for code := range strings.SplitSeq(value, ",") {
		n, err := strconv.Atoi(code)
		outcome := audit.Outcome(n)
		if err != nil || !slices.Contains([]audit.Outcome{audit.Success, audit.MinorFailure, audit.SeriousFailure, audit.MajorFailure}, outcome) {
			return errors.New(r4.Quote(code) + " is not an outcome; give 0, 4, 8 or 12, or several separated by commas")
		}
		q.Outcomes = append(q.Outcomes, outcome)
	}
	return nil
}

// readAuditType accepts any token. All entries have the type rest, so other tokens match none.
func readAuditType(q *auditSearch, value string, _ *request, _ time.Time) error {
	system, code, ofSystem := strings.Cut(value, "|")
	if !ofSystem {
		system, code = auditTypeSystem, value
	}
	q.matchesNone = q.matchesNone || system != auditTypeSystem || code != "" && code != auditTypeRest
	return nil
}

func readAuditSubtype(q *auditSearch, value string, _ *request, _ time.Time) error {
	for code := range strings.SplitSeq(value, ",") {
		q.Interactions = append(q.Interactions, strings.TrimPrefix(code, auditSubtypeSystem+"|"))
	}
	return nil
}

// canonicalAuditQuery returns the parameters to which page tokens are bound: all except the token.
func (r *request) canonicalAuditQuery() url.Values {
	chosen := maps.Clone(r.query)
	delete(chosen, "_page_token")
	return chosen
}

func auditPosition(after []byte) (audit.Position, bool) {
	if len(after) != 16 {
		return audit.Position{}, false
	}
	return audit.Position{Time: int64(binary.BigEndian.Uint64(after)), ID: int64(binary.BigEndian.Uint64(after[8:]))}, true //nolint:gosec // as it was written
}

func appendAuditPosition(dst []byte, p audit.Position) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, uint64(p.Time)), uint64(p.ID)) //nolint:gosec // read back the same
}

// AuditParameters returns the names of the search parameters of AuditEvent, sorted.
func AuditParameters() []string { return slices.Sorted(maps.Keys(auditSearchParameters)) }
