package webhook

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/document"
	"github.com/paddock-health/paddock/apiserver/ahds/fault"
)

// The fields with the ids.
const (
	EventIDField = "webhookEventId"
	IDField      = "webhookId"
)

const (
	maxDescription = 10_000
	maxExtensions  = 16 << 10
	maxFields      = 64
	maxFieldName   = 128
)

// eventTypes are those that there are. Contract 6.
var eventTypes = []string{
	"appointment.created", "appointment.updated", "product.created", "product.updated", "user.created", "user.updated",
	"consult.created", "consult.updated", "therapeutic.created", "therapeutic.updated",
}

// EventFields are those of a webhook event. Contract 2.2.
var EventFields = document.Fields{
	{Name: "eventType", Check: document.OneOf(eventTypes...), Required: true},
	{Name: "isEnabled", Check: document.Boolean(), Required: true},
	{Name: "description", Check: document.Text(0, maxDescription), Default: `""`},
	{Name: "extensions", Check: extensions, Default: "{}"},
	{Name: "createdAt", Served: true},
	{Name: "updatedAt", Served: true},
}

// Fields are those of a webhook.
var Fields = document.Fields{
	{Name: "eventType", Check: document.OneOf(eventTypes...), Required: true},
	{Name: "webhookUrl", Check: address, Required: true},
	{Name: "isActive", Check: document.Boolean(), Required: true},
	{Name: "fields", Check: names, Default: "[]"},
	{Name: "description", Check: document.Text(0, maxDescription), Default: `""`},
	{Name: "extensions", Check: extensions, Default: "{}"},
	{Name: "secret", Served: true},
	{Name: "publicKey", Served: true},
	{Name: "previousSecretUntil", Served: true},
	{Name: "createdAt", Served: true},
	{Name: "updatedAt", Served: true},
}

func one(at jsontext.Pointer, code, detail string) fault.Faults {
	return fault.Faults{{At: string(at), Code: code, Detail: detail}}
}

// address takes what the schema of the custom resource takes.
func address(at jsontext.Pointer, value jsontext.Value) fault.Faults {
	if faults := document.URI()(at, value); faults != nil {
		return faults
	}
	text := document.String(value)
	parsed, err := url.ParseRequestURI(text)
	if err != nil || !strings.HasPrefix(text, "https://") || parsed.Hostname() == "" || parsed.User != nil || strings.Contains(text, "#") {
		return one(at, fault.CodeInvalidValue, fault.Quote(text)+" is not an https URL with a host, without user and fragment, such as https://example.org/hook")
	}
	return nil
}

// names takes an array of the names of fields.
func names(at jsontext.Pointer, value jsontext.Value) fault.Faults {
	var items []jsontext.Value
	if value.Kind() != jsontext.KindBeginArray || json.Unmarshal(value, &items) != nil {
		return one(at, fault.CodeWrongType, "this is not an array; send an array of the names of fields")
	}
	if len(items) > maxFields {
		return one(at, fault.CodeTooLong, "this has "+strconv.Itoa(len(items))+" names; at most "+strconv.Itoa(maxFields)+" are taken")
	}
	var faults fault.Faults
	seen := map[string]bool{}
	for i, item := range items {
		place := at.AppendToken(strconv.Itoa(i))
		if wrong := document.Text(1, maxFieldName)(place, item); wrong != nil {
			faults = append(faults, wrong...)
			continue
		}
		name := document.String(item)
		if seen[name] {
			faults = append(faults, one(place, fault.CodeInvalidValue, fault.Quote(name)+" is there already; send each name once")...)
		}
		seen[name] = true
	}
	return faults
}

// extensions takes any object that comes back equal as JSON: one whose numbers Kubernetes
// keeps as they are.
func extensions(at jsontext.Pointer, value jsontext.Value) fault.Faults {
	if faults := document.AnyObject(maxExtensions)(at, value); faults != nil {
		return faults
	}
	decoder := jsontext.NewDecoder(strings.NewReader(string(value)))
	for decoder.InputOffset() < int64(len(value)) {
		token, err := decoder.ReadToken()
		if err != nil {
			return one(at+decoder.StackPointer(), fault.CodeUnparseable, "this cannot be read: "+err.Error())
		}
		if token.Kind() == jsontext.KindNumber && !isKept(token.String()) {
			place := at + decoder.StackPointer()
			return one(place, fault.CodeOutOfRange, fault.Quote(token.String())+" is a number that would not be kept exactly; send it as a string")
		}
	}
	return nil
}

// isKept reports whether a number of JSON is what an integer or a float of 64 bits comes
// back as.
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

// digits are those of a number that count, and the power of ten of the last one.
func digits(number string) (significant string, power int) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	power, _ = strconv.Atoi(strings.TrimPrefix(exponent, "+")) // none is 0
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
