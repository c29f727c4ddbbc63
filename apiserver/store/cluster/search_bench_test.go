package cluster

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

const benchRecords = 10_000

// benchEntries returns as many values as a Patient of a practice has.
func benchEntries(n int) []store.IndexValue {
	entries := []store.IndexValue{
		{Param: "identifier", Value: store.Token{System: "https://clinic.example.org/patients", Code: fmt.Sprintf("p-%07d", n)}},
		{Param: "identifier", Value: store.Token{System: "urn:oid:1.2.36.146.595.217.0.1", Code: fmt.Sprintf("9851%011d", n)}},
		{Param: "gender", Value: store.Token{System: "http://hl7.org/fhir/administrative-gender", Code: []string{"male", "female"}[n%2]}},
		{Param: "active", Value: store.Token{Code: "true"}},
		{Param: "birthdate", Value: store.Period{From: int64(n%3000) * 86_400_000_000, Until: int64(n%3000+1) * 86_400_000_000}},
		{Param: "general-practitioner", Value: store.Reference{Type: "Practitioner", ID: fmt.Sprintf("vet-%d", n%300)}},
		{Param: "species", Value: store.Token{System: "http://hl7.org/fhir/animal-species", Code: "canislf"}},
		{Param: "telecom", Value: store.Token{System: "phone", Code: fmt.Sprintf("+61 3 5550 %04d", n)}},
	}
	for _, param := range []string{"family", "name", "given"} {
		entries = append(entries, store.IndexValue{Param: param, Value: store.Text{Folded: fmt.Sprintf("okafor-%d", n%97), Original: fmt.Sprintf("Okafor-%d", n%97)}})
	}
	return entries
}

func benchSite(b *testing.B) *Store {
	b.Helper()
	number := 0
	engine := &Cluster{synced: make(chan struct{}), queryTimeout: time.Minute}
	close(engine.synced)
	site := &Store{engine: engine, index: newIndex(extracting{extract: func(recordType string) []store.IndexValue {
		if recordType == "Practitioner" {
			return []store.IndexValue{{Param: "family", Value: store.Text{Folded: fmt.Sprintf("smith-%d", number), Original: "Smith"}}}
		}
		return benchEntries(number)
	}})}
	add := func(typeName, id string, n int) {
		number = n
		obj := &recordsv1.Record{ObjectMeta: metav1.ObjectMeta{Name: recordName(store.Key{Type: typeName, ID: id}), UID: types.UID(typeName + id), ResourceVersion: fmt.Sprint(n + 1)}}
		obj.Spec = recordsv1.RecordSpec{Type: typeName, ID: id, Created: metav1.NewMicroTime(time.UnixMilli(int64(n))), Body: `{"resourceType":"Patient"}`}
		obj.Spec.Updated = obj.Spec.Created
		site.index.apply(obj)
	}
	for n := range 300 {
		add("Practitioner", fmt.Sprintf("vet-%d", n), n)
	}
	for n := range benchRecords {
		add("Patient", fmt.Sprintf("p-%d", n), n)
	}
	return site
}

func BenchmarkSearch(b *testing.B) {
	site := benchSite(b)
	newest := []store.Sort{{Field: store.SortCreated, Descending: true}}
	deep := store.Query{Types: []string{"Patient"}, Count: 20, Sort: newest, Total: store.TotalNone}
	for range 399 {
		page, err := site.Search(context.Background(), deep)
		if err != nil {
			b.Fatal(err)
		}
		deep.After = page.Next
	}
	for name, query := range map[string]store.Query{
		"one by identifier": {Where: store.TokenIs{Param: "identifier", Code: new("p-0005000")}},
		"prefix":            {Where: store.TextIs{Param: "family", Text: "okafor-1"}},
		"two filters": {Where: store.All{
			store.TokenIs{Param: "gender", Code: new("male")},
			store.PeriodIs{Param: "birthdate", From: store.Bounds{Least: 0, Most: 300 * 86_400_000_000}, Until: store.Unbounded},
		}},
		"chained":       {Where: store.Chain{Param: "general-practitioner", Type: "Practitioner", Where: store.TextIs{Param: "family", Text: "smith-17"}}},
		"referred by":   {Types: []string{"Practitioner"}, Where: store.ReferredBy{Type: "Patient", Param: "general-practitioner", Where: store.TextIs{Param: "family", Text: "okafor-17"}}},
		"sorted":        {Sort: []store.Sort{{Field: store.SortText, Param: "family"}}},
		"sorted by two": {Sort: []store.Sort{{Field: store.SortText, Param: "family"}, {Field: store.SortPeriod, Param: "birthdate", Descending: true}}},
		"first page":    {Total: store.TotalNone},
		"400th page":    deep,
		"common filter": {Where: store.TokenIs{Param: "gender", Code: new("male")}},
		"worst scan":    {Where: store.TextIs{Param: "name", Match: store.Contains, Text: "nobody"}},
	} {
		if query.Types == nil {
			query.Types = []string{"Patient"}
		}
		if query.Sort == nil {
			query.Sort = newest
		}
		query.Count = 20
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if _, err := site.Search(context.Background(), query); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkIndexMemory measures the memory of a record in the index, without its object.
func BenchmarkIndexMemory(b *testing.B) {
	var before, after runtime.MemStats
	for range b.N {
		runtime.GC()
		runtime.ReadMemStats(&before)
		site := benchSite(b)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/benchRecords, "B/record")
		runtime.KeepAlive(site)
	}
}
