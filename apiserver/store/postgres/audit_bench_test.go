package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/audit/audittest"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// pages returns n entries of the last day. Each names the record Patient/everywhere and others of
// 20,000 at random.
func pages(n, records int) []*audit.Entry {
	entries := make([]*audit.Entry, n)
	for i := range entries {
		ago := time.Duration(rand.Int64N(int64(20 * time.Hour)))
		entries[i] = audittest.Entry(ago, func(e *audit.Entry) {
			if records == 0 {
				return
			}
			names := []string{"Patient/everywhere"}
			for range records - 1 {
				names = append(names, "Patient/animal-of-the-clinic-"+strconv.Itoa(rand.IntN(20_000)))
			}
			e.Records = audit.RecordsOf(names...)
		})
	}
	return entries
}

// BenchmarkAuditAppend stores batches of 500 entries. What pages of 20 records cost more than entries
// without records is the price of the query for one record.
func BenchmarkAuditAppend(b *testing.B) {
	for _, records := range []int{0, 1, 20} {
		b.Run(fmt.Sprintf("records=%d", records), func(b *testing.B) {
			log := open(b, shared, uuid.NewString(), postgres.Options{}).Audit()
			for b.Loop() {
				b.StopTimer()
				batch := pages(500, records)
				b.StartTimer()
				if err := log.Append(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAuditSearch finds the newest 100 entries among 100,000 pages of 20 records.
func BenchmarkAuditSearch(b *testing.B) {
	log := open(b, shared, uuid.NewString(), postgres.Options{}).Audit()
	for range 200 {
		if err := log.Append(b.Context(), pages(500, 20)); err != nil {
			b.Fatal(err)
		}
	}
	for name, query := range map[string]audit.Query{
		"all":                    {},
		"a record":               {Entity: "Patient/animal-of-the-clinic-77"},
		"a record of every page": {Entity: "Patient/everywhere"},
		"no record":              {Entity: "Patient/none"},
	} {
		query.Count = 100
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := log.Search(b.Context(), query); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
