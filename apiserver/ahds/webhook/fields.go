package webhook

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/events"
)

// EventIDField and IDField are the names of the id fields of webhook events and webhooks.
const (
	EventIDField = "webhookEventId"
	IDField      = "webhookId"
)

const (
	// maxDescription is the maximum number of characters of a description.
	maxDescription = 10_000
	// maxExtensions is the maximum size of extensions in bytes.
	maxExtensions = 16 << 10
	// maxFields is the maximum number of names in fields, and maxFieldName the maximum number of
	// characters of a name.
	maxFields    = 64
	maxFieldName = 128
)

// The clearances of a webhook. A webhook with ClearancePrivileged also receives the data of records
// that privacy rules hide. Responses omit the value ClearanceNormal.
const (
	ClearanceNormal     = "normal"
	ClearancePrivileged = "privileged"
)

// EventFields are the fields of a webhook event. Contract 2.2.
var EventFields = schema.Fields{
	{Name: "eventType", Check: schema.OneOf(events.TypeNames()...), Required: true},
	{Name: "isEnabled", Check: schema.Boolean(), Required: true},
	{Name: "description", Check: schema.Text(0, maxDescription), Default: `""`},
	{Name: "extensions", Check: schema.Check{Errors: extensions, Schema: schema.JSON{"type": "object"}}, Default: "{}"},
	{Name: "createdAt", Check: schema.Instant(), Served: true},
	{Name: "updatedAt", Check: schema.Instant(), Served: true},
}

// Fields are the fields of a webhook.
var Fields = schema.Fields{
	{Name: "eventType", Check: schema.OneOf(events.TypeNames()...), Required: true},
	{Name: "webhookUrl", Check: schema.Check{Errors: address, Schema: schema.JSON{"type": "string", "format": "uri", "pattern": "^https://[^#]+$", "maxLength": 2048}}, Required: true},
	{Name: "isActive", Check: schema.Boolean(), Required: true},
	{Name: "fields", Check: schema.Check{Errors: names, Schema: schema.JSON{"type": "array", "maxItems": maxFields, "uniqueItems": true, "items": schema.Text(1, maxFieldName).Schema}}, Default: "[]"},
	{Name: "clearance", Check: schema.OneOf(ClearanceNormal, ClearancePrivileged), Default: `"` + ClearanceNormal + `"`, Optional: true},
	{Name: "description", Check: schema.Text(0, maxDescription), Default: `""`},
	{Name: "extensions", Check: schema.Check{Errors: extensions, Schema: schema.JSON{"type": "object"}}, Default: "{}"},
	{Name: "secret", Check: schema.Text(1, maxFieldName), Served: true},
	{Name: "publicKey", Check: schema.Text(1, maxDescription), Served: true},
	{Name: "previousSecretUntil", Check: schema.Instant(), Served: true},
	{Name: "disabledAt", Check: schema.Instant(), Served: true},
	{Name: "disabledReason", Check: schema.Text(0, maxDescription), Served: true},
	{Name: "createdAt", Check: schema.Instant(), Served: true},
	{Name: "updatedAt", Check: schema.Instant(), Served: true},
}

func one(at jsontext.Pointer, code, detail string) fielderror.Errors {
	return fielderror.Errors{{At: string(at), Code: code, Detail: detail}}
}

// address accepts the URLs that the schema of the custom resource accepts.
func address(at jsontext.Pointer, value jsontext.Value) fielderror.Errors {
	if errs := schema.URI().Errors(at, value); errs != nil {
		return errs
	}
	text := schema.String(value)
	parsed, err := url.ParseRequestURI(text)
	if err != nil || !strings.HasPrefix(text, "https://") || parsed.Hostname() == "" || parsed.User != nil || strings.Contains(text, "#") {
		return one(at, fielderror.CodeInvalidValue, fielderror.Quote(text)+" is not supported; send an https URL with a host and without user and fragment, such as https://example.org/hook")
	}
	if n, err := strconv.ParseUint(parsed.Port(), 10, 16); parsed.Port() != "" && (err != nil || n == 0) {
		return one(at, fielderror.CodeOutOfRange, "the port "+fielderror.Quote(parsed.Port())+" is out of range; send an https URL without a port, or with one from 1 to 65535")
	}
	return nil
}

// names accepts an array of distinct field names.
func names(at jsontext.Pointer, value jsontext.Value) fielderror.Errors {
	var items []jsontext.Value
	if value.Kind() != jsontext.KindBeginArray || json.Unmarshal(value, &items) != nil {
		return one(at, fielderror.CodeWrongType, "the value is not an array; send an array of field names")
	}
	if len(items) > maxFields {
		return one(at, fielderror.CodeTooLong, "the array has "+strconv.Itoa(len(items))+" names; send at most "+strconv.Itoa(maxFields))
	}
	var errs fielderror.Errors
	seen := map[string]bool{}
	for i, item := range items {
		place := at.AppendToken(strconv.Itoa(i))
		if wrong := schema.Text(1, maxFieldName).Errors(place, item); wrong != nil {
			errs = append(errs, wrong...)
			continue
		}
		name := schema.String(item)
		if seen[name] {
			errs = append(errs, one(place, fielderror.CodeInvalidValue, fielderror.Quote(name)+" is repeated; send each name once")...)
		}
		seen[name] = true
	}
	return errs
}

// extensions accepts objects whose numbers Kubernetes stores without loss.
func extensions(at jsontext.Pointer, value jsontext.Value) fielderror.Errors {
	if errs := schema.AnyObject(maxExtensions).Errors(at, value); errs != nil {
		return errs
	}
	decoder := jsontext.NewDecoder(strings.NewReader(string(value)))
	for decoder.InputOffset() < int64(len(value)) {
		token, err := decoder.ReadToken()
		if err != nil {
			return one(at+decoder.StackPointer(), fielderror.CodeUnparseable, "the value is not valid JSON: "+err.Error())
		}
		if token.Kind() == jsontext.KindNumber && !isKept(token.String()) {
			place := at + decoder.StackPointer()
			return one(place, fielderror.CodeOutOfRange, fielderror.Quote(token.String())+" cannot be stored exactly as a number; send the number as a string")
		}
	}
	return nil
}

// isKept reports whether a JSON number has the same value after it was stored as a 64-bit integer or
// float and written again.
func isKept(number string) bool {
	if _, err := strconv.ParseInt(number, 10, 64); err == nil {
		return true
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return false
	}
	sent, sentPower := digits(number)
	back, backPower := digits(strconv.FormatFloat(f, 'e', -1, 64))
	return sent == back && sentPower == backPower
}

// digits returns the sign and significant digits of a number, and the power of ten of the last
// digit.
func digits(number string) (significant string, power int) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	power, _ = strconv.Atoi(strings.TrimPrefix(exponent, "+")) // without an exponent the power is 0
	whole, fraction, _ := strings.Cut(mantissa, ".")
	power -= len(fraction)
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	all := strings.TrimLeft(whole+fraction, "0")
	significant = strings.TrimRight(all, "0")
	if significant == "" {
		return sign + "0", 0
	}
	return sign + significant, power + len(all) - len(significant)
}
