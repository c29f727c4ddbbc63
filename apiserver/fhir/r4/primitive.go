package r4

import (
	"github.com/go-json-experiment/json/jsontext"
)

// primitive defines the valid values of a primitive type in JSON.
type primitive struct {
	kind  jsontext.Kind
	valid func(text []byte) bool
	// form describes valid values in messages.
	form string
}

// primitives are the primitive types of R4 (datatypes.html#primitive). KindFalse includes true.
var primitives = [firstDatatype]primitive{
	typeBase64Binary: {jsontext.KindString, isBase64, "base64 (RFC 4648): groups of 4 characters, the last one padded with ="},
	typeBoolean:      {jsontext.KindFalse, isAny, "true or false"},
	typeCanonical:    {jsontext.KindString, isURI, "a URI without white space"},
	typeCode:         {jsontext.KindString, isCode, "a code: words separated by single spaces, without other white space or control characters"},
	typeDate:         {jsontext.KindString, isDate, "an existing date: YYYY, YYYY-MM or YYYY-MM-DD"},
	typeDateTime:     {jsontext.KindString, isDateTime, "an existing date or time: YYYY, YYYY-MM, YYYY-MM-DD or YYYY-MM-DDThh:mm:ss[.fff] with Z or a zone such as +02:00"},
	typeDecimal:      {jsontext.KindNumber, isAny, "a number"},
	typeID:           {jsontext.KindString, isID, "an id: " + IDPattern},
	typeInstant:      {jsontext.KindString, isInstant, "an existing instant: YYYY-MM-DDThh:mm:ss[.fff] with Z or a zone such as +02:00"},
	typeInteger:      {jsontext.KindNumber, isInteger, "an integer from -2147483648 to 2147483647, without fraction and exponent"},
	typeMarkdown:     {jsontext.KindString, isString, stringForm},
	typeOID:          {jsontext.KindString, isOID, "an OID such as urn:oid:1.2.3"},
	typePositiveInt:  {jsontext.KindNumber, isPositiveInt, "an integer from 1 to 2147483647, without fraction and exponent"},
	typeString:       {jsontext.KindString, isString, stringForm},
	typeTime:         {jsontext.KindString, isTime, "a time of day: hh:mm:ss[.fff]"},
	typeUnsignedInt:  {jsontext.KindNumber, isUnsignedInt, "an integer from 0 to 2147483647, without fraction and exponent"},
	typeURI:          {jsontext.KindString, isURI, "a URI without white space"},
	typeURL:          {jsontext.KindString, isURI, "a URL without white space"},
	typeUUID:         {jsontext.KindString, isUUID, "a UUID such as urn:uuid:c757873d-ec9a-4326-a141-556f43239520, in lower case"},
	typeXhtml:        {jsontext.KindString, isAny, "XHTML"},
}

const stringForm = "a string of 1 to 1,048,576 characters, without control characters other than tab, CR and LF"

// supports reports whether values of the primitive type can have the JSON kind.
func (p *primitive) supports(kind jsontext.Kind) bool {
	return kind == p.kind || p.kind == jsontext.KindFalse && kind == jsontext.KindTrue
}

func isAny([]byte) bool { return true }
