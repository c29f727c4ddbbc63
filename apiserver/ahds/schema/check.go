package schema

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
)

// Check is a rule for values.
type Check struct {
	// Errors returns the errors of a value at a location. The value is not null. Errors may be nil for
	// a field that the service sets.
	Errors func(at jsontext.Pointer, value jsontext.Value) fielderror.Errors
	// Schema is the JSON Schema of the values. It allows all values that Errors accepts, and may
	// allow more values.
	Schema JSON
}

// JSON is a JSON Schema of the dialect 2020-12, in which OpenAPI 3.1 describes values.
type JSON map[string]any

// String returns the text of a JSON string, and "" for other values.
func String(value jsontext.Value) string {
	if value.Kind() != jsontext.KindString {
		return ""
	}
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return ""
	}
	return string(text)
}

// Bool reports whether a value is true in JSON. It is false for any other or missing value.
func Bool(value jsontext.Value) bool { return value.Kind() == jsontext.KindTrue }

func one(at jsontext.Pointer, code, detail string) fielderror.Errors {
	return fielderror.Errors{{At: string(at), Code: code, Detail: detail}}
}

func wrongType(at jsontext.Pointer, value jsontext.Value, wanted string) fielderror.Errors {
	return one(at, fielderror.CodeWrongType, "the value is "+kindName(value.Kind())+"; send "+wanted)
}

// text returns a check of strings. keywords are those of the schema in addition to the type, and
// wanted describes the strings in the error for other values.
func text(keywords JSON, wanted string, check func(at jsontext.Pointer, text string) fielderror.Errors) Check {
	keywords["type"] = "string"
	return Check{Schema: keywords, Errors: func(at jsontext.Pointer, value jsontext.Value) fielderror.Errors {
		if value.Kind() != jsontext.KindString {
			return wrongType(at, value, wanted)
		}
		return check(at, String(value))
	}}
}

// Text returns a check for strings of least to most characters.
func Text(least, most int) Check {
	keywords := JSON{"maxLength": most}
	if least > 0 {
		keywords["minLength"] = least
	}
	return text(keywords, "a string", func(at jsontext.Pointer, text string) fielderror.Errors {
		switch length := utf8.RuneCountInString(text); {
		case length < least:
			return one(at, fielderror.CodeInvalidValue, "the value has "+strconv.Itoa(length)+" characters; send at least "+strconv.Itoa(least))
		case length > most:
			return one(at, fielderror.CodeTooLong, "the value has "+strconv.Itoa(length)+" characters; send at most "+strconv.Itoa(most))
		}
		return nil
	})
}

// Line returns a check for strings of least to most characters without control characters.
func Line(least, most int) Check {
	check := Text(least, most)
	check.Schema["pattern"] = `^[^\x00-\x1f\x7f-\x9f]*$`
	length := check.Errors
	check.Errors = func(at jsontext.Pointer, value jsontext.Value) fielderror.Errors {
		if problem := ControlCharacter(String(value)); problem != "" {
			return one(at, fielderror.CodeInvalidValue, problem)
		}
		return length(at, value)
	}
	return check
}

// ControlCharacter returns the message for the first control character of text, U+0000 to U+001F or U+007F
// to U+009F. It returns an empty message if there is none.
func ControlCharacter(text string) string {
	at := strings.IndexFunc(text, unicode.IsControl)
	if at < 0 {
		return ""
	}
	found, _ := utf8.DecodeRuneInString(text[at:])
	return fmt.Sprintf("the value has the control character %U; remove it", found)
}

var uuidForm = regexp.MustCompile(`^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$`)

// IsUUID reports whether text has the form of a UUID (RFC 9562 §4).
func IsUUID(text string) bool { return uuidForm.MatchString(text) }

// NotUUID returns the message for text that is not a UUID.
func NotUUID(text string) string {
	return fielderror.Quote(text) + " is not a UUID; send one like 0198c4f2-7d1e-7c3a-9b5f-2e6d8a1c4b70"
}

// UUID returns a check for UUIDs.
func UUID() Check {
	return text(JSON{"format": "uuid", "pattern": uuidForm.String()}, "a string with a UUID", func(at jsontext.Pointer, text string) fielderror.Errors {
		if !IsUUID(text) {
			return one(at, fielderror.CodeInvalidValue, NotUUID(text))
		}
		return nil
	})
}

var idForm = regexp.MustCompile(`^[A-Za-z0-9.-]{0,64}$`)

// ID returns a check for ids of records of the FHIR and AHDS APIs. It accepts the empty string.
func ID() Check {
	return text(JSON{"pattern": idForm.String()}, "a string with an id", func(at jsontext.Pointer, text string) fielderror.Errors {
		if !idForm.MatchString(text) {
			return one(at, fielderror.CodeInvalidValue, fielderror.Quote(text)+" is not an id; send up to 64 letters, digits, - and .")
		}
		return nil
	})
}

// OneOf returns a check for one of the given strings.
func OneOf(values ...string) Check {
	return text(JSON{"enum": values}, "a string", func(at jsontext.Pointer, text string) fielderror.Errors {
		for _, value := range values {
			if text == value {
				return nil
			}
		}
		return one(at, fielderror.CodeInvalidValue, fielderror.Quote(text)+" is not supported; send one of "+strings.Join(values, ", "))
	})
}

// Boolean returns a check for true and false.
func Boolean() Check {
	return Check{Schema: JSON{"type": "boolean"}, Errors: func(at jsontext.Pointer, value jsontext.Value) fielderror.Errors {
		if kind := value.Kind(); kind != jsontext.KindTrue && kind != jsontext.KindFalse {
			return wrongType(at, value, "true or false")
		}
		return nil
	}}
}

var integerForm = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,17})$`)

// Int returns the value of a JSON number that is written without a fraction or an exponent and fits
// into 64 bits. It returns 0 for any other value.
func Int(value jsontext.Value) int64 {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Integer returns a check for whole numbers from least to most.
func Integer(least, most int64) Check {
	return Check{Schema: JSON{"type": "integer", "minimum": least, "maximum": most}, Errors: func(at jsontext.Pointer, value jsontext.Value) fielderror.Errors {
		if value.Kind() != jsontext.KindNumber {
			return wrongType(at, value, "a whole number")
		}
		if n := Int(value); !integerForm.Match(value) || n < least || n > most {
			return one(at, fielderror.CodeOutOfRange, "the value is out of range; send a whole number from "+strconv.FormatInt(least, 10)+" to "+strconv.FormatInt(most, 10))
		}
		return nil
	}}
}

// URI returns a check for absolute URIs of up to 2048 bytes.
func URI() Check {
	const maxLength = 2048
	return text(JSON{"format": "uri", "maxLength": maxLength}, "a string with a URI", func(at jsontext.Pointer, text string) fielderror.Errors {
		if len(text) > maxLength {
			return one(at, fielderror.CodeTooLong, "the value has "+strconv.Itoa(len(text))+" bytes; send at most "+strconv.Itoa(maxLength))
		}
		parsed, err := url.Parse(text)
		if err != nil || !parsed.IsAbs() || strings.ContainsAny(text, " \t\r\n") {
			return one(at, fielderror.CodeInvalidValue, fielderror.Quote(text)+" is not an absolute URI; send one such as https://example.org/codes or urn:oid:1.2.3")
		}
		return nil
	})
}

// AnyObject returns a check for objects with any members and at most mostBytes bytes as sent.
func AnyObject(mostBytes int) Check {
	return Check{Schema: JSON{"type": "object"}, Errors: func(at jsontext.Pointer, value jsontext.Value) fielderror.Errors {
		if value.Kind() != jsontext.KindBeginObject {
			return wrongType(at, value, "an object")
		}
		if len(value) > mostBytes {
			return one(at, fielderror.CodeTooLong, "the object has "+strconv.Itoa(len(value))+" bytes; send at most "+strconv.Itoa(mostBytes))
		}
		return nil
	}}
}

// Nested returns a check for objects with the given fields. An omitted field stays absent.
func Nested(fields Fields) Check {
	return Check{Schema: fields.Schema(), Errors: func(at jsontext.Pointer, value jsontext.Value) fielderror.Errors {
		if value.Kind() != jsontext.KindBeginObject {
			return wrongType(at, value, "an object")
		}
		object, err := Members(value)
		if err != nil {
			return fielderror.Errors{{At: string(at), Code: fielderror.CodeUnparseable, Detail: "the value is not a valid JSON object; send an object without duplicate names"}}
		}
		var errs fielderror.Errors
		for _, member := range object {
			if len(errs) >= maxErrors {
				break
			}
			field, known := fields.find(member.Name)
			if !known {
				errs = append(errs, fields.unknown(at, member.Name))
				continue
			}
			errs = append(errs, field.check(at, &member.Value)...)
		}
		for _, field := range fields {
			if field.Required && object.Get(field.Name) == nil {
				errs = append(errs, field.complete(at, Content{})...)
			}
		}
		return errs
	}}
}

// Member returns a string member of an object field, and "" if it is absent.
func (c Content) Member(field, name string) string {
	value := c[field]
	if value.Kind() != jsontext.KindBeginObject {
		return ""
	}
	object, err := Members(value)
	if err != nil {
		return ""
	}
	if found := object.Get(name); found != nil {
		return String(found)
	}
	return ""
}

// Text returns the string value of a field, and "" if it is missing or of another type.
func (c Content) Text(field string) string { return String(c[field]) }

// Bool returns the boolean value of a field, and false if it is missing or of another type.
func (c Content) Bool(field string) bool { return Bool(c[field]) }
