package document

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/fault"
)

// Check finds what is wrong with a value at a place. The value is not null.
type Check func(at jsontext.Pointer, value jsontext.Value) fault.Faults

// String is the text of a JSON string, empty for other values.
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

// Bool is what a JSON boolean says, false for other values.
func Bool(value jsontext.Value) bool { return value.Kind() == jsontext.KindTrue }

func one(at jsontext.Pointer, code, detail string) fault.Faults {
	return fault.Faults{{At: string(at), Code: code, Detail: detail}}
}

func wrongType(at jsontext.Pointer, value jsontext.Value, wanted string) fault.Faults {
	return one(at, fault.CodeWrongType, "this is "+kindName(value.Kind())+"; send "+wanted)
}

// text makes a check of strings.
func text(wanted string, check func(at jsontext.Pointer, text string) fault.Faults) Check {
	return func(at jsontext.Pointer, value jsontext.Value) fault.Faults {
		if value.Kind() != jsontext.KindString {
			return wrongType(at, value, wanted)
		}
		return check(at, String(value))
	}
}

// Text takes strings of a least and most number of characters.
func Text(least, most int) Check {
	return text("a string", func(at jsontext.Pointer, text string) fault.Faults {
		switch length := utf8.RuneCountInString(text); {
		case length < least:
			return one(at, fault.CodeInvalidValue, "this is too short: at least "+strconv.Itoa(least)+" characters are wanted")
		case length > most:
			return one(at, fault.CodeTooLong, "this has "+strconv.Itoa(length)+" characters; at most "+strconv.Itoa(most)+" are taken")
		}
		return nil
	})
}

var uuidForm = regexp.MustCompile(`^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$`)

// IsUUID reports whether a text has the form of a UUID (RFC 9562 §4).
func IsUUID(text string) bool { return uuidForm.MatchString(text) }

// NotUUID says what is wrong with a text that is none.
func NotUUID(text string) string {
	return fault.Quote(text) + " is not a UUID; write one like 0198c4f2-7d1e-7c3a-9b5f-2e6d8a1c4b70"
}

// UUID takes UUIDs.
func UUID() Check {
	return text("a string with a UUID", func(at jsontext.Pointer, text string) fault.Faults {
		if !IsUUID(text) {
			return one(at, fault.CodeInvalidValue, NotUUID(text))
		}
		return nil
	})
}

var idForm = regexp.MustCompile(`^[A-Za-z0-9.-]{0,64}$`)

// ID takes ids of records of either API, and the empty string.
func ID() Check {
	return text("a string with an id", func(at jsontext.Pointer, text string) fault.Faults {
		if !idForm.MatchString(text) {
			return one(at, fault.CodeInvalidValue, fault.Quote(text)+" is not an id; ids have up to 64 letters, digits, - and .")
		}
		return nil
	})
}

// OneOf takes some strings only.
func OneOf(values ...string) Check {
	return text("a string", func(at jsontext.Pointer, text string) fault.Faults {
		for _, value := range values {
			if text == value {
				return nil
			}
		}
		return one(at, fault.CodeInvalidValue, fault.Quote(text)+" is none of "+strings.Join(values, ", "))
	})
}

// Boolean takes true and false.
func Boolean() Check {
	return func(at jsontext.Pointer, value jsontext.Value) fault.Faults {
		if kind := value.Kind(); kind != jsontext.KindTrue && kind != jsontext.KindFalse {
			return wrongType(at, value, "true or false")
		}
		return nil
	}
}

var integerForm = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,17})$`)

// Int is the value of a JSON number that Integer has taken.
func Int(value jsontext.Value) int64 {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Integer takes whole numbers within bounds.
func Integer(least, most int64) Check {
	return func(at jsontext.Pointer, value jsontext.Value) fault.Faults {
		if value.Kind() != jsontext.KindNumber {
			return wrongType(at, value, "a whole number")
		}
		if n := Int(value); !integerForm.Match(value) || n < least || n > most {
			return one(at, fault.CodeOutOfRange, "this is not a whole number from "+strconv.FormatInt(least, 10)+" to "+strconv.FormatInt(most, 10))
		}
		return nil
	}
}

// URI takes absolute URIs of up to 2048 bytes.
func URI() Check {
	return text("a string with a URI", func(at jsontext.Pointer, text string) fault.Faults {
		const longest = 2048
		if len(text) > longest {
			return one(at, fault.CodeTooLong, "this has "+strconv.Itoa(len(text))+" bytes; at most "+strconv.Itoa(longest)+" are taken")
		}
		parsed, err := url.Parse(text)
		if err != nil || !parsed.IsAbs() || strings.ContainsAny(text, " \t\r\n") {
			return one(at, fault.CodeInvalidValue, fault.Quote(text)+" is not an absolute URI, such as https://example.org/codes or urn:oid:1.2.3")
		}
		return nil
	})
}

// AnyObject takes objects of any members, up to a number of bytes as they were sent.
func AnyObject(mostBytes int) Check {
	return func(at jsontext.Pointer, value jsontext.Value) fault.Faults {
		if value.Kind() != jsontext.KindBeginObject {
			return wrongType(at, value, "an object")
		}
		if len(value) > mostBytes {
			return one(at, fault.CodeTooLong, "this has "+strconv.Itoa(len(value))+" bytes; at most "+strconv.Itoa(mostBytes)+" are taken")
		}
		return nil
	}
}

// Nested takes objects with fields of their own. What is left out stays out.
func Nested(fields Fields) Check {
	return func(at jsontext.Pointer, value jsontext.Value) fault.Faults {
		if value.Kind() != jsontext.KindBeginObject {
			return wrongType(at, value, "an object")
		}
		object, err := Members(value)
		if err != nil {
			return fault.Faults{{At: string(at), Code: fault.CodeUnparseable, Detail: "this is not a JSON object"}}
		}
		var faults fault.Faults
		for _, member := range object {
			if len(faults) >= maxFaults {
				break
			}
			field, known := fields.find(member.Name)
			if !known {
				faults = append(faults, fields.unknown(at, member.Name))
				continue
			}
			faults = append(faults, field.check(at, &member.Value)...)
		}
		for _, field := range fields {
			if field.Required && object.Get(field.Name) == nil {
				faults = append(faults, field.complete(at, Content{})...)
			}
		}
		return faults
	}
}

// Member is a string member of a value that Nested has taken.
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

// Text is the string that a field has.
func (c Content) Text(field string) string { return String(c[field]) }

// Bool is the boolean that a field has.
func (c Content) Bool(field string) bool { return Bool(c[field]) }
