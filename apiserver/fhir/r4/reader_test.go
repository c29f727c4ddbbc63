package r4

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	tests := map[string]struct {
		body string
		// want is the stored body with ^ at IDOffset and ~ at MetaOffset.
		want string
		id   string
	}{
		"no id, no meta": {
			body: `{"resourceType":"Patient"}`,
			want: `{"resourceType":"Patient","id":"^","meta":{~}}`,
		},
		"resourceType is not first": {
			body: `{"active":true , "resourceType" : "Patient" , "gender":"male"}`,
			want: `{"active":true , "resourceType" : "Patient","id":"^","meta":{~} , "gender":"male"}`,
		},
		"id without meta": {
			body: `{"resourceType":"Patient", "id" : "A-1.b" }`,
			want: `{"resourceType":"Patient", "id" : "^","meta":{~} }`,
			id:   "A-1.b",
		},
		"meta without id": {
			body: `{"resourceType":"Patient","meta":{"source":"#x"}}`,
			want: `{"resourceType":"Patient","id":"^","meta":{~"source":"#x"}}`,
		},
		"meta before id before resourceType": {
			body: `{"meta":{"profile":["p"]},"id":"1","resourceType":"Patient"}`,
			want: `{"meta":{~"profile":["p"]},"id":"^","resourceType":"Patient"}`,
			id:   "1",
		},
		"meta first, no id": {
			body: `{"meta":{"source":"#x"},"resourceType":"Patient"}`,
			want: `{"meta":{~"source":"#x"},"resourceType":"Patient","id":"^"}`,
		},
		"meta with only versionId": {
			body: `{"resourceType":"Patient","id":"1","meta":{ "versionId":"7" }}`,
			want: `{"resourceType":"Patient","id":"^","meta":{~  }}`,
			id:   "1",
		},
		"meta with only both": {
			body: `{"resourceType":"Patient","id":"1","meta":{"lastUpdated":"2020-01-01T00:00:00Z", "versionId":"7"}}`,
			want: `{"resourceType":"Patient","id":"^","meta":{~}}`,
			id:   "1",
		},
		"versionId and lastUpdated first": {
			body: `{"resourceType":"Patient","id":"1","meta":{"versionId":"7","lastUpdated":"2020-01-01T00:00:00Z", "source":"#a"}}`,
			want: `{"resourceType":"Patient","id":"^","meta":{~ "source":"#a"}}`,
			id:   "1",
		},
		"versionId and lastUpdated last": {
			body: `{"resourceType":"Patient","id":"1","meta":{"source":"#a" , "versionId":"7","lastUpdated":"2020-01-01T00:00:00Z"}}`,
			want: `{"resourceType":"Patient","id":"^","meta":{~"source":"#a"}}`,
			id:   "1",
		},
		"versionId and lastUpdated around and between": {
			body: `{"resourceType":"Patient","id":"1","meta":{"versionId":"7","source":"#a","lastUpdated":"2020-01-01T00:00:00Z","profile":["p"]}}`,
			want: `{"resourceType":"Patient","id":"^","meta":{~"source":"#a","profile":["p"]}}`,
			id:   "1",
		},
		"versionId and lastUpdated that are not valid": {
			body: `{"resourceType":"Patient","id":"1","meta":{"versionId":{"a":[7]},"lastUpdated":"2020-01-01T00:00:00","source":"#a"}}`,
			want: `{"resourceType":"Patient","id":"^","meta":{~"source":"#a"}}`,
			id:   "1",
		},
		"escaped names and values": {
			body: `{"resourceTyp\u0065":"\u0050atient","\u0069d":"\u0041b","m\u0065ta":{"versionI\u0064":"\u0039","source":"#a"}}`,
			want: `{"resourceTyp\u0065":"\u0050atient","\u0069d":"^","m\u0065ta":{~"source":"#a"}}`,
			id:   "Ab",
		},
		"nested id and meta are left alone": {
			body: `{"resourceType":"Patient","contained":[{"resourceType":"Patient","id":"d","meta":{"source":"#s"},"link":[{"other":{"reference":"#"},"type":"seealso"}]}],"name":[{"id":"n","text":"N"}]}`,
			want: `{"resourceType":"Patient","id":"^","meta":{~},"contained":[{"resourceType":"Patient","id":"d","meta":{"source":"#s"},"link":[{"other":{"reference":"#"},"type":"seealso"}]}],"name":[{"id":"n","text":"N"}]}`,
		},
		"id and meta inside meta are left alone": {
			body: `{"resourceType":"Patient","meta":{"id":"m","versionId":"1","extension":[{"url":"u","valueMeta":{"versionId":"2"}}]}}`,
			want: `{"resourceType":"Patient","id":"^","meta":{~"id":"m","extension":[{"url":"u","valueMeta":{"versionId":"2"}}]}}`,
		},
		"numbers, escapes and white space stay": {
			body: " {\r\n\t\"resourceType\" :\"Patient\",\"extension\":[{\"url\":\"u\",\"valueDecimal\":1.50},{\"url\":\"u\",\"valueDecimal\":1e400}],\"language\":\"\\u0065n\",\"name\":[{\"text\":\"\\/\\u00e9é\\ud83d\\ude00\"} ] } \n",
			want: " {\r\n\t\"resourceType\" :\"Patient\",\"id\":\"^\",\"meta\":{~},\"extension\":[{\"url\":\"u\",\"valueDecimal\":1.50},{\"url\":\"u\",\"valueDecimal\":1e400}],\"language\":\"\\u0065n\",\"name\":[{\"text\":\"\\/\\u00e9é\\ud83d\\ude00\"} ] } \n",
		},
		"63 levels": {
			body: `{"resourceType":"Patient"` + nested(31) + `}`,
			want: `{"resourceType":"Patient","id":"^","meta":{~}` + nested(31) + `}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sent := test.body
			got, err := Read([]byte(test.body), Options{Type: "Patient"})
			if err != nil {
				t.Fatal(err)
			}
			if got.ID != test.id || got.Type != "Patient" {
				t.Errorf("id %q, type %q", got.ID, got.Type)
			}
			if diff := cmp.Diff(test.want, marked(got)); diff != "" {
				t.Error(diff)
			}
			if test.body != sent {
				t.Error("the body that was read has changed")
			}
		})
	}
}

func TestReadIgnoresTheIDOfACreate(t *testing.T) {
	for body, want := range map[string]string{
		`{"resourceType":"Patient","id":"mine","active":true}`:              `{"resourceType":"Patient","id":"^","meta":{~},"active":true}`,
		`{"id" : "not an id!", "resourceType":"Patient"}`:                   `{"id" : "^","meta":{~}, "resourceType":"Patient"}`,
		`{"resourceType":"Patient","id":7,"meta":{"source":"#s"}}`:          `{"resourceType":"Patient","id":"^","meta":{~"source":"#s"}}`,
		`{"meta":{"source":"#s"},"id":{"a":[{}]},"resourceType":"Patient"}`: `{"meta":{~"source":"#s"},"id":"^","resourceType":"Patient"}`,
		`{"resourceType":"Patient","id":null}`:                              `{"resourceType":"Patient","id":"^","meta":{~}}`,
		`{"resourceType":"Patient","name":[{"id":"a","text":"A"}]}`:         `{"resourceType":"Patient","id":"^","meta":{~},"name":[{"id":"a","text":"A"}]}`,
	} {
		got, err := Read([]byte(body), Options{Type: "Patient", IgnoreID: true})
		if err != nil || got.ID != "" {
			t.Errorf("%s: id %q, %v", body, got.ID, err)
			continue
		}
		if diff := cmp.Diff(want, marked(got)); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
	}
	for _, body := range []string{
		`{"resourceType":"Patient","id":"a","id":"b"}`,
		`{"resourceType":"Patient","id":}`,
		`{"resourceType":"Patient","contained":[{"resourceType":"Person","id":"not an id!"}]}`,
	} {
		if _, err := Read([]byte(body), Options{Type: "Patient", IgnoreID: true}); err == nil {
			t.Errorf("accepted: %s", body)
		}
	}
}

// nested is an extension inside others, so many in all.
func nested(levels int) string {
	const start, end = `,"extension":[{"url":"u"`, `}]`
	return strings.Repeat(start, levels) + `,"valueCode":"c"` + strings.Repeat(end, levels)
}

// marked shows a stored body with its two offsets.
func marked(res Resource) string {
	text := string(res.Body)
	put := func(at int, mark string) { text = text[:at] + mark + text[at:] }
	if res.IDOffset > res.MetaOffset {
		put(res.IDOffset, "^")
		put(res.MetaOffset, "~")
	} else {
		put(res.MetaOffset, "~")
		put(res.IDOffset, "^")
	}
	return text
}

func TestReadReportsIssues(t *testing.T) {
	type issue struct{ Type, Code, Expression, Diagnostics string }
	const structure, value, required = "structure", "value", "required"
	tests := map[string]struct {
		body string
		opts Options
		want []issue
	}{
		"empty": {
			body: " \n",
			want: []issue{{structure, CodeUnparseable, "", "the body is empty; send a resource in JSON"}},
		},
		"an array": {
			body: `[{"resourceType":"Patient"}]`,
			want: []issue{{structure, CodeNotAnObject, "Patient", "the body is a JSON array; send a resource as a JSON object"}},
		},
		"null": {
			body: `null`,
			want: []issue{{structure, CodeNotAnObject, "Patient", "the body is a JSON null; send a resource as a JSON object"}},
		},
		"cut off": {
			body: "{\"resourceType\":\"Patient\",\n \"name\":[{",
			want: []issue{{structure, CodeUnparseable, "Patient.name[0]", "the body is not valid JSON: it ends too early, at byte 37 (line 2, column 11)"}},
		},
		"a syntax error deep down": {
			body: "{\"resourceType\":\"Patient\",\"name\":[{\"given\":[\"a\",\n  nope]}]}",
			want: []issue{{structure, CodeUnparseable, "Patient.name[0].given[1]", "the body is not valid JSON: invalid character 'o' in literal null (expecting 'u'), at byte 52 (line 2, column 4)"}},
		},
		"a trailing comma": {
			body: `{"resourceType":"Patient",}`,
			want: []issue{{structure, CodeUnparseable, "Patient", "the body is not valid JSON: invalid character ',' at start of value, at byte 25 (line 1, column 26)"}},
		},
		"more after the end": {
			body: `{"resourceType":"Patient"} {}`,
			want: []issue{{structure, CodeUnparseable, "", "the body has more text after the resource; send one resource only"}},
		},
		"garbage after the end": {
			body: `{"resourceType":"Patient"} }`,
			want: []issue{{structure, CodeUnparseable, "Patient", "the body is not valid JSON: invalid character '}' at start of value, at byte 27 (line 1, column 28)"}},
		},
		"not UTF-8": {
			body: "{\"resourceType\":\"Patient\",\"gender\":\"\xff\"}",
			want: []issue{{structure, CodeUnparseable, "Patient.gender", "the body is not valid JSON: invalid UTF-8, at byte 36 (line 1, column 37)"}},
		},
		"a lone surrogate": {
			body: `{"resourceType":"Patient","gender":"\ud800"}`,
			want: []issue{{structure, CodeUnparseable, "Patient.gender", "the body is not valid JSON: invalid surrogate pair `\\ud800\"}` in string, at byte 36 (line 1, column 37)"}},
		},
		"doubled names, all of them": {
			body: `{"resourceType":"Patient","name":[{"text":"a","te\u0078t":"b"},{"given":["x"],"given":["y"]}],"name":[{"text":"c"}],"id":"1","id":"1"}`,
			want: []issue{
				{structure, CodeDuplicateElement, "Patient.name[0].text", `the object has two members "text"; send one`},
				{structure, CodeDuplicateElement, "Patient.name[1].given", `the object has two members "given"; send one`},
				{structure, CodeDuplicateElement, "Patient.name", `the object has two members "name"; send one`},
				{structure, CodeDuplicateElement, "Patient.id", `the object has two members "id"; send one`},
			},
		},
		"one name in two objects is not doubled": {
			body: `{"resourceType":"Patient","name":[{"text":"a"},{"text":"a"}],"contact":[{"name":{"text":"a"}}],"name":[{"text":"a"}]}`,
			want: []issue{{structure, CodeDuplicateElement, "Patient.name", `the object has two members "name"; send one`}},
		},
		"a doubled name and a syntax error": {
			body: `{"resourceType":"Patient","active":true,"active":true,"gender":}`,
			want: []issue{
				{structure, CodeDuplicateElement, "Patient.active", `the object has two members "active"; send one`},
				{structure, CodeUnparseable, "Patient.gender", "the body is not valid JSON: invalid character '}' at start of value, at byte 63 (line 1, column 64)"},
			},
		},
		"names that FHIRPath must quote": {
			body: "{\"resourceType\":\"Patient\",\"name\":[{\"c`\\\\ d\":1}]}",
			want: []issue{{structure, CodeUnknownElement, "Patient.name[0].`c\\`\\\\ d`", "HumanName has no element \"c`\\\\ d\"; correct its name or omit it"}},
		},
		"too deep": {
			body: `{"resourceType":"Patient"` + nested(32) + `}`,
			want: []issue{{structure, CodeTooDeep, "Patient" + strings.Repeat(".extension[0]", 32), "objects and arrays in the body are nested deeper than 64 levels; send fewer levels"}},
		},
		"everything wrong at once": {
			body: `{"id":"a b","meta":null,"resourceType":"Device"}`,
			want: []issue{
				{value, CodeInvalidID, "Patient.id", `id "a b" is not an id: 1 to 64 of the characters A-Z, a-z, 0-9, '-' and '.'`},
				{structure, CodeWrongKind, "Patient.meta", "meta is null; it must be an object"},
				{value, CodeResourceMismatch, "Patient.resourceType", `the resourceType is "Device"; this URL requires "Patient"`},
			},
		},
		"everything of the wrong kind": {
			body: `{"id":null,"meta":[{}],"resourceType":{"resourceType":"Patient"}}`,
			want: []issue{
				{structure, CodeWrongKind, "Patient.id", "id is null; it must be a string"},
				{structure, CodeWrongKind, "Patient.meta", "meta is an array; it must be an object"},
				{structure, CodeWrongKind, "Patient.resourceType", "resourceType is an object; it must be a string"},
			},
		},
		"empty object": {
			body: `{}`,
			want: []issue{{required, CodeMissingElement, "Patient.resourceType", `resourceType is missing; send "Patient"`}},
		},
		"empty id": {
			body: `{"resourceType":"Patient","id":""}`,
			want: []issue{{value, CodeInvalidID, "Patient.id", `id "" is not an id: 1 to 64 of the characters A-Z, a-z, 0-9, '-' and '.'`}},
		},
		"mandatory elements": {
			body: `{"resourceType":"Endpoint","_status":{"extension":[{"url":"u","valueCode":"unknown"}]}}`,
			opts: Options{Type: "Endpoint"},
			want: []issue{
				{required, CodeMissingElement, "Endpoint.connectionType", "the required element connectionType is missing; send it"},
				{required, CodeMissingElement, "Endpoint.payloadType", "the required element payloadType is missing; send it"},
				{required, CodeMissingElement, "Endpoint.address", "the required element address is missing; send it"},
			},
		},
		"mandatory elements made optional": {
			body: `{"resourceType":"Endpoint"}`,
			opts: Options{Type: "Endpoint", Optional: []string{"Endpoint.status", "Endpoint.address"}},
			want: []issue{
				{required, CodeMissingElement, "Endpoint.connectionType", "the required element connectionType is missing; send it"},
				{required, CodeMissingElement, "Endpoint.payloadType", "the required element payloadType is missing; send it"},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			opts := test.opts
			if opts.Type == "" {
				opts.Type = "Patient"
			}
			_, err := Read([]byte(test.body), opts)
			var issues Errors
			if !errors.As(err, &issues) {
				t.Fatalf("got %v, want issues", err)
			}
			var got []issue
			for _, i := range issues {
				if i.Severity != SeverityError {
					t.Errorf("severity %s of %s", i.Severity, i.Diagnostics)
				}
				got = append(got, issue{string(i.Type), i.Code, i.Expression, i.Diagnostics})
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadBoundsIssues(t *testing.T) {
	long := strings.Repeat("x", 1<<16)
	body := `{"resourceType":"Patient",` + strings.Repeat(`"`+long+`":1,`, 60) + `"y":1}`
	_, err := Read([]byte(body), Options{Type: "Patient"})
	var issues Errors
	if !errors.As(err, &issues) || len(issues) != maxIssues {
		t.Fatalf("got %d issues, want %d", len(issues), maxIssues)
	}
	if last := issues[maxIssues-1]; last.Code != CodeTooManyIssues {
		t.Errorf("the last issue is %+v", last)
	}
	if size := len(issues.Error()); size > 20_000 {
		t.Errorf("issues take %d bytes", size)
	}
}

func TestReadAfterAFailure(t *testing.T) {
	if _, err := Read([]byte(`{"a":1,"a":2`), Options{Type: "Patient"}); err == nil {
		t.Fatal("a broken body was taken")
	}
	got, err := Read([]byte(`{"resourceType":"Person","meta":{"versionId":"1"}}`), Options{Type: "Person"})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"resourceType":"Person","id":"^","meta":{~}}`; marked(got) != want {
		t.Errorf("got %s", marked(got))
	}
}

func TestTypeOf(t *testing.T) {
	for _, want := range Types {
		for _, spelling := range []string{want.Name, want.Segment} {
			if got, ok := TypeOf(spelling); !ok || got != want {
				t.Errorf("TypeOf(%q) = %v, %v", spelling, got, ok)
			}
		}
		if want.Resource != strings.ToLower(want.Name)+"s" {
			t.Errorf("%s has the resource %q", want.Name, want.Resource)
		}
	}
	for _, spelling := range []string{"", "PATIENT", "patients", "practitionerrole", "metadata", "_history"} {
		if _, ok := TypeOf(spelling); ok {
			t.Errorf("%q is no type", spelling)
		}
	}
}

func TestValidID(t *testing.T) {
	valid := []string{"a", "A.b-9", "-", ".", strings.Repeat("x", 64)}
	invalid := []string{"", "a b", "a_b", "é", "a/b", "a\n", strings.Repeat("x", 65)}
	for _, id := range valid {
		if !ValidID(id) {
			t.Errorf("%q is a valid id", id)
		}
	}
	for _, id := range invalid {
		if ValidID(id) {
			t.Errorf("%q is not a valid id", id)
		}
	}
}
