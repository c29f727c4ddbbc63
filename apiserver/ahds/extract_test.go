package ahds

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/store"
)

// TestExtract checks the values of each kind of record. A change of a wanted result requires a
// higher extraction.Version.
func TestExtract(t *testing.T) {
	token := func(param, system, code string) store.IndexValue {
		return store.IndexValue{Param: param, Value: store.Token{System: system, Code: code}}
	}
	text := func(param, folded string) store.IndexValue {
		return store.IndexValue{Param: param, Value: store.Text{Folded: folded, Original: folded}}
	}
	period := func(param string, from, until int64) store.IndexValue {
		return store.IndexValue{Param: param, Value: store.Period{From: from, Until: until}}
	}
	const (
		location = "0198c4f2-7d1e-7c3a-9b5f-00000000000a"
		resource = "0198c4f2-7d1e-7c3a-9b5f-00000000000b"
	)
	tests := map[string]struct {
		kind *kind
		text string
		want []store.IndexValue
	}{
		"a slot": {
			slots, `{"startAt":"1970-01-01T05:45:01+05:45","endAt":"1970-01-01T00:00:02.5Z","isBooked":true,"locationId":"0198C4F2-7d1e-7c3a-9b5f-00000000000a",` +
				`"resourceId":"` + resource + `","serviceType":{"code":"Vax","system":"urn:s:1"},"notes":"Straße"}`,
			[]store.IndexValue{
				token("isActive", "", "true"), token("isBooked", "", "true"), token("locationId", "", location), token("resourceId", "", resource),
				text("locationId", location), text("resourceId", resource), period("time", 1_000_000, 2_500_000), period("endAt", 2_500_000, 2_500_001),
				token("serviceType", "urn:s:1", "Vax"), text("notes", "strasse"),
			},
		},
		"a slot without what may be left out": {
			slots, `{"startAt":"1970-01-01T00:00:00Z","endAt":"1970-01-01T00:00:01Z","isActive":false,"locationId":"` + location + `","resourceId":"` + resource + `"}`,
			[]store.IndexValue{
				token("isActive", "", "false"), token("isBooked", "", "false"), token("locationId", "", location), token("resourceId", "", resource),
				text("locationId", location), text("resourceId", resource), period("time", 0, 1_000_000), period("endAt", 1_000_000, 1_000_001),
			},
		},
		"an event group": {
			eventGroups, `{"name":"Spring","status":"active","category":"Campaign","description":"Every YEAR","locationId":"L.1","organizationId":"O.1"}`,
			[]store.IndexValue{
				text("name", "spring"), token("status", "", "active"), text("status", "active"), token("category", "", "Campaign"), text("category", "campaign"),
				text("description", "every year"), token("locationId", "", "l.1"), token("organizationId", "", "o.1"),
			},
		},
		"a feed": {feeds, `{"resourceId":"0198C4F2-7d1e-7c3a-9b5f-00000000000b"}`, []store.IndexValue{token("resourceId", "", resource)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			content, _, err := test.kind.fields.Create(mustParse(t, test.text), schema.Identity{Name: test.kind.idField})
			if err != nil {
				t.Fatal(err)
			}
			body, err := test.kind.encode(stored{content: content})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, Extract(test.kind.recordType, body.JSON)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if Has("Patient") || len(Extract("Patient", []byte(`{}`))) > 0 || len(Extract("EventGroup", []byte(`{`))) > 0 {
		t.Error("other records have values too")
	}
}
