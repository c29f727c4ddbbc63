package event

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/events"
)

// places returns field errors as part of the request, location and code.
func places(err error) []string {
	var errs fielderror.Errors
	if err != nil && !errors.As(err, &errs) {
		return []string{"not fielderror.Errors: " + err.Error()}
	}
	var said []string
	for _, f := range errs {
		said = append(said, []string{"body ", "parameter ", "header "}[f.In]+f.At+" "+f.Code)
	}
	return said
}

// maxEvents is the maximum number of events of a request in these tests.
const maxEvents = 500

func TestCloudEvents(t *testing.T) {
	const attributes = `"specversion":"1.0","id":"7","source":"/clinic/1","type":"user.created"`
	want := events.Published{
		ID: idOf("/clinic/1", "7"), Type: "user.created", Subject: "Practitioner/1", OccurredAt: []byte(`"2026-03-01T09:30:00+10:00"`),
		ChangedFields: []string{"name", "active"}, Data: []byte(`{"a":1.50}`),
	}
	const all = attributes + `,"subject":"Practitioner/1","time":"2026-03-01T09:30:00+10:00","changedfields":"name, active","datacontenttype":"application/fhir+json; charset=utf-8","x":"y"`
	header := map[string][]string{
		"Ce-Specversion": {"1.0"}, "Ce-Id": {"7"}, "Ce-Source": {"/clinic/1"}, "Ce-Type": {"user.created"}, "Ce-Subject": {"Practitioner%2F1"},
		"Ce-Time": {"2026-03-01T09:30:00+10:00"}, "Ce-Changedfields": {"name,active"}, "Ce-X": {"y"}, "Accept": {"*/*"},
	}
	change := func(name string, values ...string) map[string][]string {
		changed := map[string][]string{name: values}
		for other, kept := range header {
			if other != name {
				changed[other] = kept
			}
		}
		if values == nil {
			delete(changed, name)
		}
		return changed
	}
	structured := func(text string) func() ([]Sent, error) {
		return func() ([]Sent, error) { return ParseCloudEvent([]byte(text)) }
	}
	batched := func(text string) func() ([]Sent, error) {
		return func() ([]Sent, error) { return ParseCloudEvents([]byte(text), maxEvents) }
	}
	binary := func(header map[string][]string, text string) func() ([]Sent, error) {
		return func() ([]Sent, error) { return ParseBinary(header, []byte(text)) }
	}
	for name, test := range map[string]struct {
		parse func() ([]Sent, error)
		want  []events.Published
		wrong []string
	}{
		"structured":             {structured(`{` + all + `,"data":{"a": 1.50}}`), []events.Published{want}, nil},
		"data first":             {structured(`{"data":{"a": 1.50},` + all + `}`), []events.Published{want}, nil},
		"batched":                {batched(`[{` + all + `,"data":{"a":1.50}}, {"data":{"a":1.50},` + all + `}]`), []events.Published{want, want}, nil},
		"binary":                 {binary(header, `{"a": 1.50}`), []events.Published{want}, nil},
		"few attributes":         {structured(`{` + attributes + `,"data":{}}`), []events.Published{{ID: want.ID, Type: "user.created", Data: []byte("{}")}}, nil},
		"no id, no source":       {structured(`{"specversion":"1.0","type":"user.created","data":{}}`), nil, []string{"body /id invalid_value", "body /source invalid_value"}},
		"another version":        {structured(`{"specversion":"0.3","id":"7","source":"/x","type":"user.created","data":{}}`), nil, []string{"body /specversion invalid_value"}},
		"no version":             {structured(`{"id":"7","source":"/x","type":"user.created","data":{}}`), nil, []string{"body /specversion invalid_value"}},
		"an id as a number":      {structured(`{"specversion":"1.0","id":7,"source":"/x","type":"user.created","data":{}}`), nil, []string{"body /id wrong_type"}},
		"a source as an object":  {structured(`{"source":{},"specversion":"1.0","id":"7","type":"user.created","data":{}}`), nil, []string{"body /source wrong_type"}},
		"a bad source":           {structured(`{"specversion":"1.0","id":"7","source":"%zz","type":"user.created","data":{}}`), nil, []string{"body /source invalid_value"}},
		"a bad source, first":    {structured(`{"source":"%zz","specversion":"1.0","id":"7","type":"user.created","data":{}}`), nil, []string{"body /source invalid_value"}},
		"an empty source":        {structured(`{"specversion":"1.0","id":"7","source":"","type":"user.created","data":{}}`), nil, []string{"body /source invalid_value"}},
		"a bad time":             {structured(`{` + attributes + `,"time":"now","data":{}}`), nil, []string{"body /time invalid_value"}},
		"a time as a number":     {structured(`{` + attributes + `,"time":1772357400,"data":{}}`), nil, []string{"body /time wrong_type"}},
		"null as the subject":    {structured(`{` + attributes + `,"subject":null,"time":null,"x":null,"data":{}}`), []events.Published{{ID: want.ID, Type: "user.created", Data: []byte("{}")}}, nil},
		"a bad name":             {structured(`{` + attributes + `,"a-b":"c","data":{}}`), nil, []string{"body /a-b invalid_value"}},
		"a bad name, first":      {structured(`{"a/b":"c",` + attributes + `,"data":{}}`), nil, []string{"body /a~1b invalid_value"}},
		"another spelling":       {structured(`{` + attributes + `,"Subject":"a","data":{}}`), nil, []string{"body /Subject invalid_value"}},
		"an extension's object":  {structured(`{` + attributes + `,"x":{},"data":{}}`), nil, []string{"body /x wrong_type"}},
		"extensions of any type": {structured(`{` + attributes + `,"x":true,"y":7,"z":"é","data":{}}`), []events.Published{{ID: want.ID, Type: "user.created", Data: []byte("{}")}}, nil},
		"a large extension":      {structured(`{` + attributes + `,"x":99999999999,"data":{}}`), nil, []string{"body /x invalid_value"}},
		"a list of fields":       {structured(`{` + attributes + `,"changedfields":["a"],"data":{}}`), nil, []string{"body /changedfields wrong_type"}},
		"several at once":        {batched(`[{"specversion":"1.0","id":7,"source":"%zz","type":"user.created","time":"now","data":{}}]`), nil, []string{"body /0/id wrong_type", "body /0/source invalid_value", "body /0/time invalid_value"}},
		"binary data":            {structured(`{` + attributes + `,"data_base64":"e30="}`), nil, []string{"body /data_base64 unknown_field"}},
		"data of another type":   {structured(`{` + attributes + `,"datacontenttype":"text/xml","data":"<a/>"}`), nil, []string{"body /datacontenttype invalid_value"}},
		"no data":                {structured(`{` + attributes + `}`), nil, []string{"body /data missing_field"}},
		"data that is no object": {structured(`{` + attributes + `,"data":[1]}`), nil, []string{"body /data wrong_type"}},
		"an unknown type":        {structured(`{"specversion":"1.0","id":"7","source":"/x","type":"a.b","data":{}}`), nil, []string{"body /type invalid_value"}},
		"an empty name":          {structured(`{"":1,` + attributes + `,"data":{}}`), nil, []string{"body / unknown_field"}},
		"an array as one":        {structured(`[]`), nil, []string{"body  wrong_type"}},
		"one as an array":        {batched(`{}`), nil, []string{"body  wrong_type"}},
		"faults in a batch": {
			batched(`[{` + attributes + `,"data":{}},{"specversion":"1.0","id":"7","source":"/x","type":"a.b","changedfields":"a,","data":7}]`), nil,
			[]string{"body /1/type invalid_value", "body /1/changedfields/1 invalid_value", "body /1/data wrong_type"},
		},
		"binary, twice":           {binary(change("Ce-Id", "7", "8"), `{}`), nil, []string{"header ce-id invalid_header"}},
		"binary, no source":       {binary(change("Ce-Source"), `{}`), nil, []string{"header ce-source invalid_value"}},
		"binary, an unknown type": {binary(change("Ce-Type", "a.b"), `{}`), nil, []string{"header ce-type invalid_value"}},
		"binary, a bad time":      {binary(change("Ce-Time", "now"), `{}`), nil, []string{"header ce-time invalid_header"}},
		"binary, a bad encoding":  {binary(change("Ce-Subject", "%zz"), `{}`), nil, []string{"header ce-subject invalid_header"}},
		"a control character":     {structured(`{` + attributes + `,"subject":"a\u001b[2J","data":{}}`), nil, []string{"body /subject invalid_value"}},
		"one that is trimmed":     {structured(`{` + attributes + `,"subject":"a\n","data":{}}`), nil, []string{"body /subject invalid_value"}},
		"one in an id":            {structured(`{"specversion":"1.0","id":"7\u0000","source":"/x","type":"user.created","data":{}}`), nil, []string{"body /id invalid_value"}},
		"one in a source":         {structured(`{"specversion":"1.0","id":"7","source":"/x\u009b","type":"user.created","data":{}}`), nil, []string{"body /source invalid_value"}},
		"one in a type":           {structured(`{"specversion":"1.0","id":"7","source":"/x","type":"user.created\u007f","data":{}}`), nil, []string{"body /type invalid_value"}},
		"one in an extension":     {batched(`[{` + attributes + `,"data":{}},{` + attributes + `,"traceparent":"a\tb","data":{}}]`), nil, []string{"body /1/traceparent invalid_value"}},
		"one in the data":         {structured(`{` + attributes + `,"data":{"a":"\u001b"}}`), []events.Published{{ID: want.ID, Type: "user.created", Data: []byte(`{"a":"\u001b"}`)}}, nil},
		"binary, one in a field":  {binary(change("Ce-Subject", "a%1B%5B2J"), `{}`), nil, []string{"header ce-subject invalid_header"}},
		"binary, a tab":           {binary(change("Ce-X", "a\tb"), `{}`), nil, []string{"header ce-x invalid_header"}},
		"binary, no object":       {binary(header, `[]`), nil, []string{"body  wrong_type"}},
	} {
		t.Run(name, func(t *testing.T) {
			sent, err := test.parse()
			var got []events.Published
			if err == nil {
				got, err = Read(sent)
			}
			if diff := cmp.Diff(test.wrong, places(err)); diff != "" {
				t.Fatalf("%v: %s", err, diff)
			}
			if err == nil {
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestIDsOfCloudEvents(t *testing.T) {
	const id = "0198c4f2-7d1e-7c3a-9b5f-000000000001"
	if idOf("/a", id) != id {
		t.Error("a UUID does not stay")
	}
	if first := idOf("/a", "1"); first == idOf("/b", "1") || first == idOf("/a", "2") {
		t.Error("ids do not tell sources and ids apart")
	}
}

func TestKeys(t *testing.T) {
	seen := map[string]string{}
	for _, id := range []string{"a", "A", "a/b", "0198c4f2-7d1e-7c3a-9b5f-00000000000a", "0198C4F2-7d1e-7c3a-9b5f-00000000000a", strings.Repeat("x", 128)} {
		key := KeyOf(id)
		if other, twice := seen[strings.ToLower(key.ID)]; twice {
			t.Errorf("%s and %s have one key", id, other)
		}
		if key.Type != Type || key.ID != strings.ToLower(key.ID) || len(key.ID) > 64 {
			t.Errorf("%s has the key %v", id, key)
		}
		seen[strings.ToLower(key.ID)] = id
	}
}

// TestControlCharacters parses events of the API's own format.
func TestControlCharacters(t *testing.T) {
	for subject, wrong := range map[string]bool{
		`Consult/1`: false, `é \u00a0 \u2028`: false, `\u0000`: true, `a\u001b]0;x\u0007`: true, `a\r\nb`: true, `\u007f`: true, `\u0080`: true, `\u009f`: true,
	} {
		sent, _, err := Parse([]byte(`[{"type":"user.created","data":{}},{"type":"user.created","subject":"`+subject+`","data":{}}]`), maxEvents)
		if err == nil {
			_, err = Read(sent)
		}
		var want []string
		if wrong {
			want = []string{"body /1/subject invalid_value"}
		}
		if diff := cmp.Diff(want, places(err)); diff != "" {
			t.Errorf("%s: %v: %s", subject, err, diff)
		}
	}
}

// FuzzParse reads any body in each form: what is taken has an envelope's fields in bounds and is
// found to be the same when it is read again.
func FuzzParse(f *testing.F) {
	f.Fuzz(func(t *testing.T, form uint8, body []byte) {
		parse := func() ([]Sent, error) {
			switch form % 4 {
			case 0:
				sent, _, err := Parse(body, maxEvents)
				return sent, err
			case 1:
				return ParseCloudEvent(body)
			case 2:
				return ParseCloudEvents(body, maxEvents)
			default:
				return ParseBinary(map[string][]string{"Ce-Specversion": {"1.0"}, "Ce-Id": {"1"}, "Ce-Source": {"/a"}, "Ce-Type": {"user.created"}}, body)
			}
		}
		sent, err := parse()
		if err != nil {
			if len(fielderror.Of(err)) == 0 {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		published, err := Read(sent)
		if err != nil {
			return
		}
		if len(published) < 1 || len(published) > maxEvents {
			t.Fatalf("%q has %d events", body, len(published))
		}
		again, err := parse()
		if err != nil {
			t.Fatal(err)
		}
		repeated, err := Read(again)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range published {
			if _, known := events.TypeOf(p.Type); !known || len(p.ID) > 128 || !json.Valid(p.Data) || p.Data.Kind() != '{' || Fingerprint(p) != Fingerprint(repeated[i]) {
				t.Fatalf("%q is taken as %+v", body, p)
			}
		}
		if _, err := Twice(sent, published); err != nil && len(published) == 1 {
			t.Fatal(err)
		}
	})
}
