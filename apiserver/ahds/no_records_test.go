package ahds_test

import (
	"context"
	"fmt"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// noRecords is the store of every site of the suite, as the API has it. It notes requests for records
// of FHIR, because this API shows none: privacy rules protect them, and the sweep of the FHIR API does
// not ask about this one.
type noRecords struct{ store.Store }

var requestsForRecords sync.Map

var _ = AfterSuite(func() {
	var found []string
	requestsForRecords.Range(func(call, _ any) bool {
		found = append(found, call.(string))
		return true
	})
	Expect(found).To(BeEmpty(), "the API used records of FHIR; compare what it shows with a site without hidden records, as the sweep of the FHIR API does")
})

func note(call string, types ...string) {
	for _, name := range types {
		if _, ofFHIR := r4.TypeOf(name); ofFHIR {
			requestsForRecords.Store(call+" "+name, true)
		}
	}
}

func (s noRecords) Get(ctx context.Context, key store.Key) (store.Record, error) {
	note("Get", key.Type)
	return s.Store.Get(ctx, key)
}

func (s noRecords) GetVersion(ctx context.Context, key store.Key, version int64) (store.Record, error) {
	note("GetVersion", key.Type)
	return s.Store.GetVersion(ctx, key, version)
}

func (s noRecords) History(ctx context.Context, query store.HistoryQuery) (store.Page, error) {
	note("History", append(slices.Clone(query.Types), query.Key.Type)...)
	return s.Store.History(ctx, query)
}

func (s noRecords) Search(ctx context.Context, query store.Query) (store.Page, error) {
	note("Search", query.Types...)
	for reached := range query.Access {
		note("Search", reached)
	}
	return s.Store.Search(ctx, query)
}

func (s noRecords) Write(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	for i := range ops {
		note(fmt.Sprint("Write ", ops[i].Kind), ops[i].Key.Type)
	}
	return s.Store.Write(ctx, ops)
}
