package robustness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/hack/test/robustness/history"
)

// engineWriters is how many processes write by themselves.
const engineWriters = 6

var _ = Describe("writers on the engine", Label("engine"), func() {
	It("mix up no namesakes and no claims when they die, sleep and lose answers after any step", func(ctx SpecContext) {
		const namespace = "robustness-engine"
		key := uuid.NewString()
		_, err := paddock.Kubectl(ctx, "create", "namespace", namespace)
		Expect(err).NotTo(HaveOccurred())
		run := &engineRun{
			env: []string{
				childKubeconfig + "=" + control.File("paddock-apiserver.kubeconfig"),
				childNamespace + "=" + namespace, childSiteKey + "=" + key,
			},
			random: newRandom("engine", 0), log: newRecorder(), wanted: wantedFaults(*stepFaults), happened: map[fault]int{},
		}
		letThemWrite(ctx, run)
		report.add("writers on the engine", run.log, nil)
		report.faults(run)

		records := history.Records(run.log.all(), run.readings)
		site := openSite(ctx, namespace, key, 0)
		readings := append(run.readings, readEngine(ctx, "one", site, records)...)
		// To somebody who comes much later, everything left unfinished is overdue.
		later := openSite(ctx, namespace, key, 3*time.Hour)
		expectNothingLeftOver(ctx, namespace)
		readings = append(readings, readEngine(ctx, "much later", later, records)...)
		report.checked(readings)
		judge(history.Check(run.log.all(), readings), run.log.all(), readings)
		expectTrueClaims(ctx, later, records, linesOf(run.log.all()))
		Expect(run.log.undesigned()).To(BeEmpty())
	}, SpecTimeout(20*time.Minute))
})

// letThemWrite lets writers work until all faults have happened, and kills them
// at random times besides.
func letThemWrite(ctx context.Context, run *engineRun) {
	GinkgoHelper()
	working, stop := context.WithCancel(ctx)
	defer stop()
	group, working := errgroup.WithContext(working)
	var writers []*engineWriter
	for i := range engineWriters {
		w := &engineWriter{run: run, name: fmt.Sprintf("engine-%d", i), random: newRandom("engine", i)}
		writers = append(writers, w)
		group.Go(func() error { return w.work(working) })
	}
	group.Go(func() error {
		for working.Err() == nil && run.left() > 0 {
			idle(working, between(run.random, 100*time.Millisecond, 2*time.Second))
			writers[run.random.IntN(engineWriters)].signal(syscall.SIGKILL)
			run.kills++
		}
		stop()
		return nil
	})
	Expect(group.Wait()).To(Succeed())
	Expect(run.left()).To(BeZero(), "faults that did not happen: %v", run.wanted)
}

// openSite opens the records by an engine of its own, whose clock is ahead.
func openSite(ctx SpecContext, namespace, key string, ahead time.Duration) *cluster.Store {
	GinkgoHelper()
	// Nobody else may write records.
	config, err := control.UserConfig("system:serviceaccount:paddock-system:paddock-apiserver")
	Expect(err).NotTo(HaveOccurred())
	engine, err := cluster.New(config, cluster.Options{Now: func() time.Time { return time.Now().Add(ahead) }})
	Expect(err).NotTo(HaveOccurred())
	running, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	go engine.Run(running)
	Eventually(ctx, engine.Synced()).Should(BeClosed())
	return engine.Open(namespace, key, engineLimits)
}

func readEngine(ctx context.Context, by string, site store.Store, records []string) []history.Reading {
	GinkgoHelper()
	var readings []history.Reading
	for _, id := range records {
		reading := history.Reading{Record: id, By: by, Final: true, Start: clock()}
		var err error
		reading.Versions, err = readHistory(ctx, site, store.Key{Type: patients.name, ID: id})
		if !errors.Is(err, store.ErrNotFound) {
			Expect(err).NotTo(HaveOccurred())
		}
		reading.End = clock()
		readings = append(readings, reading)
	}
	return readings
}

// expectNothingLeftOver waits until the engine's sweeps have removed what dead
// writers left: half purged records and histories without a record.
func expectNothingLeftOver(ctx SpecContext, namespace string) {
	GinkgoHelper()
	var records recordsv1.RecordList
	var histories recordsv1.RecordHistoryList
	Eventually(ctx, func(g Gomega) {
		for resource, into := range map[string]any{"records.records.paddock.health": &records, "recordhistories.records.paddock.health": &histories} {
			listed, err := paddock.Kubectl(ctx, "get", resource, "--namespace", namespace, "--output", "json")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(json.Unmarshal(listed, into)).To(Succeed())
		}
		lineages := map[string]string{}
		for _, r := range records.Items {
			g.Expect(r.Spec.Purging).To(BeFalse(), "%s is half purged", r.Name)
			lineages[r.Name] = r.Spec.Lineage
		}
		for _, h := range histories.Items {
			g.Expect(lineages).To(HaveKeyWithValue(h.Spec.Record, h.Spec.Lineage), "the history %s has no record", h.Name)
		}
	}).Should(Succeed())
}

// linesOf names all lines that anybody claimed.
func linesOf(ops []history.Operation) []string {
	names := map[string]bool{}
	for _, op := range ops {
		for _, line := range op.Lines {
			names[line] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// expectTrueClaims finds that each line is held by the record that lists it, or free.
func expectTrueClaims(ctx context.Context, site *cluster.Store, records, lines []string) {
	GinkgoHelper()
	holders := map[string]string{}
	for _, id := range records {
		record, err := site.Get(ctx, store.Key{Type: patients.name, ID: id})
		if err != nil {
			continue // it is gone: readEngine has seen that
		}
		for _, claim := range record.Claims {
			Expect(holders).NotTo(HaveKey(claim.Line), "%s and %s hold %s", holders[claim.Line], id, claim.Line)
			holders[claim.Line] = id
		}
	}
	for i, line := range lines {
		_, err := site.Write(ctx, []store.Op{{
			Kind: store.Put, Key: store.Key{Type: patients.name, ID: fmt.Sprintf("newcomer-%d", i)},
			Method: store.MethodPut, Body: storedBody("newcomer"), Claims: []store.Claim{{Line: line}},
		}})
		if holder, held := holders[line]; held {
			var refused *store.ClaimError
			Expect(errors.As(err, &refused)).To(BeTrue(), "%s is held by %s: %v", line, holder, err)
			Expect(refused.Holder.ID).To(Equal(holder))
		} else {
			Expect(err).NotTo(HaveOccurred(), "nobody holds %s", line)
		}
	}
}
