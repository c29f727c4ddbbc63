package move

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var (
	// full runs the long form instead of the short one, as `make move-full` does.
	full = flag.Bool("full", false, "whether to kill each program alone in each phase, and to move many records")
	// clusterRecords and postgresRecords are the sizes of the Site that is moved under load.
	clusterRecords  = flag.Int("cluster-records", 5000, "the number of records of the Site that is moved from the cluster to Postgres")
	postgresRecords = flag.Int("postgres-records", 100000, "the number of records of the Site that is moved from Postgres to Postgres")
)

const (
	// crowd is the number of writers, and of readers, of moves under heavy load.
	crowd = 16
	// bundleSize is the number of records that one request creates.
	bundleSize = 100
	// copyLimit is the time limit for copying many records, on a busy machine.
	copyLimit = 30 * time.Minute
)

// fill creates patients until the site has a number of them. Those that exist have numbers below from.
func fill(ctx context.Context, from, until int) {
	GinkgoHelper()
	var next atomic.Int64
	next.Store(int64(from))
	var group sync.WaitGroup
	var failed sync.Map
	for range 8 {
		group.Go(func() {
			for {
				first := int(next.Add(bundleSize)) - bundleSize
				if first >= until {
					return
				}
				for attempt := 0; ; attempt++ {
					got := send(ctx, "POST", paddock.URLs[0]+demo+"/fhir", bundleOf(first, min(until, first+bundleSize)))
					if got.status == 200 && !strings.Contains(got.body, `"status":"5`) && !strings.Contains(got.body, `"status":"4`) {
						break
					}
					if attempt == 20 {
						failed.Store(first, got.body)
						return
					}
					time.Sleep(500 * time.Millisecond)
				}
			}
		})
	}
	group.Wait()
	failed.Range(func(first, body any) bool {
		Fail(fmt.Sprintf("records from %v on: %.1000s", first, body))
		return false
	})
}

// bundleOf returns a batch Bundle that creates patients with some content.
func bundleOf(from, until int) string {
	entries := make([]string, 0, until-from)
	for n := from; n < until; n++ {
		entries = append(entries, fmt.Sprintf(`{"resource":{"resourceType":"Patient","id":"many-%[1]d","active":true,
			"name":[{"family":"Family%[2]d","given":["Rex","Luna%[1]d"]}],"telecom":[{"system":"phone","value":"+1555%07[1]d"}],
			"birthDate":"20%02[3]d-03-01","address":[{"line":["%[1]d Oak Street"],"city":"Springfield","postalCode":"%05[2]d"}],
			"identifier":[{"system":"https://example.org/chips","value":"chip-%[1]d"}]},"request":{"method":"PUT","url":"Patient/many-%[1]d"}}`, n, n%5000, n%24))
	}
	return `{"resourceType":"Bundle","type":"batch","entry":[` + strings.Join(entries, ",") + `]}`
}

// count returns the number of patients of fill.
func count(ctx context.Context) int {
	GinkgoHelper()
	got := send(ctx, "GET", paddock.URLs[0]+patients+"?address-city=Springfield&_summary=count", "")
	Expect(got.status).To(Equal(200), got.body)
	var bundle struct{ Total int }
	Expect(json.Unmarshal([]byte(got.body), &bundle)).To(Succeed())
	return bundle.Total
}

// measure moves the Site under the load of a crowd and reports the pause of writes.
func measure(ctx context.Context, name, secret string, records int) {
	GinkgoHelper()
	l := startLoadOf(name, crowd, crowd)
	time.Sleep(5 * time.Second)
	before := l.longest()
	began := time.Now()
	create(ctx, name, secret)
	awaitFor(ctx, copyLimit, name, "Switched")
	AddReportEntry(fmt.Sprintf("%s: %d records copied and switched in", name, records), time.Since(began))
	awaitPast(ctx, name)
	time.Sleep(2 * time.Second)
	l.stop(ctx)
	pause := pauseOf(ctx, name)
	AddReportEntry(name+": pause of writes, by the SiteMove", pause)
	AddReportEntry(name+": longest time between two writes of a writer before the move", before)
	AddReportEntry(name+": the same, including the move", l.pause)
	Expect(count(ctx)).To(Equal(records))
	Expect(pause).To(BeNumerically("<", 15*time.Second), "the goal is 5 s on an idle machine")
}

// measureReturn returns the Site from the move that measure has made, under the same load.
func measureReturn(ctx context.Context, name string, records int) {
	GinkgoHelper()
	l := startLoadOf(name+"-back", crowd, crowd)
	time.Sleep(5 * time.Second)
	began := time.Now()
	decide(ctx, name, "RollBack")
	awaitFor(ctx, copyLimit, name, "RolledBack")
	AddReportEntry(fmt.Sprintf("%s: returned, with %d records, in", name, records), time.Since(began))
	l.stop(ctx)
	pause := pauseOf(ctx, name)
	AddReportEntry(name+": pause of writes of the return, by the SiteMove", pause)
	Expect(count(ctx)).To(Equal(records))
	Expect(pause).To(BeNumerically("<", 15*time.Second), "the goal is 5 s on an idle machine")
}

// confirm ends a move.
func confirm(ctx context.Context, name string) {
	GinkgoHelper()
	decide(ctx, name, "Confirm")
	await(ctx, name, "Completed")
}

func (l *load) longest() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pause
}

// migrate creates the tables of a database that has none, by a move that is given up.
func migrate(ctx context.Context, secret string) {
	GinkgoHelper()
	var migrated bool
	Expect(connectTo(ctx, secret).QueryRow(ctx, "SELECT to_regclass('river_job') IS NOT NULL").Scan(&migrated)).To(Succeed())
	if migrated {
		return
	}
	create(ctx, "tables-"+secret, secret)
	Eventually(func() string { return phase(ctx, "tables-"+secret) }).WithTimeout(patience).ShouldNot(BeElementOf("", "Pending"))
	decide(ctx, "tables-"+secret, "RollBack")
	await(ctx, "tables-"+secret, "RolledBack")
}

// killEach moves the Site and returns, once for each program that is killed in each phase. from is
// empty if the Site is in the cluster. toClinic moves it to the namespace clinic, whose Site has the database to.
func killEach(ctx context.Context, from, to string, toClinic bool) {
	GinkgoHelper()
	migrate(ctx, to)
	place, suffix := storage, ""
	if toClinic {
		place, suffix = holder, "-clinic"
	}
	before := place(ctx)
	for victim, kill := range map[string]victims{"controller": onlyController, "api": onlyAPI} {
		name := "killed-" + victim + "-" + from + to + suffix
		By("killing: " + name)
		l := startLoad(name)
		time.Sleep(500 * time.Millisecond)
		killIn(ctx, name, to, forwardSteps(from, to), kill, func() {
			if toClinic {
				apply(ctx, fmt.Sprintf(moveToClinic, name))
			} else {
				create(ctx, name, to)
			}
		})
		await(ctx, name, "Switched")
		Expect(place(ctx)).NotTo(Equal(before))
		killIn(ctx, name, to, backSteps(from, to), kill, func() { decide(ctx, name, "RollBack") })
		await(ctx, name, "RolledBack")
		Expect(place(ctx)).To(Equal(before))
		l.stop(ctx)
		expectNothing(ctx, to)
	}
}

var _ = Describe("The long form", Ordered, func() {
	BeforeAll(func() {
		if !*full {
			Skip("only with -full")
		}
	})

	It("moves from the cluster although one program is killed in each phase, and returns", func(ctx SpecContext) {
		killEach(ctx, "", "first", false)
	})

	It("moves from the cluster to another namespace although one program is killed in each phase, and returns", func(ctx SpecContext) {
		prepareClinic(ctx, "demo")
		killEach(ctx, "", "second", true)
	})

	It("moves as many records as the cluster holds under load", func(ctx SpecContext) {
		kubectl(ctx, "patch", "site", "demo", "-n", "demo", "--type=merge", "-p",
			fmt.Sprintf(`{"spec":{"storage":{"cluster":{"maxRecords":%d,"maxSize":"512Mi"}}}}`, 2**clusterRecords))
		fill(ctx, 0, *clusterRecords)
		measure(ctx, "cluster-and-back", "first", *clusterRecords)
		measureReturn(ctx, "cluster-and-back", *clusterRecords)
		measure(ctx, "cluster-to-postgres", "first", *clusterRecords)
		confirm(ctx, "cluster-to-postgres")
	})

	It("moves from a database although one program is killed in each phase, and returns", func(ctx SpecContext) {
		killEach(ctx, "first", "second", false)
	})

	It("moves from a database to another namespace although one program is killed in each phase, and returns", func(ctx SpecContext) {
		killEach(ctx, "first", "second", true)
	})

	It("moves many records from one database to another under load", func(ctx SpecContext) {
		fill(ctx, *clusterRecords, *postgresRecords)
		measure(ctx, "postgres-to-postgres", "second", *postgresRecords)
		measureReturn(ctx, "postgres-to-postgres", *postgresRecords)
	})
})
