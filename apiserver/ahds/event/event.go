// Package event defines the events that clients publish to a site: their fields, their formats as
// JSON and as CloudEvents, and their records. It does not depend on the paths of the API or a
// storage engine.
package event

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/events"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Type is the store type of the records of accepted events.
const Type = "Event"

const (
	// maxData is the maximum size of an event's data in bytes, as sent.
	maxData = 256 << 10
	// maxSubject is the maximum number of characters of a subject.
	maxSubject = 256
	// maxChanged is the maximum number of names in changedFields, and maxName the maximum number of
	// characters of a name.
	maxChanged = 256
	maxName    = 128
)

// idForm is the form of eventIds. It can be the value of a header field, because deliveries send
// the id in the header Webhook-Id.
var idForm = regexp.MustCompile(`^[\x21-\x7e]{1,128}$`)

// Fields are the fields of an event.
var Fields = schema.Fields{
	{Name: "eventId", Check: schema.Check{Errors: checkID, Schema: schema.JSON{"type": "string", "pattern": idForm.String()}}, Default: "null"},
	{Name: "type", Check: schema.OneOf(events.TypeNames()...), Required: true},
	{Name: "subject", Check: schema.Line(1, maxSubject), Default: "null"},
	{Name: "occurredAt", Check: schema.Instant(), Default: "null"},
	{Name: "changedFields", Check: schema.Check{Errors: checkNames, Schema: schema.JSON{"type": "array", "maxItems": maxChanged, "items": schema.Text(1, maxName).Schema}}, Default: "null"},
	{Name: "data", Check: schema.AnyObject(maxData), Required: true},
}

func checkID(at jsontext.Pointer, value jsontext.Value) fielderror.Errors {
	if errs := schema.Text(0, len(value)).Errors(at, value); errs != nil {
		return errs
	}
	if !idForm.MatchString(schema.String(value)) {
		return fielderror.Errors{{
			At: string(at), Code: fielderror.CodeInvalidValue,
			Detail: fielderror.Quote(schema.String(value)) + " is not an eventId; send 1 to 128 printable ASCII characters without spaces, such as a UUID",
		}}
	}
	return nil
}

func checkNames(at jsontext.Pointer, value jsontext.Value) fielderror.Errors {
	var items []json.RawMessage
	if value.Kind() != jsontext.KindBeginArray || json.Unmarshal(value, &items) != nil {
		return fielderror.Errors{{At: string(at), Code: fielderror.CodeWrongType, Detail: "the value is not an array; send an array of field names"}}
	}
	if len(items) > maxChanged {
		return fielderror.Errors{{At: string(at), Code: fielderror.CodeTooLong, Detail: "the array has " + strconv.Itoa(len(items)) + " names; send at most " + strconv.Itoa(maxChanged)}}
	}
	var errs fielderror.Errors
	for i, item := range items {
		errs = append(errs, schema.Text(1, maxName).Errors(at.AppendToken(strconv.Itoa(i)), jsontext.Value(item))...)
	}
	return errs
}

// Sent is an event of a request before validation.
type Sent struct {
	object schema.Object
	// within converts errors of the object to errors of the request.
	within func(fielderror.Errors) fielderror.Errors
}

// Parse parses one event or an array of at most maxEvents events. many is set for an array. Errors:
// fielderror.Errors.
func Parse(text []byte, maxEvents int) (sent []Sent, many bool, err error) {
	if !schema.IsList(text) {
		object, err := schema.Parse(text)
		return []Sent{{object: object, within: asIs}}, false, err
	}
	objects, err := schema.ParseList(text, maxEvents)
	for i, object := range objects {
		sent = append(sent, Sent{object: object, within: below(i)})
	}
	return sent, true, err
}

func asIs(f fielderror.Errors) fielderror.Errors { return f }

func below(i int) func(fielderror.Errors) fielderror.Errors {
	return func(f fielderror.Errors) fielderror.Errors { return f.Below("/" + strconv.Itoa(i)) }
}

// Read validates the events of a request and returns their content. An event that was sent without
// an id has the empty ID. Errors: fielderror.Errors with the errors of all events. After 100 errors,
// no further event is validated.
func Read(sent []Sent) ([]events.Published, error) {
	const maxErrors = 100
	var all fielderror.Errors
	published := make([]events.Published, len(sent))
	for i, s := range sent {
		if len(all) >= maxErrors {
			break
		}
		p, err := read(s.object)
		if err != nil {
			all = append(all, s.within(fielderror.Of(err))...)
			continue
		}
		published[i] = p
	}
	return published, all.Err()
}

func read(object schema.Object) (events.Published, error) {
	content, _, err := Fields.Create(object, schema.Identity{})
	if err != nil {
		return events.Published{}, err
	}
	p := events.Published{
		ID: content.Text("eventId"), Type: content.Text("type"), Subject: content.Text("subject"), Data: content["data"].Clone(),
	}
	if at := content["occurredAt"]; at.Kind() == jsontext.KindString {
		p.OccurredAt = at.Clone()
	}
	if names := content["changedFields"]; names.Kind() == jsontext.KindBeginArray {
		p.ChangedFields = []string{}
		if err := json.Unmarshal(names, &p.ChangedFields); err != nil {
			return events.Published{}, fmt.Errorf("decode changedFields: %w", err)
		}
	}
	return p, p.Data.Compact()
}

// Twice returns the indexes of those events that have the id and content of an earlier event of the
// same request. Errors: fielderror.Errors if an event has the id of an earlier event but other
// content.
func Twice(sent []Sent, published []events.Published) (same map[int]bool, err error) {
	var errs fielderror.Errors
	first := map[string]int{}
	same = map[int]bool{}
	for i, p := range published {
		before, seen := first[p.ID]
		switch {
		case p.ID == "":
		case !seen:
			first[p.ID] = i
		case Fingerprint(p) == Fingerprint(published[before]):
			same[i] = true
		default:
			errs = append(errs, sent[i].within(fielderror.Errors{{
				At: "/eventId", Code: fielderror.CodeInvalidValue,
				Detail: fielderror.Quote(p.ID) + " is also the id of the event at index " + strconv.Itoa(before) + " of the request, which has other content; send each event with an id of its own",
			}})...)
		}
	}
	return same, errs.Err()
}

// Fingerprint returns a hash of an event's content without its id. It ignores spaces, the escapes of
// strings and the order of members in the data.
func Fingerprint(p events.Published) string {
	data, err := jsontext.AppendFormat(nil, p.Data, jsontext.ReorderRawObjects(true), jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	if err != nil {
		data = p.Data
	}
	sum := sha256.New()
	for _, part := range []string{p.Type, p.Subject, string(p.OccurredAt), fmt.Sprintf("%q", p.ChangedFields), string(data)} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// KeyOf returns the key of an event's record. An eventId that is not a UUID in lower case is
// hashed, because eventIds are case-sensitive and record ids are not.
func KeyOf(id string) store.Key {
	if schema.IsUUID(id) && id == strings.ToLower(id) {
		return store.Key{Type: Type, ID: id}
	}
	sum := sha256.Sum256([]byte(id))
	return store.Key{Type: Type, ID: hex.EncodeToString(sum[:])}
}

// Memory is the content of the record of an accepted event. The record serves to detect an event
// that is sent again. The event's data is stored with its deliveries only.
type Memory struct {
	ID      string `json:"eventId"`
	Type    string `json:"type"`
	Subject string `json:"subject,omitempty"`
	// Made is the fingerprint of the event.
	Made string `json:"made"`
	// Key and Request are hashes of the idempotency key and the request. They are set for the first
	// event of a request with a key.
	Key     string `json:"key,omitempty"`
	Request string `json:"request,omitempty"`
}

// Body returns the body of the record.
func (m Memory) Body() (store.Body, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return store.Body{}, fmt.Errorf("encode event %s: %w", m.ID, err)
	}
	return store.Body{JSON: text}, nil
}

// MemoryOf parses the body of a record.
func MemoryOf(body store.Body) (Memory, error) {
	var m Memory
	if err := json.Unmarshal(body.JSON, &m); err != nil {
		return Memory{}, fmt.Errorf("decode stored event: %w", err)
	}
	return m, nil
}
