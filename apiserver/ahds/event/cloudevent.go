package event

import (
	"errors"
	"maps"
	"mime"
	"net/url"
	"slices"
	"strings"

	"github.com/cloudevents/sdk-go/v2/binding/spec"
	cloudevent "github.com/cloudevents/sdk-go/v2/event"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
)

// The media types of CloudEvents 1.0 in JSON.
const (
	TypeCloudEvent      = cloudevent.ApplicationCloudEventsJSON
	TypeCloudEventBatch = cloudevent.ApplicationCloudEventsBatchJSON
)

const (
	// version is the supported version of CloudEvents.
	version = cloudevent.CloudEventsVersionV1
	// headerPrefix is the prefix of header fields in binary mode. CloudEvents HTTP protocol binding
	// §3.1.
	headerPrefix = "ce-"
	// changedFields is an extension attribute with names of fields, separated by commas.
	changedFields = "changedfields"
	// mediaJSON is the media type of event data.
	mediaJSON = "application/json"
)

// attributes maps fields of events to attributes of CloudEvents.
var attributes = map[string]string{"eventId": "id", "type": "type", "subject": "subject", "occurredAt": "time", "changedFields": changedFields, "data": "data"}

// ParseCloudEvent parses a CloudEvent in structured mode. Errors: fielderror.Errors.
func ParseCloudEvent(text []byte) ([]Sent, error) {
	object, err := schema.Parse(text)
	if err != nil {
		return nil, err
	}
	sent, errs := structured(object, asIs)
	return []Sent{sent}, errs.Err()
}

// ParseCloudEvents parses 1 to maxEvents CloudEvents in batched mode. Errors: fielderror.Errors.
func ParseCloudEvents(text []byte, maxEvents int) ([]Sent, error) {
	if !schema.IsList(text) {
		return nil, fielderror.Errors{{Code: fielderror.CodeWrongType, Detail: "the body is not an array; send an array of CloudEvents, or one as " + TypeCloudEvent}}
	}
	objects, err := schema.ParseList(text, maxEvents)
	if err != nil {
		return nil, err
	}
	var all fielderror.Errors
	sent := make([]Sent, len(objects))
	for i, object := range objects {
		var errs fielderror.Errors
		sent[i], errs = structured(object, below(i))
		all = append(all, errs...)
	}
	return sent, all.Err()
}

// structured parses a CloudEvent in structured mode from its members. The data is not passed to the
// library, because the library treats some JSON media types as text. within converts errors of the
// event to errors of the request.
func structured(object schema.Object, within func(fielderror.Errors) fielderror.Errors) (Sent, fielderror.Errors) {
	attributes := schema.NewWriter(nil)
	for _, member := range object {
		control := ""
		if member.Name != "data" {
			attributes.Raw(member.Name, member.Value)
			control = schema.ControlCharacter(schema.String(member.Value))
		}
		switch {
		case control != "": // CloudEvents 1.0, type system: String
			return Sent{}, within(fielderror.Errors{{At: string(jsontext.Pointer("").AppendToken(member.Name)), Code: fielderror.CodeInvalidValue, Detail: control}})
		case member.Name == "":
			return Sent{}, within(fielderror.Errors{{At: "/", Code: fielderror.CodeUnknownField, Detail: "an attribute has an empty name; remove this member"}})
		case member.Name == "data_base64":
			return Sent{}, within(fielderror.Errors{{At: "/data_base64", Code: fielderror.CodeUnknownField, Detail: "binary data is not supported; send a JSON object in the member data"}})
		case member.Name == "specversion" && schema.String(member.Value) != version:
			return Sent{}, within(fielderror.Errors{{At: "/specversion", Code: fielderror.CodeInvalidValue, Detail: "this version of CloudEvents is not supported; send \"" + version + "\""}})
		}
	}
	var read cloudevent.Event
	if err := read.UnmarshalJSON(attributes.Done()); err != nil {
		if errs := attributeErrors(object); errs != nil {
			return Sent{}, within(errs)
		}
		return Sent{}, within(invalid(err, func(name string) fielderror.Error { return fielderror.Error{At: "/" + name} }))
	}
	return sentOf(read, object.Get("data"), func(name string) fielderror.Error { return fielderror.Error{At: "/" + name} }, within)
}

// attributeErrors returns the error of each attribute of a CloudEvent in structured mode that the library cannot
// parse. An error of the library does not name the attribute, so attributeErrors parses each one alone.
func attributeErrors(object schema.Object) (errs fielderror.Errors) {
	versions := spec.VS.Version(version)
	for _, member := range object {
		if member.Name == "data" || member.Name == "specversion" {
			continue
		}
		alone := schema.NewWriter(nil)
		alone.String("specversion", version)
		alone.Raw(member.Name, member.Value)
		var read cloudevent.Event
		err := read.UnmarshalJSON(alone.Done())
		if err == nil {
			continue
		}
		f := fielderror.Error{At: string(jsontext.Pointer("").AppendToken(member.Name))}
		switch kind := member.Value.Kind(); {
		case versions.Attribute(member.Name) != nil && kind != jsontext.KindString:
			f.Code, f.Detail = fielderror.CodeWrongType, "the value is not a string; send a string"
		case kind == jsontext.KindBeginObject || kind == jsontext.KindBeginArray:
			f.Code, f.Detail = fielderror.CodeWrongType, "the value is an object or an array; send a string, a number or a boolean"
		case member.Name == "source":
			f.Code, f.Detail = fielderror.CodeInvalidValue, fielderror.Quote(schema.String(member.Value))+" is not a URI reference; send one such as /clinic/1"
		case member.Name == "time":
			f.Code, f.Detail = fielderror.CodeInvalidValue, fielderror.Quote(schema.String(member.Value))+" is not a time of RFC 3339; send one such as 2026-03-01T09:30:00Z"
		default:
			f.Code, f.Detail = fielderror.CodeInvalidValue, err.Error()
		}
		errs = append(errs, f)
	}
	return errs
}

// IsBinary reports whether the header fields of a request are those of a CloudEvent in binary mode.
func IsBinary(header map[string][]string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(header)), func(name string) bool { return strings.EqualFold(name, headerPrefix+"specversion") })
}

// ParseBinary parses a CloudEvent in binary mode, with attributes in header fields and data in the
// body. Errors: fielderror.Errors.
func ParseBinary(header map[string][]string, text []byte) ([]Sent, error) {
	place := func(name string) fielderror.Error {
		if name == "data" {
			return fielderror.Error{}
		}
		if name == "datacontenttype" {
			return fielderror.Error{In: fielderror.Header, At: "Content-Type"}
		}
		return fielderror.Error{In: fielderror.Header, At: headerPrefix + name}
	}
	refuse := func(name, code, detail string) error {
		f := place(name)
		f.Code, f.Detail = code, detail
		return fielderror.Errors{f}
	}
	if _, err := schema.Parse(text); err != nil {
		return nil, err
	}
	read, versions := cloudevent.New(version), spec.WithPrefix(headerPrefix).Version(version)
	for _, field := range slices.Sorted(maps.Keys(header)) {
		name, attribute := strings.CutPrefix(strings.ToLower(field), headerPrefix)
		if !attribute {
			continue
		}
		if len(header[field]) != 1 {
			return nil, refuse(name, fielderror.CodeInvalidHeader, "the header field is repeated; send it once")
		}
		// CloudEvents HTTP protocol binding §3.1.3.2: other characters than printable ASCII are
		// percent-encoded.
		value, err := url.PathUnescape(header[field][0])
		switch {
		case err != nil:
			return nil, refuse(name, fielderror.CodeInvalidHeader, "the percent-encoding is invalid: "+err.Error()+"; write %25 for a %")
		case name == "specversion" && value != version:
			return nil, refuse(name, fielderror.CodeInvalidHeader, "this version of CloudEvents is not supported; send "+version)
		case name == "specversion":
			continue
		}
		if control := schema.ControlCharacter(value); control != "" {
			return nil, refuse(name, fielderror.CodeInvalidHeader, control)
		}
		if err := versions.SetAttribute(read.Context, headerPrefix+name, value); err != nil {
			return nil, refuse(name, fielderror.CodeInvalidHeader, err.Error())
		}
	}
	sent, errs := sentOf(read, text, place, asIs)
	return []Sent{sent}, errs.Err()
}

// sentOf converts a CloudEvent to the input of Read. place returns an error with the location of an
// attribute in the request.
func sentOf(read cloudevent.Event, data jsontext.Value, place func(name string) fielderror.Error, within func(fielderror.Errors) fielderror.Errors) (Sent, fielderror.Errors) {
	if err := read.Validate(); err != nil {
		return Sent{}, within(invalid(err, place))
	}
	if kind, _, err := mime.ParseMediaType(read.DataContentType()); read.DataContentType() != "" && (err != nil || kind != mediaJSON && !strings.HasSuffix(kind, "+json")) {
		f := place("datacontenttype")
		f.Code, f.Detail = fielderror.CodeInvalidValue, "data of the type "+fielderror.Quote(read.DataContentType())+" is not supported; send a JSON object"
		return Sent{}, within(fielderror.Errors{f})
	}
	var object schema.Object
	add := func(name, text string) {
		value, _ := jsontext.AppendQuote(nil, text) // bad UTF-8 is written as U+FFFD
		object = append(object, schema.Member{Name: name, Value: value})
	}
	add("eventId", idOf(read.Source(), read.ID()))
	add("type", read.Type())
	if read.Subject() != "" {
		add("subject", read.Subject())
	}
	if at := read.Time(); !at.IsZero() {
		add("occurredAt", at.Format("2006-01-02T15:04:05.999999Z07:00"))
	}
	if names, ok := read.Extensions()[changedFields].(string); ok {
		list := []byte{'['}
		for i, name := range strings.Split(names, ",") {
			if i > 0 {
				list = append(list, ',')
			}
			list, _ = jsontext.AppendQuote(list, strings.TrimSpace(name))
		}
		object = append(object, schema.Member{Name: "changedFields", Value: append(list, ']')})
	}
	if data != nil {
		object = append(object, schema.Member{Name: "data", Value: data})
	}
	return Sent{object: object, within: func(errs fielderror.Errors) fielderror.Errors {
		placed := make(fielderror.Errors, len(errs))
		for i, f := range errs {
			name, below, _ := strings.Cut(strings.TrimPrefix(f.At, "/"), "/")
			at := place(attributes[name])
			if at.In == fielderror.Body && below != "" {
				at.At += "/" + below
			}
			at.Code, at.Detail = f.Code, f.Detail
			placed[i] = at
		}
		return within(placed)
	}}, nil
}

// idOf returns the eventId of a CloudEvent. It derives the eventId from source and id, because an
// id is unique within its source only. UUIDs are globally unique and stay unchanged.
func idOf(source, id string) string {
	if schema.IsUUID(id) {
		return id
	}
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://paddock.health/cloudevent/"+source+"\n"+id)).String()
}

// invalid converts an error of the library to field errors.
func invalid(err error, place func(name string) fielderror.Error) fielderror.Errors {
	var wrong cloudevent.ValidationError
	if !errors.As(err, &wrong) {
		return fielderror.Errors{{Code: fielderror.CodeInvalidValue, Detail: "the body is not a CloudEvent: " + err.Error()}}
	}
	var errs fielderror.Errors
	for _, name := range slices.Sorted(maps.Keys(wrong)) {
		f := place(name)
		f.Code, f.Detail = fielderror.CodeInvalidValue, name+" "+wrong[name].Error()
		errs = append(errs, f)
	}
	return errs
}
