package searchtruth

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/paddock-health/paddock/apiserver/store"
)

// implied maps parameters with values of type code, as NAME for all types or TYPE NAME, to the code
// system of these values.
var implied = map[string]string{
	"gender":                "http://hl7.org/fhir/administrative-gender",
	"address-use":           "http://hl7.org/fhir/address-use",
	"Device status":         "http://hl7.org/fhir/device-status",
	"DeviceMetric category": "http://hl7.org/fhir/metric-category",
	"Endpoint status":       "http://hl7.org/fhir/endpoint-status",
	"Group type":            "http://hl7.org/fhir/group-type",
	"Location status":       "http://hl7.org/fhir/location-status",
}

// CodeSystem returns the code system of the values of a parameter that have type code. It is empty
// for other parameters.
func CodeSystem(resourceType, parameter string) string {
	return cmp.Or(implied[resourceType+" "+parameter], implied[parameter])
}

// entriesOf returns the index values of a resource. answer is the line that values.mjs printed for the
// resource.
func (t *Truth) entriesOf(resource []byte, answer string) ([]store.IndexValue, error) {
	var of struct{ ResourceType string }
	if err := json.Unmarshal(resource, &of); err != nil {
		return nil, err
	}
	var found map[string][][2]any
	if err := json.Unmarshal([]byte(answer), &found); err != nil {
		return nil, err
	}
	var all []store.IndexValue
	for parameter, pairs := range found {
		for _, pair := range pairs {
			typ, ok := pair[0].(string)
			if !ok {
				return nil, fmt.Errorf("%v is not the name of a type", pair[0])
			}
			c := conversion{parameter: parameter, resourceType: of.ResourceType, types: t.types}
			c.convert(typ, pair[1])
			if !c.comparable {
				c.entries = append(c.entries, store.IndexValue{Param: parameter})
			}
			all = append(all, c.entries...)
		}
	}
	return all, nil
}

// conversion makes the index values of one value of a parameter. comparable reports whether a
// comparison without a modifier can find one of them.
type conversion struct {
	parameter, resourceType string
	types                   map[string]bool
	entries                 []store.IndexValue
	comparable              bool
}

func (c *conversion) add(value store.Value) {
	c.comparable = true
	c.entries = append(c.entries, store.IndexValue{Param: c.parameter, Value: value})
}

func (c *conversion) addUnder(suffix string, value store.Value) {
	c.entries = append(c.entries, store.IndexValue{Param: c.parameter + suffix, Value: value})
}

func (c *conversion) convert(typ string, value any) {
	switch typ {
	case "boolean", "Boolean":
		c.add(boolean(value))
	case "code":
		c.add(store.Token{System: CodeSystem(c.resourceType, c.parameter), Code: lower(value)})
	case "CodeableConcept":
		for _, coding := range list(value, "coding") {
			c.convert("Coding", coding)
		}
		c.addText(":text", member(value, "text"))
	case "Coding":
		c.addToken("", member(value, "system"), member(value, "code"))
		c.addText(":text", member(value, "display"))
	case "ContactPoint":
		c.addToken("", member(value, "system"), member(value, "value"))
	case "Identifier":
		c.identifier(value)
	case "string":
		c.addText("", value)
	case "HumanName", "Address":
		c.parts(value)
	case "sounds":
		for _, code := range value.([]any) {
			c.add(store.Text{Folded: code.(string), Original: code.(string)})
		}
	case "uri", "url", "canonical":
		c.add(store.Text{Folded: value.(string), Original: value.(string)})
	case "Reference":
		c.reference(value)
	case "date", "dateTime", "instant":
		from, until := period(value.(string))
		c.add(store.Period{From: from, Until: until})
	case "Period":
		c.period(value)
	case "BackboneElement":
		c.component(value)
	default:
		panic("searchtruth: there is no conversion of values of type " + typ)
	}
}

// member returns a member of an object, or nil. list returns a member that is an array, or nil.
func member(value any, name string) any {
	object, _ := value.(map[string]any)
	return object[name]
}

func list(value any, name string) []any {
	items, _ := member(value, name).([]any)
	return items
}

// lower returns a text in the form without case, and an empty string for other values.
func lower(value any) string {
	text, _ := value.(string)
	return Lower(text)
}

// Lower returns a text in a form without case: equal for texts that differ only in case.
func Lower(text string) string {
	return strings.ReplaceAll(strings.ToLower(strings.ToUpper(text)), "ς", "σ")
}

// Folded returns a text without case, accents and superfluous white space.
func Folded(text string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(text) {
		if !unicode.Is(unicode.Mn, r) {
			b.WriteRune(r)
		}
	}
	return strings.ReplaceAll(Lower(strings.Join(strings.Fields(b.String()), " ")), "ß", "ss")
}

func boolean(value any) store.Token {
	return store.Token{System: "http://hl7.org/fhir/special-values", Code: fmt.Sprint(value)}
}

func (c *conversion) addToken(suffix string, system, code any) {
	token := store.Token{Code: lower(code)}
	token.System, _ = system.(string)
	switch {
	case token.System == "" && token.Code == "":
	case suffix == "":
		c.add(token)
	default:
		c.addUnder(suffix, token)
	}
}

func (c *conversion) addText(suffix string, value any) {
	original, _ := value.(string)
	text := store.Text{Folded: Folded(original), Original: original}
	switch {
	case text.Folded == "":
	case suffix == "":
		c.add(text)
	default:
		c.addUnder(suffix, text)
	}
}

func (c *conversion) identifier(value any) {
	c.addToken("", member(value, "system"), member(value, "value"))
	kind := member(value, "type")
	c.addText(":text", member(kind, "text"))
	for _, coding := range list(kind, "coding") {
		code, number := lower(member(coding, "code")), lower(member(value, "value"))
		if code != "" && number != "" {
			c.addToken(":of-type", member(coding, "system"), code+"|"+number)
		}
	}
}

func (c *conversion) parts(value any) {
	for _, name := range []string{"text", "family", "city", "district", "state", "postalCode", "country"} {
		c.addText("", member(value, name))
	}
	for _, name := range []string{"given", "prefix", "suffix", "line"} {
		for _, part := range list(value, name) {
			c.addText("", part)
		}
	}
}

var literal = regexp.MustCompile(`^(?:(https?://.+)/)?([A-Za-z]+)/([A-Za-z0-9.-]{1,64})(?:/_history/[A-Za-z0-9.-]{1,64})?$`)

func (c *conversion) reference(value any) {
	identifier := member(value, "identifier")
	c.addToken(":identifier", member(identifier, "system"), member(identifier, "value"))
	text, _ := member(value, "reference").(string)
	parts := literal.FindStringSubmatch(text)
	switch {
	case text == "" || strings.HasPrefix(text, "#"):
	case parts != nil && c.types[parts[2]]:
		c.add(store.Reference{Base: parts[1], Type: parts[2], ID: strings.ToLower(parts[3])})
	default:
		c.add(store.Reference{Base: text})
	}
}

// period returns the period of a date or time with its precision, in microseconds. A leap second
// counts as the second after it.
func period(text string) (from, until int64) {
	leap := strings.Contains(text, ":60")
	text = strings.Replace(text, ":60", ":59", 1)
	for layout, length := range map[string][3]int{"2006": {1, 0, 0}, "2006-01": {0, 1, 0}, "2006-01-02": {0, 0, 1}} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UnixMicro(), at.AddDate(length[0], length[1], length[2]).UnixMicro()
		}
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic("searchtruth: " + err.Error())
	}
	if leap {
		at = at.Add(time.Second)
	}
	digits := len(regexp.MustCompile(`^[^.]*(\.(\d*))?.*$`).ReplaceAllString(text, "$2"))
	length := int64(math.Pow10(max(0, 6-digits)))
	return at.UnixMicro(), at.UnixMicro() + length
}

func (c *conversion) period(value any) {
	from, until := int64(store.TheBeginning), int64(store.TheEnd)
	start, starts := member(value, "start").(string)
	end, ends := member(value, "end").(string)
	if starts {
		from, _ = period(start)
	}
	if ends {
		_, until = period(end)
	}
	if from >= until {
		until = from + 1
	}
	if starts || ends {
		c.add(store.Period{From: from, Until: until})
	}
}

// component converts the position of a Location or a characteristic of a Group.
func (c *conversion) component(value any) {
	if c.parameter == "near" {
		latitude, first := member(value, "latitude").(float64)
		longitude, second := member(value, "longitude").(float64)
		if first && second && math.Abs(latitude) <= 90 && math.Abs(longitude) <= 180 {
			c.add(store.Point{Latitude: latitude, Longitude: longitude})
		}
		return
	}
	for _, code := range tokens(member(value, "code")) {
		if is, ok := member(value, "valueBoolean").(bool); ok {
			c.add(store.Pair{First: code, Second: boolean(is)})
		}
		for _, is := range tokens(member(value, "valueCodeableConcept")) {
			c.add(store.Pair{First: code, Second: is})
		}
	}
}

// tokens returns the tokens of the codings of a CodeableConcept.
func tokens(concept any) (all []store.Token) {
	for _, coding := range list(concept, "coding") {
		system, _ := member(coding, "system").(string)
		if token := (store.Token{System: system, Code: lower(member(coding, "code"))}); token != (store.Token{}) {
			all = append(all, token)
		}
	}
	return all
}
