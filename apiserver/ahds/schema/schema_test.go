package schema

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
)

// pet is a table of fields with one of each kind.
var pet = Fields{
	{Name: "name", Check: Text(1, 5), Required: true},
	{Name: "ownerId", Check: UUID(), Required: true},
	{Name: "isTame", Check: Boolean(), Default: "true"},
	{Name: "kind", Check: OneOf("cat", "dog"), Default: `"cat"`},
	{Name: "breed", Check: Nested(Fields{{Name: "code", Check: Text(1, 9), Required: true}, {Name: "system", Check: URI()}}), Default: "null"},
	{Name: "extensions", Check: AnyObject(64), Default: "{}"},
	{Name: "seenAt", Check: Instant(), Default: "null"},
	{Name: "createdAt", Served: true},
}

const (
	owner = "0198c4f2-7d1e-7c3a-9b5f-2e6d8a1c4b70"
	other = "0198c4f2-7d1e-7c3a-9b5f-2e6d8a1c4b71"
)

func parse(t *testing.T, text string) Object {
	t.Helper()
	object, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// told returns field errors as location and code.
func told(err error) []string {
	var errs fielderror.Errors
	if !errors.As(err, &errs) {
		return nil
	}
	said := make([]string, len(errs))
	for i, each := range errs {
		said[i] = each.At + " " + each.Code
	}
	return said
}

// TestParseListLimit checks that items beyond the limit are counted but not kept.
func TestParseListLimit(t *testing.T) {
	objects, err := ParseList([]byte("["+strings.Repeat(`{"a":1},`, 999)+"{}]"), 2)
	if len(objects) != 2 || err == nil || !strings.Contains(err.Error(), "the array has 1000 items; send 1 to 2") {
		t.Errorf("%d objects, error %v", len(objects), err)
	}
	for _, text := range []string{`[{},{"a":1,"a":2}]`, `[{},{]`, `[{},{}`, `[{},{}]]`} {
		if _, err := ParseList([]byte(text), 1); !slices.ContainsFunc(told(err), func(said string) bool { return strings.HasSuffix(said, " unparseable_json") }) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:                                 " unparseable_json",
		` `:                                " unparseable_json",
		`{`:                                " unparseable_json",
		`{"a":`:                            " unparseable_json",
		`{"a":1}{`:                         " unparseable_json",
		`{"a":1} {"b":2}`:                  " unparseable_json",
		`{"a":1} x`:                        " unparseable_json",
		`[]`:                               " wrong_type",
		`"a"`:                              " wrong_type",
		`null`:                             " wrong_type",
		`5`:                                " wrong_type",
		`nul`:                              " unparseable_json",
		`{"a":1,"a":2}`:                    "/a unparseable_json",
		`{"e":{"b":[{"c":1,"\u0063":2}]}}`: "/e/b/0/c unparseable_json",
		"{\"a\":\"\xff\"}":                 "/a unparseable_json",
		`{"a":"\ud800"}`:                   "/a unparseable_json",
		`{"a":01}`:                         " unparseable_json",
		`{'a':1}`:                          " unparseable_json",
		"\ufeff{}":                         " unparseable_json",
		`{"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`:       "/a too_deep",
		`{"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`: "",
	} {
		_, err := Parse([]byte(text))
		got := told(err)
		if len(got) != 1 || want != "" && got[0] != want {
			t.Errorf("%.60s: got %q, want %q", text, got, want)
		}
	}
	if _, err := Parse([]byte(`{"a":` + strings.Repeat("[", 63) + `"[{"` + strings.Repeat("]", 63) + `}`)); err != nil {
		t.Errorf("64 levels: %v", err)
	}
}

func TestCreate(t *testing.T) {
	tests := map[string]struct {
		text, id string
		want     Content
		errs     []string
	}{
		"the least": {
			text: `{"name":"Rex","ownerId":"` + owner + `"}`,
			want: contentOf(map[string]string{"name": `"Rex"`, "ownerId": `"` + owner + `"`, "isTame": "true", "kind": `"cat"`, "breed": "null", "extensions": "{}", "seenAt": "null"}),
		},
		"null is left out": {
			text: `{"petId":null,"name":"Rex","ownerId":"` + owner + `","isTame":null,"kind":null,"breed":null,"extensions":null,"createdAt":5}`,
			want: contentOf(map[string]string{"name": `"Rex"`, "ownerId": `"` + owner + `"`, "isTame": "true", "kind": `"cat"`, "breed": "null", "extensions": "{}", "seenAt": "null"}),
		},
		"all, as it was sent": {
			text: `{ "petId":"` + other + `","extensions": {"b" : 1.0, "a":[null , 1e3] },"name":"R\u0065x","ownerId":"` + strings.ToUpper(owner) +
				`","isTame":false,"kind":"dog","breed":{"system":"urn:x:y", "code":"1"},"seenAt":"2026-03-01T10:00:00+05:45"}`,
			id: other,
			want: contentOf(map[string]string{
				"name": `"R\u0065x"`, "ownerId": `"` + strings.ToUpper(owner) + `"`, "isTame": "false", "kind": `"dog"`,
				"breed": `{"system":"urn:x:y", "code":"1"}`, "extensions": `{"b" : 1.0, "a":[null , 1e3] }`, "seenAt": `"2026-03-01T10:00:00+05:45"`,
			}),
		},
		"all faults at once": {
			text: `{"nane":"Rex","name":7,"isTame":"yes","kind":"cow","breed":{"cod":"1"},"extensions":[],"a/b~c":1,"petId":"7","seenAt":"2026"}`,
			errs: []string{"/nane unknown_field", "/name wrong_type", "/isTame wrong_type", "/kind invalid_value", "/breed/cod unknown_field", "/breed/code missing_field", "/extensions wrong_type", "/a~1b~0c unknown_field", "/petId invalid_value", "/seenAt invalid_value", "/ownerId missing_field"},
		},
		"bounds": {
			text: `{"name":"","ownerId":"{` + owner + `}","breed":{"code":"0123456789","system":"no uri"},"extensions":{"a":"` + strings.Repeat("x", 60) + `"}}`,
			errs: []string{"/name invalid_value", "/ownerId invalid_value", "/breed/code too_long", "/breed/system invalid_value", "/extensions too_long"},
		},
		"null of what is required": {
			text: `{"name":null,"ownerId":null,"breed":{"code":null,"system":null}}`, errs: []string{"/name missing_field", "/ownerId missing_field", "/breed/code missing_field"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			content, id, err := pet.Create(parse(t, test.text), Identity{Name: "petId"})
			if diff := cmp.Diff(test.errs, told(err)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			if test.want == nil {
				return
			}
			if diff := cmp.Diff(test.want.texts(), content.texts()); diff != "" || id != test.id {
				t.Errorf("id %q, content (-want +got):\n%s", id, diff)
			}
		})
	}
}

func (c Content) texts() map[string]string {
	texts := map[string]string{}
	for name, value := range c {
		texts[name] = string(value)
	}
	return texts
}

func TestUnknownNamesTheNearest(t *testing.T) {
	_, _, err := pet.Create(parse(t, `{"nane":"Rex"}`), Identity{Name: "petId"})
	if err == nil || !strings.Contains(err.Error(), "did you mean name?") {
		t.Errorf("got %v", err)
	}
	_, _, err = pet.Create(parse(t, `{"`+strings.Repeat("n", 70_000)+`":"Rex"}`), Identity{Name: "petId"})
	if err == nil || !strings.Contains(err.Error(), "known names are petId, name") {
		t.Errorf("got %v", err)
	}
}

// TestUnknownWithoutFields checks the message about a member of an object that has no fields.
func TestUnknownWithoutFields(t *testing.T) {
	_, _, err := Fields(nil).Create(parse(t, `{"now":true}`), Identity{})
	if want := `/now: "now" is not a field of this object; the object has no fields, so send it empty`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestCreateWithoutIdentity checks that an object without an id field does not accept the name "".
func TestCreateWithoutIdentity(t *testing.T) {
	_, sent, err := pet.Create(parse(t, `{"":"`+other+`","name":"Rex","ownerId":"`+owner+`"}`), Identity{})
	if diff := cmp.Diff([]string{"/ unknown_field"}, told(err)); diff != "" || sent != "" {
		t.Fatalf("id %q, faults (-want +got):\n%s", sent, diff)
	}
	if !strings.Contains(err.Error(), "known names are name, ") {
		t.Errorf("got %v", err)
	}
}

func TestReplaceWantsAllFields(t *testing.T) {
	_, err := pet.Replace(parse(t, `{"petId":"`+other+`","name":"Rex","breed":null}`), Identity{Name: "petId", Path: owner})
	want := []string{"/petId id_mismatch", "/ownerId missing_field", "/isTame missing_field", "/kind missing_field", "/extensions missing_field", "/seenAt missing_field"}
	if diff := cmp.Diff(want, told(err)); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	for _, id := range []string{`"` + strings.ToUpper(owner) + `"`, "null"} {
		_, err = pet.Replace(parse(t, `{"petId":`+id+`,"name":"Rex","breed":null,"ownerId":"`+owner+`","isTame":true,"kind":"cat","extensions":{},"seenAt":null,"createdAt":"x"}`),
			Identity{Name: "petId", Path: owner})
		if err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// TestPatch holds the examples of RFC 7396, appendix A, inside of a field.
func TestPatch(t *testing.T) {
	for _, test := range []struct{ before, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{`{"a":"b"}`, `{"a":[{"b":null}, 1.0]}`, `{"a":[{"b":null}, 1.0]}`},
		{`{"z":1.50,"a":{"k" : "\u0041<"}}`, `{"q":2e1}`, `{"z":1.50,"a":{"k" : "\u0041<"},"q":2e1}`},
		{`{"a":1}`, `null`, `{}`},
	} {
		before := contentOf(map[string]string{"name": `"Rex"`, "extensions": test.before})
		after, err := pet.Patch(before, parse(t, `{"extensions":`+test.patch+`}`), Identity{Name: "petId", Path: owner})
		if err != nil || string(after["extensions"]) != test.want || string(after["name"]) != `"Rex"` {
			t.Errorf("%s patched with %s: got %v, %v, want %s", test.before, test.patch, after.texts(), err, test.want)
		}
	}
	before := contentOf(map[string]string{"name": `"Rex"`, "isTame": "false", "breed": `{"code":"a","system":"urn:x:y"}`, "extensions": `{ }`})
	after, err := pet.Patch(before, parse(t, `{"isTame":null,"breed":{"system":null,"code":"b"}}`), Identity{Name: "petId", Path: owner})
	want := map[string]string{"name": `"Rex"`, "isTame": "true", "breed": `{"code":"b"}`, "extensions": `{ }`}
	if diff := cmp.Diff(want, after.texts()); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	_, err = pet.Patch(before, parse(t, `{"name":null,"breed":{"code":null},"extensions":{"a":"`+strings.Repeat("x", 60)+`"},"nam":1}`), Identity{Name: "petId", Path: owner})
	if diff := cmp.Diff([]string{"/name missing_field", "/breed/code missing_field", "/extensions too_long", "/nam unknown_field"}, told(err)); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func contentOf(texts map[string]string) Content {
	content := Content{}
	for name, value := range texts {
		content[name] = jsontext.Value(value)
	}
	return content
}

func TestInteger(t *testing.T) {
	check := Integer(1, 10)
	for text, ok := range map[string]bool{"1": true, "10": true, "0": false, "11": false, "1.0": false, "1e0": false, "-1": false, `"1"`: false, "99999999999999999999": false, "null": false} {
		if errs := check.Errors("/n", jsontext.Value(text)); (len(errs) == 0) != ok {
			t.Errorf("%s: %v", text, errs)
		}
	}
}

func TestSchema(t *testing.T) {
	got := pet.Schema()
	if diff := cmp.Diff(false, got["additionalProperties"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"name", "ownerId"}, got["required"]); diff != "" {
		t.Errorf("required (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(JSON{"type": []string{"boolean", "null"}}, got["properties"].(JSON)["isTame"]); diff != "" {
		t.Errorf("an optional field (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(JSON{"anyOf": []any{JSON{"type": "string", "enum": []string{"a"}}, JSON{"type": "null"}}}, OneOf("a").Schema.OrNull()); diff != "" {
		t.Errorf("one of several words (-want +got):\n%s", diff)
	}
}
