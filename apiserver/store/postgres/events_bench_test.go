package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// BenchmarkEventOfCreate compares creates with and without an event, in turns: the processor time
// of the server's process and the latency.
func BenchmarkEventOfCreate(b *testing.B) {
	config, err := postgres.Config(server.URL(database))
	if err != nil {
		b.Fatal(err)
	}
	config.MaxConns = 1 // one process of the server does it all
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	site := open(b, pool, uuid.NewString(), planOptions)
	var pid int
	if err := pool.QueryRow(b.Context(), `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
		b.Fatal(err)
	}
	c := clinic{rand.New(rand.NewPCG(1, 1))}
	turn := func(announces bool) (processor, waited float64) {
		const n = 400
		ops := make([]store.Op, n)
		for i := range ops {
			ops[i] = newPatient(c)
			if announces {
				ops[i].Events = func(change store.Change) []store.Event {
					envelope := fmt.Sprintf(`{"id":%q,"type":"user.created","timestamp":"","sequence":,"data":%s}`, uuid.NewString(), change.After.Body.JSON)
					return []store.Event{{
						ID: uuid.NewString(), Type: "user.created", Subject: change.After.Key.Type + "/" + change.After.Key.ID, Targets: []string{uuid.NewString()},
						Envelope: store.Envelope{JSON: []byte(envelope), SequenceOffset: strings.Index(envelope, `"sequence":`) + 11, TimeOffsets: []int{strings.Index(envelope, `"timestamp":"`) + 13}},
					}}
				}
			}
		}
		before, began := processorTime(b, pid), time.Now()
		for i := range ops {
			if _, err := site.Write(b.Context(), ops[i:i+1]); err != nil {
				b.Fatal(err)
			}
		}
		return (processorTime(b, pid) - before).Seconds() * 1e6 / n, time.Since(began).Seconds() * 1e6 / n
	}
	turn(false)
	turn(true)
	var without, with, ratio, waits []float64
	for range 15 {
		p0, w0 := turn(false)
		p1, w1 := turn(true)
		without, with, ratio, waits = append(without, p0), append(with, p1), append(ratio, p1/p0), append(waits, w1/w0)
	}
	b.ReportMetric(median(without), "µs-without")
	b.ReportMetric(median(with), "µs-with")
	b.ReportMetric(median(ratio), "of-processor")
	b.ReportMetric(median(waits), "of-wait")
}

// processorTime returns the processor time of a process.
func processorTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		b.Fatal(err)
	}
	nanoseconds, err := strconv.ParseInt(strings.Fields(string(content))[0], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return time.Duration(nanoseconds)
}
