package ahds_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// Figures of lists in a large site, for docs/performance.md: PADDOCK_SLOTS is how many
// slots it has. They are measured only when asked for.
func init() {
	n, err := strconv.Atoi(os.Getenv("PADDOCK_SLOTS"))
	if err != nil {
		return
	}
	Describe("Pages of many slots", func() {
		for _, engine := range engines {
			It("storage: "+engine, func(ctx SpecContext) {
				count := n
				if engine == "Cluster" {
					count = int(cluster.DefaultLimits.MaxRecords) - 1
				}
				s := newSite(ctx, engine)
				s.load(ctx, count)
				for _, line := range s.measurePages(count) {
					fmt.Println("|", engine, "|", count, "|", line)
				}
			})
		}
	})
}

// load makes slots of a hundred resources, a quarter of an hour each, one behind the other.
func (s site) load(ctx context.Context, count int) {
	GinkgoHelper()
	first := s.do("POST", slotPath, slotBody(0, fields{"notes": "template", "serviceType": fields{"code": "vax", "system": "urn:s:1"}}))
	key := store.Key{Type: "AvailabilitySlot", ID: first.created(slotID)}
	template, err := s.stores[0].Get(ctx, key)
	Expect(err).NotTo(HaveOccurred())
	op := func(i int) store.Op {
		id, err := uuid.NewV7()
		Expect(err).NotTo(HaveOccurred())
		start := day.Add(time.Duration(i/100) * 15 * time.Minute)
		body := strings.NewReplacer(
			"2031-03-01T00:00:00Z", start.Format(time.RFC3339), "2031-03-01T01:00:00Z", start.Add(15*time.Minute).Format(time.RFC3339),
			vet, fmt.Sprintf("0198c4f2-7d1e-7c3a-9b5f-%012d", i%100), location, fmt.Sprintf("0198c4f2-7d1e-7c3a-9b5f-%012d", 900+i%5),
			`"isBooked":false`, fmt.Sprintf(`"isBooked":%t`, i*7919%10 < 4), "template", fmt.Sprintf("slot %d of %d", i, count),
		).Replace(string(template.Body.JSON))
		return store.Op{Kind: store.Put, Key: store.Key{Type: key.Type, ID: id.String()}, Method: store.MethodPost, Body: store.Body{JSON: []byte(body)}}
	}
	began := time.Now()
	if database, ok := s.stores[0].(*postgres.Store); ok {
		const portion = 5000
		for from := 1; from < count; from += portion {
			var ops []store.Op
			for i := from; i < min(from+portion, count); i++ {
				ops = append(ops, op(i))
			}
			Expect(database.Load(ctx, ops)).To(Succeed())
		}
	} else {
		var group sync.WaitGroup
		for worker := range 16 {
			group.Go(func() {
				defer GinkgoRecover()
				for i := 1 + worker; i < count; i += 16 {
					_, err := s.stores[0].Write(ctx, []store.Op{op(i)})
					Expect(err).NotTo(HaveOccurred())
				}
			})
		}
		group.Wait()
	}
	fmt.Printf("loaded %d slots in %s\n", count, time.Since(began).Round(time.Millisecond))
}

// measurePages lists pages and says how long each took, the median of several.
func (s site) measurePages(count int) []string {
	GinkgoHelper()
	one := fmt.Sprintf("0198c4f2-7d1e-7c3a-9b5f-%012d", 42)
	overlap := func(hours int) string {
		from := day.Add(time.Duration(count/100/2) * 15 * time.Minute)
		return "overlapsFrom=" + from.Format(time.RFC3339) + "&overlapsTo=" + from.Add(time.Duration(hours)*time.Hour).Format(time.RFC3339)
	}
	var lines []string
	for _, query := range []string{
		"", "sortOrder=desc", "sortBy=createdAt", "sortBy=updatedAt&sortOrder=desc", "sortBy=resourceId", "isBooked=false&isActive=true", "resourceId=" + one,
		"resourceId=" + one + "&isBooked=false&isActive=true", "locationId=0198c4f2-7d1e-7c3a-9b5f-000000000903&isBooked=false", overlap(4), overlap(4) + "&isBooked=false", "resourceId=" + one + "&" + overlap(24*7),
		"serviceType=vax&isBooked=false", "notes=slot%2077", "notes=nothing",
	} {
		whole := s.do("GET", slotPath+"?"+query+"&pageSize=20", "")
		if whole.status != http.StatusOK {
			lines = append(lines, fmt.Sprintf("%s | %d %s |", query, whole.status, whole.body))
			continue
		}
		var meta struct {
			Meta struct{ Total, TotalPages int }
		}
		whole.decode(&meta)
		var times []string
		for _, page := range []int{0, meta.Meta.TotalPages / 2, max(0, meta.Meta.TotalPages-1)} {
			times = append(times, s.medianOf(fmt.Sprintf("%s?%s&pageSize=20&page=%d", slotPath, query, page)))
		}
		lines = append(lines, fmt.Sprintf("%s | %d | %s |", query, meta.Meta.Total, strings.Join(times, " | ")))
	}
	return lines
}

func (s site) medianOf(path string) string {
	GinkgoHelper()
	const times = 9
	took := make([]time.Duration, times)
	for i := range took {
		began := time.Now()
		a := s.do("GET", path, "")
		took[i] = time.Since(began)
		if a.status != http.StatusOK {
			return fmt.Sprint(a.status, " ", a.text("code"))
		}
	}
	slices.Sort(took)
	return fmt.Sprintf("%.1f ms", float64(took[times/2].Microseconds())/1000)
}
