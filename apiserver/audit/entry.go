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

// Action is the kind of access that a request made. FHIR R4 valueset-audit-event-action.html.
type Action string

// The actions.
const (
	Create  Action = "C"
	Read    Action = "R"
	Update  Action = "U"
	Delete  Action = "D"
	Execute Action = "E"
)

// ActionOf returns the action of an RBAC verb. It returns "" for verbs that have no action, such as
// privileged.
func ActionOf(verb string) Action { return actions[verb] }

var actions = map[string]Action{
	"list": Execute, "get": Read, "create": Create, "update": Update, "patch": Update, "delete": Delete,
	"batch": Execute,
}

// Outcome is the outcome of a request. FHIR R4 valueset-audit-event-outcome.html.
type Outcome int

// The outcomes.
const (
	// Success is the outcome of requests with a status below 400.
	Success Outcome = 0
	// MinorFailure is the outcome of requests with a status of 400 to 499: the request is refused or
	// invalid.
	MinorFailure Outcome = 4
	// SeriousFailure is the outcome of requests with a status of 500 or more, except 503: the server
	// failed.
	SeriousFailure Outcome = 8
	// MajorFailure is the outcome of requests with the status 503: the system is unavailable.
	MajorFailure Outcome = 12
)

// Entry is the audit entry of one request to a Site, served or refused. A request with many records
// has several entries.
type Entry struct {
	// Time is when the response started or, if the entry was stored with a write (WriteEntry), when the
	// write started. It is in UTC, truncated to microseconds.
	Time time.Time `json:"time"`
	// ID is a random positive number, which distinguishes entries with the same Time.
	ID   int64  `json:"id,string"`
	Site string `json:"site,omitempty"`
	// Request is the X-Request-Id of the response or, through kube-apiserver, its Audit-Id.
	Request string `json:"request,omitempty"`
	// Correlation is the X-Request-Id that the client sent, if the response has another
	// X-Request-Id.
	Correlation string `json:"correlation,omitempty"`
	Caller      string `json:"caller,omitempty"`
	// Subject is the kind of the caller.
	Subject Subject `json:"subject,omitempty"`
	// Issuer is the name (in spec.access.issuers) of the issuer that signed the token. It is empty
	// for tokens of the cluster.
	Issuer string `json:"issuer,omitempty"`
	// Address is the address of the client, or of the last proxy before the server.
	Address string `json:"address,omitempty"`
	// API is fhir, ahds, native or kubernetes.
	API string `json:"api,omitempty"`
	// Interaction is the FHIR interaction, such as search-type (R4 http.html). In other APIs it is
	// the RBAC verb, for example get. In the AHDS API a subresource can follow (list deliveries),
	// and in the native API the verb has the prefix native-.
	Interaction string `json:"interaction,omitempty"`
	Action      Action `json:"action,omitempty"`
	Method      string `json:"method"`
	// Type is the record type of the request. It is empty if the request has several types.
	Type string `json:"type,omitempty"`
	// Records are the record in the path of the request, and the records that the request wrote or
	// tried to write. If it wrote none, they are the record in the path and the records that it
	// read. No two of them differ only in the case of their ids.
	Records Records `json:"records,omitempty"`
	Status  int     `json:"status"`
	// Rule is what denied the request: token or RuleRBAC. It can also be what hides a record that was
	// read for the request: the name of a privacy rule, confidentiality, default or link. Such a
	// request can have succeeded without the record. So can an import with RuleRBAC, without some of
	// its lines.
	Rule string `json:"rule,omitempty"`
	// BreakGlass reports whether the caller gave a reason for bypassing privacy rules.
	BreakGlass bool `json:"breakGlass,omitempty"`
	// Requests is the number of requests that the entry summarizes; Time is then the time of the last
	// of them. Requests is 0 if the entry is about a single request.
	Requests int `json:"requests,omitempty"`
	// Parameters are the names of the request's parameters, if spec.audit.level is Request.
	Parameters []string `json:"parameters,omitempty"`
}

// RuleRBAC is the value of Entry.Rule if the caller does not have the right.
const RuleRBAC = "rbac"

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

// Entity returns the text by which queries compare records: type/id with the id in lower case,
// because ids that differ only in case are the same.
func Entity(key store.Key) string { return key.Type + "/" + strings.ToLower(key.ID) }

// newID returns a random id. It is positive, so that every language and database can store it.
func newID() int64 { return int64(rand.Uint64()>>2) + 1 } //nolint:gosec // not a secret

// Parse parses an entry in the form that AppendJSON appends.
func Parse(text []byte) (Entry, error) {
	var e Entry
	err := json.Unmarshal(text, &e)
	return e, err
}

// JSON returns the entry as one line of JSON without a line break.
func (e *Entry) JSON() []byte { return e.AppendJSON(make([]byte, 0, e.SizeHint())) }

// SizeHint returns the approximate size of the entry in JSON, in bytes.
func (e *Entry) SizeHint() int { return 512 + 2*len(e.Records) }

// AppendJSON appends the entry as one line of JSON without a line break.
func (e *Entry) AppendJSON(b []byte) []byte {
	b = e.appendMembers(b, &Entry{})
	if e.Records != "" {
		b = e.Records.appendJSON(append(b, `,"records":`...))
	}
	return append(b, '}')
}

// appendMembers appends an object that is not closed. Its members are the time, the id, and what
// differs from the entry before. Records are left out.
func (e *Entry) appendMembers(b []byte, before *Entry) []byte {
	b = appendTime(append(b, `{"time":"`...), e.Time)
	b = strconv.AppendInt(append(b, `","id":"`...), e.ID, 10)
	b = append(b, '"')
	for _, member := range [...]struct{ name, value, before string }{
		{`,"site":`, e.Site, before.Site},
		{`,"request":`, e.Request, before.Request},
		{`,"correlation":`, e.Correlation, before.Correlation},
		{`,"caller":`, e.Caller, before.Caller},
		{`,"subject":`, string(e.Subject), string(before.Subject)},
		{`,"issuer":`, e.Issuer, before.Issuer},
		{`,"address":`, e.Address, before.Address},
		{`,"api":`, e.API, before.API},
		{`,"interaction":`, e.Interaction, before.Interaction},
		{`,"action":`, string(e.Action), string(before.Action)},
		{`,"method":`, e.Method, before.Method},
		{`,"type":`, e.Type, before.Type},
		{`,"rule":`, e.Rule, before.Rule},
	} {
		if member.value != member.before {
			b, _ = jsontext.AppendQuote(append(b, member.name...), member.value) // invalid UTF-8 is replaced
		}
	}
	if e.Status != before.Status {
		b = strconv.AppendInt(append(b, `,"status":`...), int64(e.Status), 10)
	}
	if e.BreakGlass != before.BreakGlass {
		b = strconv.AppendBool(append(b, `,"breakGlass":`...), e.BreakGlass)
	}
	if e.Requests != before.Requests {
		b = strconv.AppendInt(append(b, `,"requests":`...), int64(e.Requests), 10)
	}
	if slices.Equal(e.Parameters, before.Parameters) {
		return b
	}
	b = append(b, `,"parameters":[`...)
	for i, name := range e.Parameters {
		if i > 0 {
			b = append(b, ',')
		}
		b, _ = jsontext.AppendQuote(b, name)
	}
	return append(b, ']')
}

// appendTime appends a time in UTC with six digits of its second. It is much faster than
// Time.AppendFormat with that layout.
func appendTime(b []byte, at time.Time) []byte {
	b = at.UTC().AppendFormat(b, time.RFC3339)
	micros := at.Nanosecond() / 1000
	b[len(b)-1] = '.' // was the Z
	for unit := 100_000; unit > 0; unit /= 10 {
		b = append(b, byte('0'+micros/unit%10))
	}
	return append(b, 'Z')
}
