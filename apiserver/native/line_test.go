package native

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/store"
)

func dumped() store.Dumped {
	at := time.Date(2031, 3, 1, 8, 0, 0, 120e6, time.UTC)
	first := store.Record{
		Key: store.Key{Type: "Patient", ID: "R\"ex"}, Version: 1, Created: at, Updated: at, Method: store.MethodPost,
		Body: store.Body{JSON: []byte(`{"resourceType":"Patient","id":"","meta":{} , "x":"<ü>"}`), IDOffset: 30, MetaOffset: 41},
	}
	second := first
	second.Version, second.Updated, second.Method = 2, at.Add(time.Second), store.MethodPut
	second.Body.JSON = []byte("{\"resourceType\":\"Patient\",\"id\":\"\",\"meta\":{},\n\"x\":1}")
	second.Claims = []store.Claim{{Line: "room 1", From: at, Until: at.Add(time.Hour)}, {Line: "n <é>", Expires: at.Add(time.Microsecond)}}
	second.Metadata, second.MetadataVersion = []byte(`{"labels":{"a":"b"}}`), 1
	return store.Dumped{Key: first.Key, Versions: []store.Record{first, second}}
}

func TestLine(t *testing.T) {
	d := dumped()
	line := appendLine(nil, &d, 0)
	if bytes.Count(line, []byte("\n")) != 1 || !bytes.HasSuffix(line, []byte("}\n")) {
		t.Errorf("not one line: %s", line)
	}
	got, err := parseLine(line)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, got); diff != "" {
		t.Errorf("the record that was parsed (-want +got):\n%s", diff)
	}
	if err := got.Check(); err != nil {
		t.Error(err)
	}
	const want = `{"type":"Patient","id":"R\"ex","versions":[{"version":1,"created":"2031-03-01T08:00:00.120Z","updated":"2031-03-01T08:00:00.120Z","method":"POST","idOffset":30,"metaOffset":41,"body":{"resourceType":"Patient","id":"","meta":{} , "x":"<ü>"}},`
	if !strings.HasPrefix(string(line), want) {
		t.Errorf("got %s, want the prefix %s", line, want)
	}
}

func TestLineOfTombstone(t *testing.T) {
	d := dumped()
	d.Versions = d.Versions[:1]
	gone := d.Versions[0]
	gone.Version, gone.Updated, gone.Method, gone.Deleted, gone.Body = 2, gone.Updated.Add(time.Millisecond), store.MethodDelete, true, store.Body{}
	d.Versions = append(d.Versions, gone)
	got, err := parseLine(appendLine(nil, &d, 0))
	if diff := cmp.Diff(d, got); diff != "" || err != nil {
		t.Errorf("error %v, (-want +got):\n%s", err, diff)
	}
}

// TestCheckAllocations checks that a long list of invalid elements takes no memory.
func TestCheckAllocations(t *testing.T) {
	h := &handler{Config: Config{CheckBody: func(store.Key, store.Body) []Problem { return nil }}}
	d := dumped()
	valid := string(appendLine(nil, &d, 0))
	for _, member := range []string{"versions", "claims"} {
		begin := `"` + member + `":[`
		text := []byte(strings.Replace(valid, begin, begin+strings.Repeat("{},", 100_000), 1))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, errs := h.check(text)
		runtime.ReadMemStats(&after)
		if len(errs) != 1 || errs[0].Code != codeInvalid || !strings.HasPrefix(errs[0].Expression, member+"[0]") {
			t.Errorf("%s: got %+v", member, errs)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 1<<20 {
			t.Errorf("%s: %d bytes were allocated", member, allocated)
		}
	}
}

func TestCheck(t *testing.T) {
	accept := &handler{Config: Config{CheckBody: func(store.Key, store.Body) []Problem { return nil }}}
	d := dumped()
	valid := string(appendLine(nil, &d, 0))
	for name, test := range map[string]struct{ old, new, code, expression string }{
		"valid":                  {},
		"no JSON":                {`{"type"`, `{type`, codeUnparseable, ""},
		"unknown member":         {`"claims"`, `"clams"`, codeUnparseable, ""},
		"no type":                {`"type":"Patient"`, `"type":""`, codeInvalid, "type"},
		"a job":                  {`"type":"Patient"`, `"type":"` + store.JobType + `"`, codeInvalid, "type"},
		"version 0":              {`"version":1`, `"version":0`, codeInvalid, "versions[0].version"},
		"version twice":          {`"version":2`, `"version":1`, codeInvalid, "versions[1].version"},
		"times descend":          {`"updated":"2031-03-01T08:00:01.120Z"`, `"updated":"2031-03-01T08:00:00.120Z"`, codeInvalid, "versions[1].updated"},
		"updated before created": {`"updated":"2031-03-01T08:00:00.120Z"`, `"updated":"2031-03-01T07:00:00.120Z"`, codeInvalid, "versions[0].updated"},
		"microseconds":           {`"created":"2031-03-01T08:00:00.120Z"`, `"created":"2031-03-01T08:00:00.120001Z"`, codeInvalid, "versions[0].created"},
		"too early":              {`"created":"2031-03-01T08:00:00.120Z"`, `"created":"2001-03-01T08:00:00.120Z"`, codeInvalid, "versions[0].created"},
		"deleted with a body":    {`"method":"PUT"`, `"method":"PUT","deleted":true`, codeInvalid, "versions[1].body"},
		"unknown method":         {`"method":"PUT"`, `"method":"put"`, codeInvalid, "versions[1].method"},
		"no method":              {`"method":"PUT"`, `"method":""`, "", ""},
		"claim without a line":   {`"line":"room 1"`, `"line":""`, codeInvalid, "claims[0]"},
		"equal claims":           {`"claims":[`, `"claims":[{"line":"room 1","from":"2031-03-01T08:00:00Z"},{"line":"room 1","from":"2031-03-01T08:00:00Z"},`, codeInvalid, "claims[1]"},
		"claims twice":           {`"claims":[`, `"claims":[{"line":"room 1"}],"claims":[`, "", ""},
		"metadata of no version": {`"metadataVersion":1`, `"metadataVersion":3`, codeInvalid, "metadataVersion"},
	} {
		t.Run(name, func(t *testing.T) {
			line := strings.Replace(valid, test.old, test.new, 1)
			if test.old != "" && line == valid {
				t.Fatal("the line did not change")
			}
			_, errs := accept.check([]byte(line))
			if test.code == "" {
				if len(errs) > 0 {
					t.Errorf("errors %+v", errs)
				}
				return
			}
			if len(errs) != 1 || errs[0].Code != test.code || errs[0].Expression != test.expression {
				t.Errorf("got %+v, want one with code %s at %q", errs, test.code, test.expression)
			}
		})
	}
	reject := &handler{Config: Config{CheckBody: func(store.Key, store.Body) []Problem { return []Problem{{"Patient.x", "bad", "no"}} }}}
	_, errs := reject.check([]byte(valid))
	want := []lineError{{0, "bad", "versions[0].Patient.x", "no"}, {0, "bad", "versions[1].Patient.x", "no"}}
	if diff := cmp.Diff(want, errs); diff != "" {
		t.Errorf("errors of bodies (-want +got):\n%s", diff)
	}
	_, errs = reject.check([]byte(`{"type":"Patient","id":"Rex","versions":[{"version":2,"created":"2031-03-01T08:00:00Z","updated":"2031-03-01T08:00:00Z","method":"DELETE","deleted":true}]}`))
	if diff := cmp.Diff(want[:1], errs); diff != "" {
		t.Errorf("errors of a deleted record (-want +got):\n%s", diff)
	}
}
