package search

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/store"
)

func TestParseEverything(t *testing.T) {
	opts := Options{Type: "Patient", Everything: "Rex"}
	parsed := func(query string) Query {
		t.Helper()
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		q, err := ParseEverything(values, opts)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}

	all := parsed("")
	if diff := cmp.Diff(namesOfTypes(), all.Types); diff != "" || all.Where != nil || all.ReachedTypes != nil {
		t.Errorf("got types that differ (-want +got):\n%s where %v, reached types %v", diff, all.Where, all.ReachedTypes)
	}
	if diff := cmp.Diff([]store.Sort{{Field: store.SortCreated}}, all.Sort); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	self := store.IDIn{"rex"}
	refers := func(param string) store.Condition {
		return store.RefersTo{Param: param, To: store.Reference{Type: "Patient", ID: "rex"}}
	}
	patients := store.Any{self, refers("link")}
	linked := store.ReferredBy{Type: "Patient", Param: "link", Where: self}
	want := map[string]store.Condition{
		"Patient":       store.Any{patients, linked},
		"RelatedPerson": store.Any{refers("patient"), linked},
		"Device":        refers("patient"),
		"Group":         refers("member"),
		"Person":        refers("patient"),
		"Location":      store.Any{store.ReferredBy{Type: "Device", Param: "location", Where: refers("patient")}},
		"Organization": store.Any{
			store.ReferredBy{Type: "Device", Param: "organization", Where: refers("patient")},
			store.ReferredBy{Type: "Group", Param: "managing-entity", Where: refers("member")},
			store.ReferredBy{Type: "Patient", Param: "general-practitioner", Where: patients},
			store.ReferredBy{Type: "Patient", Param: "organization", Where: patients},
			store.ReferredBy{Type: "Person", Param: "organization", Where: refers("patient")},
		},
		"DeviceMetric": store.Any{},
	}
	for typeName, condition := range want {
		if diff := cmp.Diff(condition, all.ByType[typeName]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", typeName, diff)
		}
	}

	some := parsed("_type=Location,person&_type=Location&_since=2026-03-01T10:00:00%2B01:00&_count=2")
	if diff := cmp.Diff([]string{"Location", "Person"}, some.Types); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Device", "Group", "Patient", "RelatedPerson"}, some.ReachedTypes); diff != "" {
		t.Errorf("the other types that affect the result (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(store.UpdatedIn{From: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}, some.Where.(store.All)[0].(store.UpdatedIn), cmp.Comparer(time.Time.Equal)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, want := some.Encode(""), "_count=2&_since=2026-03-01T10%3A00%3A00%2B01%3A00&_type=Location%2Cperson%2CLocation"; got != want || some.Count != 2 {
		t.Errorf("got %s and a count of %d, want %s", got, some.Count, want)
	}
}

func TestParseEverythingRejects(t *testing.T) {
	for query, want := range map[string]string{
		"start=2026":          `parameter "start": "start" is not known for $everything; supported parameters: _count, _elements, _format, _page_token, _pretty, _since, _summary, _type`,
		"name=x":              `"name" is not known for $everything`,
		"_include=*":          `"_include" is not known for $everything`,
		"_type=Observation":   `parameter "_type": "Observation" is not a supported resource type`,
		"_count=x":            `parameter "_count": "x" is not a number of items`,
		"_since=yesterday":    `parameter "_since": "yesterday"`,
		"_since=2026&_since=": "", // an empty value counts as absent
		"_count=1&_count=2":   `parameter "_count": the parameter is given more than once`,
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		_, err = ParseEverything(values, Options{Everything: "rex"})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got error %v, want %q", query, err, want)
		}
	}
	q, err := ParseEverything(url.Values{"start": {"2026"}}, Options{Everything: "rex", Lenient: true})
	if err != nil || len(q.Ignored) != 1 {
		t.Errorf("got %v and ignored %v, want start ignored", err, q.Ignored)
	}
}
