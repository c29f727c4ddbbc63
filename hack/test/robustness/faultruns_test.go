package robustness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"

	"github.com/paddock-health/paddock/hack/test/robustness/faultplan"
	"github.com/paddock-health/paddock/hack/test/robustness/ledger"
)

// Which seeded fault runs there are.
var (
	seeds      = flag.String("seeds", "", "seeds of fault runs, for example 1-200,301; default: no fault runs")
	engine     = flag.String("engine", string(faultplan.Cluster), "storage of the site of fault runs, cluster or postgres")
	faultKinds = flag.String("fault-kinds", "", "kinds of faults of fault runs, separated by commas, or none; default: all of the engine")
	ledgerFile = flag.String("ledger", "", "file with the results of fault runs: seeds that passed are skipped; default: no file")
	faultLogs  = flag.String("fault-logs", "", "folder for the logs of failed fault runs; default: no logs")
)

// faultRun is one run: load on a site while the faults of a plan happen, and then the checks.
type faultRun struct {
	engine faultplan.Engine
	seed   uint64
	plan   faultplan.Plan
	// operations is the number of requests whose effects were checked.
	operations int
}

// faultRuns are the runs of this process.
var faultRuns struct {
	engine faultplan.Engine
	all    []*faultRun
	// asked is the number of runs without those that the ledger has.
	asked   int
	current *faultRun
	began   time.Time
	done    int
	ledger  *ledger.Ledger
	commit  string
}

// prepareFaultRuns plans the runs that the flags ask for.
func prepareFaultRuns() error {
	runs := &faultRuns
	runs.engine = faultplan.Engine(*engine)
	possible := faultplan.Kinds(runs.engine)
	if possible == nil {
		return fmt.Errorf("-engine is %q: want cluster or postgres", *engine)
	}
	var kinds []faultplan.Kind
	if *faultKinds != "" {
		kinds = []faultplan.Kind{}
		for name := range strings.SplitSeq(*faultKinds, ",") {
			if name == "none" {
				continue
			}
			if !slices.Contains(possible, faultplan.Kind(name)) {
				return fmt.Errorf("-fault-kinds has %q: want some of %v, or none", name, possible)
			}
			kinds = append(kinds, faultplan.Kind(name))
		}
	}
	numbers, err := faultplan.ParseSeeds(*seeds)
	if err != nil {
		return err
	}
	if *ledgerFile != "" {
		if kinds != nil || *apiServer != "apiserver" {
			return errors.New("-ledger is for runs with all kinds of faults and the program apiserver: omit -fault-kinds and -apiserver")
		}
		if err := openLedger(*ledgerFile); err != nil {
			return err
		}
	}
	runs.asked = len(numbers)
	for _, seed := range numbers {
		if runs.ledger == nil || runs.ledger.Verdict(*engine, seed) != ledger.Passed {
			runs.all = append(runs.all, &faultRun{engine: runs.engine, seed: seed, plan: faultplan.New(runs.engine, seed, kinds)})
		}
	}
	return nil
}

func openLedger(path string) error {
	source := filepath.Join("..", "..", "..")
	code, err := ledger.Digest(source, "./cmd/apiserver")
	if err != nil {
		return err
	}
	if faultRuns.ledger, err = ledger.Open(path, code); err != nil {
		return err
	}
	head, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return fmt.Errorf("name the commit for the ledger: %w", err)
	}
	faultRuns.commit = strings.TrimSpace(string(head))
	return nil
}

// printCounts prints how many seeds have passed with the present code.
func printCounts() {
	if faultRuns.ledger == nil {
		return
	}
	for _, engine := range []faultplan.Engine{faultplan.Cluster, faultplan.Postgres} {
		passed, failed := faultRuns.ledger.Count(string(engine))
		fmt.Printf("%s: %d seeds passed and %d failed with the present code\n", engine, passed, failed)
	}
}

var _ = Describe("a seeded fault run", Label("fault-runs"), Ordered, ContinueOnFailure, func() {
	site := workloadSite
	BeforeAll(func(ctx SpecContext) {
		if faultRuns.engine == faultplan.Postgres {
			site = workloadSiteInPostgres
		}
		serveWorkloadSite(ctx, site)
		faultRuns.began = time.Now()
	})
	ReportAfterEach(recordFaultRun)
	for _, run := range faultRuns.all {
		It(fmt.Sprintf("of the seed %d loses, doubles and mixes up nothing: %s", run.seed, run.plan), func(ctx SpecContext) {
			faultRuns.current = run
			run.do(ctx, site)
		}, SpecTimeout(4*time.Minute))
	}
})

// do starts the load, lets the faults happen, and checks what is stored and what callers saw.
func (run *faultRun) do(ctx SpecContext, site string) {
	GinkgoHelper()
	name := fmt.Sprintf("%s-%d", run.engine, run.seed)
	runner := newFaultRunner()
	runner.heal(ctx)
	supervised, unsupervise := context.WithCancel(ctx)
	DeferCleanup(unsupervise)
	controller := &victim{name: "controller", process: paddock.Controllers[0]}
	var supervision errgroup.Group
	supervision.Go(func() error { return superviseController(supervised, controller, paddock.Controllers[0]) })

	log := newRecorder()
	kind := kind{"Patient", "patient", site, "", "run-" + name}
	killsServers := run.plan.Has("kill-apiserver")
	work := startWorkloads(name, !killsServers, site)
	stop := startWriters(kind, paddock.URLs[:2], newHerd(name), log)
	DeferCleanup(stop)
	work.progress(ctx, "before the faults")
	Expect(runner.run(ctx, run.plan)).To(Succeed())
	work.progress(ctx, "after the faults")
	expectRecovery(ctx, log)
	stop()
	run.operations = len(log.all()) + work.answered()
	work.close(ctx)
	unsupervise()
	Expect(supervision.Wait()).To(Succeed())
	verify(ctx, kind, log)
	if !killsServers {
		Expect(work.broken()).To(BeEmpty(), "connections that broke after a request was sent, although no API server was killed")
	}
}

// heal lets all processes serve that a failed run left dead or paused.
func (r faultRunner) heal(ctx context.Context) {
	GinkgoHelper()
	for _, target := range r {
		_ = target.process.Resume() // it fails for a process that is dead, which the next line starts
		if target.process.Pid() == 0 {
			Expect(target.revive(ctx)).To(Succeed())
		}
	}
	Expect(control.SetFull(ctx, false)).To(Succeed())
}

// recordFaultRun adds the result of a run to the ledger, prints it, and keeps the log of a failed run.
func recordFaultRun(spec SpecReport) {
	runs := &faultRuns
	run := runs.current
	if run == nil {
		return // the installation or the site did not start
	}
	runs.current = nil
	if spec.State.Is(types.SpecStateInterrupted | types.SpecStateAborted) {
		return // by a signal; the seed is run again
	}
	runs.done++
	verdict := ledger.Passed
	if spec.Failed() {
		verdict = ledger.Failed
	}
	rate := float64(runs.done) / time.Since(runs.began).Minutes()
	fmt.Printf("\nrun %d of %d: %s seed %d: %s: %s, %d operations in %.1f s; %.1f runs a minute\n", runs.asked-len(runs.all)+runs.done, runs.asked,
		run.engine, run.seed, run.plan, verdict, run.operations, spec.RunTime.Seconds(), rate)
	if runs.ledger != nil {
		Expect(runs.ledger.Append(ledger.Row{
			Engine: string(run.engine), Seed: run.seed, Commit: runs.commit, Faults: run.plan.String(), Verdict: verdict, Operations: run.operations,
		})).To(Succeed())
	}
	if !spec.Failed() {
		report.text.Reset()
		return
	}
	if *faultLogs != "" {
		file := filepath.Join(*faultLogs, fmt.Sprintf("%s-%d.log", run.engine, run.seed))
		text := fmt.Sprintf("faults: %s\n%s: %s\n%s\n", run.plan, spec.Failure.Location, spec.Failure.Message, spec.CombinedOutput())
		Expect(errors.Join(os.MkdirAll(*faultLogs, 0o755), os.WriteFile(file, []byte(text), 0o644))).To(Succeed())
		fmt.Printf("what happened: %s\n", file)
	}
}
