package audit

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Action is what was done. FHIR R4 valueset-audit-event-action.html.
type Action string

// The actions.
const (
	Create  Action = "C"
	Read    Action = "R"
	Update  Action = "U"
	Delete  Action = "D"
	Execute Action = "E"
)

// ActionOf returns the action of an RBAC verb. It is empty for other verbs, such as privileged.
func ActionOf(verb string) Action { return actions[verb] }

var actions = map[string]Action{
	"list": Execute, "get": Read, "create": Create, "update": Update, "patch": Update, "delete": Delete,
	"batch": Execute,
}

// Outcome is the outcome of a request. FHIR R4 valueset-audit-event-outcome.html.
type Outcome int

// The outcomes.
const (
	// Success is for statuses below 400.
	Success Outcome = 0
	// MinorFailure is for failures of the caller: statuses from 400.
	MinorFailure Outcome = 4
	// SeriousFailure is for failures of the server: statuses from 500, except 503.
	SeriousFailure Outcome = 8
	// MajorFailure is for an unavailable system: status 503.
	MajorFailure Outcome = 12
)

// Entry is one request to a Site, served or refused.
type Entry struct {
	// Time is when the response started, in UTC, truncated to microseconds.
	Time time.Time `json:"time"`
	// ID is random and distinguishes entries of one time.
	ID   int64  `json:"id,string"`
	Site string `json:"site,omitempty"`
	// Request is the X-Request-Id of the response or, through kube-apiserver, its Audit-Id.
	Request string `json:"request,omitempty"`
	// Correlation is the X-Request-Id of the client, if the server replaced it.
	Correlation string `json:"correlation,omitempty"`
	Caller      string `json:"caller,omitempty"`
	// Subject is the kind of the caller.
	Subject Subject `json:"subject,omitempty"`
	// Issuer is the name of the Site's issuer that signed the token, empty for tokens of the cluster.
	Issuer string `json:"issuer,omitempty"`
	// Address is the address of the client, or of the last proxy before the server.
	Address string `json:"address,omitempty"`
	// API is fhir, ahds or kubernetes.
	API string `json:"api,omitempty"`
	// Interaction is that of FHIR R4 http.html, such as search-type. In other APIs it is the verb.
	Interaction string `json:"interaction,omitempty"`
	Action      Action `json:"action,omitempty"`
	Method      string `json:"method"`
	// Type is the record type of the request. It is empty for several.
	Type string `json:"type,omitempty"`
	// Records are the records in the response, or the written ones, as Type/id.
	Records []string `json:"records,omitempty"`
	Status  int      `json:"status"`
	// Rule is the rule that denied the request: token, rbac, or the name of a privacy rule.
	Rule string `json:"rule,omitempty"`
	// BreakGlass reports whether the caller gave a reason for bypassing privacy rules.
	BreakGlass bool `json:"breakGlass,omitempty"`
	// Requests is the number of requests that a summary counts, with the Time of the last one. It is 0
	// in the entry of a single request.
	Requests int `json:"requests,omitempty"`
	// Parameters are the names of the request's parameters, if spec.audit.level is Request.
	Parameters []string `json:"parameters,omitempty"`

	// text is the result of JSON, after its first call.
	text []byte
}

// Subject is the kind of a caller.
type Subject string

// The kinds of callers.
const (
	// ServiceAccount is a ServiceAccount of the cluster.
	ServiceAccount Subject = "ServiceAccount"
	// User is any other caller that kube-apiserver knows.
	User Subject = "User"
	// IssuedSubject is a subject of one of the Site's issuers.
	IssuedSubject Subject = "Issued"
)

// Outcome returns the outcome of the request.
func (e *Entry) Outcome() Outcome {
	switch {
	case e.Status < http.StatusBadRequest:
		return Success
	case e.Status < http.StatusInternalServerError:
		return MinorFailure
	case e.Status == http.StatusServiceUnavailable:
		return MajorFailure
	default:
		return SeriousFailure
	}
}

// Entity returns a record in the form in which queries compare it: ids that differ only in case are
// the same.
func Entity(key store.Key) string { return key.Type + "/" + strings.ToLower(key.ID) }

// Entities returns the records of the entry in the form of Entity, each once.
func (e *Entry) Entities() []string {
	entities := make([]string, 0, len(e.Records))
	var seen map[string]struct{}
	if len(e.Records) > fewRecords {
		seen = make(map[string]struct{}, len(e.Records))
	}
	for _, record := range e.Records {
		entity := entityOf(record)
		if seen == nil && slices.Contains(entities, entity) {
			continue
		}
		if seen != nil {
			if _, twice := seen[entity]; twice {
				continue
			}
			seen[entity] = struct{}{}
		}
		entities = append(entities, entity)
	}
	return entities
}

// entityOf returns the form of Entity for a record in Entry.Records.
func entityOf(record string) string {
	typeName, id, _ := strings.Cut(record, "/")
	lower := strings.ToLower(id)
	if lower == id {
		return record
	}
	return typeName + "/" + lower
}

// isAbout reports whether the entry has a record, in the form of Entity.
func (e *Entry) isAbout(entity string) bool {
	for _, record := range e.Records {
		if entityOf(record) == entity {
			return true
		}
	}
	return false
}

// newID returns a random id. It is positive, so that every language and database can store it.
func newID() int64 { return int64(rand.Uint64()>>2) + 1 } //nolint:gosec // not a secret

// Parse parses an entry in the form that JSON returns.
func Parse(text []byte) (Entry, error) {
	var e Entry
	err := json.Unmarshal(text, &e)
	return e, err
}

// JSON returns the entry as one line of JSON without a line break. It caches the result, so the
// entry must not change after the first call.
func (e *Entry) JSON() []byte {
	if e.text != nil {
		return e.text
	}
	b := make([]byte, 0, 512+48*len(e.Records))
	b = e.Time.UTC().AppendFormat(append(b, `{"time":"`...), "2006-01-02T15:04:05.000000Z07:00")
	b = strconv.AppendInt(append(b, `","id":"`...), e.ID, 10)
	b = append(b, '"')
	for _, member := range []struct{ name, value string }{
		{"site", e.Site},
		{"request", e.Request},
		{"correlation", e.Correlation},
		{"caller", e.Caller},
		{"subject", string(e.Subject)},
		{"issuer", e.Issuer},
		{"address", e.Address},
		{"api", e.API},
		{"interaction", e.Interaction},
		{"action", string(e.Action)},
		{"method", e.Method},
		{"type", e.Type},
		{"rule", e.Rule},
	} {
		if member.value != "" {
			b = append(append(append(b, `,"`...), member.name...), `":`...)
			b, _ = jsontext.AppendQuote(b, member.value) // invalid UTF-8 is replaced
		}
	}
	b = strconv.AppendInt(append(b, `,"status":`...), int64(e.Status), 10)
	if e.BreakGlass {
		b = append(b, `,"breakGlass":true`...)
	}
	if e.Requests > 0 {
		b = strconv.AppendInt(append(b, `,"requests":`...), int64(e.Requests), 10)
	}
	b = appendList(b, "records", e.Records)
	b = appendList(b, "parameters", e.Parameters)
	b = append(b, '}')
	e.text = b
	return e.text
}

func appendList(b []byte, name string, values []string) []byte {
	if len(values) == 0 {
		return b
	}
	b = append(append(append(b, `,"`...), name...), `":`...)
	separator := byte('[')
	for _, value := range values {
		b = append(b, separator)
		b, _ = jsontext.AppendQuote(b, value)
		separator = ','
	}
	return append(b, ']')
}
