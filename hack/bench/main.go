// Command bench measures Paddock against baselines in the same run, because ratios vary less between
// runs and machines than times do. Most sets start a control plane and API servers of their own, let
// each workload and its baseline run in short turns, and print Markdown tables of the medians.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/paddock-health/paddock/hack/dev/localcluster"
	"github.com/paddock-health/paddock/hack/dev/localpaddock"
)

// gcPercent is the GOGC value of the load generator, whose processor time affects the results. The
// baselines keep Go's default.
const gcPercent = 800

type options struct {
	bin, source     string
	clients, rounds int
	turn            time.Duration
	// only selects what is measured: workloads, searches or storages whose name contains it.
	only string
	// sites is the number of Sites of the set fleet, drained the capacity of its database that is drained,
	// and rate the number of requests per second.
	sites, drained, rate int
	// length is how long the set soak lasts.
	length time.Duration
	// records is the number of records in the database of the sets with Postgres, and the number of
	// events in the set pending.
	records int
	// aggregated has the API server serve the aggregated API too.
	aggregated bool
	// apiServers is the number of API servers. Default: 1.
	apiServers int
	// controllerArgs are added for the controller.
	controllerArgs []string
	// processes are those whose processor time is reported. If it is nil, no processor time is reported.
	processes *processes
}

func main() {
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt)
	var o options
	set := flag.String("set", "storage", "what to measure: storage, search, postgres, byhand, growth, endurance, sites, greedy, deliveries, eventcost, pending, access, aggregated, memory, archive, archivekills, soak, overload or fleet")
	static := flag.String("static", "", "serve only the files of this folder, and measure nothing")
	floor := flag.String("floor", "", "serve only the floor handler that this JSON describes, and measure nothing")
	byHand := flag.String("byhand", "", "serve only the hand-written handler that this JSON describes, and measure nothing")
	flag.StringVar(&o.bin, "bin", "bin", "folder with the programs")
	flag.StringVar(&o.source, "source", ".", "folder of the repository")
	flag.IntVar(&o.clients, "clients", 32, "number of clients, each with one request in flight")
	flag.IntVar(&o.rounds, "rounds", 5, "measured turns of each workload")
	flag.DurationVar(&o.turn, "turn", 3*time.Second, "how long a turn lasts")
	flag.StringVar(&o.only, "only", "", "measure only what has this in its name: a workload or search, or the storage of the set deliveries (cluster, postgres) or of the sets soak and overload (etcd, postgres)")
	flag.IntVar(&o.records, "records", 100_000, "records in the database of the sets with Postgres, or pending events of the set pending")
	flag.IntVar(&o.sites, "sites", 1000, "`number` of Sites of the set fleet")
	flag.IntVar(&o.drained, "drained", 25, "maximum `number` of Sites of the database that the set fleet drains")
	flag.DurationVar(&o.length, "length", 30*time.Minute, "how long the set soak lasts")
	flag.IntVar(&o.rate, "rate", 100, "requests per second of the set fleet")
	flag.Parse()
	if *static == "" && *floor == "" && *byHand == "" {
		debug.SetGCPercent(gcPercent)
	}
	var err error
	switch {
	case *static != "":
		err = serveStatic(*static)
	case *floor != "":
		err = serveFloor(ctx, *floor)
	case *byHand != "":
		err = serveByHand(ctx, *byHand)
	case *set == "byhand":
		err = withPaddock(ctx, o, benchByHand)
	case *set == "storage":
		err = withPaddock(ctx, o, benchStorage)
	case *set == "search":
		err = withPaddock(ctx, o, benchSearch)
	case *set == "postgres":
		err = withPaddock(ctx, o, benchPostgres)
	case *set == "growth":
		err = benchGrowth(ctx, o)
	case *set == "endurance":
		err = withPaddock(ctx, o, benchEndurance)
	case *set == "sites":
		err = withPaddock(ctx, o, benchSites)
	case *set == "greedy":
		err = withGreedy(ctx, o)
	case *set == "deliveries":
		err = withPaddock(ctx, o, benchDeliveries)
	case *set == "eventcost":
		err = withPaddock(ctx, o, benchEventCost)
	case *set == "pending":
		err = withPaddock(ctx, o, benchPending)
	case *set == "access":
		err = withPaddock(ctx, o, benchAccess)
	case *set == "aggregated":
		o.aggregated = true
		err = withPaddock(ctx, o, benchAggregated)
	case *set == "memory":
		o.aggregated = true
		err = withPaddock(ctx, o, benchMemory)
	case *set == "archive":
		err = withPaddock(ctx, o, benchArchive)
	case *set == "archivekills":
		err = withPaddock(ctx, o, benchKilledArchive)
	case *set == "soak":
		// On a machine without idle processors the only controller can lose its Lease, and would end.
		o.controllerArgs = []string{"--leader-elect=false"}
		err = withPaddock(ctx, o, benchSoak)
	case *set == "overload":
		err = withPaddock(ctx, o, benchOverload)
	case *set == "fleet":
		err = withFleet(ctx, o)
	default:
		err = fmt.Errorf("-set=%s: want storage, search, postgres, byhand, growth, endurance, sites, greedy, deliveries, eventcost, pending, access, aggregated, memory, archive, archivekills, soak, overload or fleet", *set)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// installation is the running system that is measured.
type installation struct {
	cluster *localcluster.Cluster
	paddock *localpaddock.Paddock
	site    *site
	// metrics is the address of the API server's metrics.
	metrics string
}

// withPaddock starts a control plane, the controller, the delivery process and API servers, opens the
// demo site and calls bench.
func withPaddock(ctx context.Context, o options, bench func(context.Context, options, installation) error) error {
	dir, err := os.MkdirTemp("", "paddock-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cluster, err := localcluster.Start(ctx, localcluster.Options{Dir: dir, BinDir: o.bin})
	if err != nil {
		return err
	}
	defer func() { _ = cluster.Stop() }()
	paddock, err := localpaddock.Start(ctx, cluster, localpaddock.Options{
		BinDir: o.bin, SourceDir: o.source, Aggregated: o.aggregated, APIServers: o.apiServers, ControllerArgs: o.controllerArgs,
		APIServerArgs: []string{"--cluster-max-records", "1000000", "--cluster-max-bytes", "100000000000"},
	})
	if err != nil {
		return err
	}
	site, err := openSite(ctx, paddock)
	if err != nil {
		return err
	}
	return bench(ctx, o, installation{cluster, paddock, site, paddock.HealthURLs[0] + "/metrics"})
}

// benchStorage compares writes and reads by id with those of raw objects.
func benchStorage(ctx context.Context, o options, paddock installation) error {
	// The baseline has the API server's own identity: kube-apiserver treats both alike.
	config, err := paddock.cluster.UserConfig("system:serviceaccount:paddock-system:paddock-apiserver")
	if err != nil {
		return err
	}
	raw, err := newRawObjects(config)
	if err != nil {
		return err
	}
	site := paddock.site
	results := measure(ctx, o, []workload{
		{"create: raw object", raw.create},
		{"create: Patient", site.create},
		{"update: Patient", site.update},
		{"read by id: raw object", raw.get},
		{"read by id: Patient", site.read},
	})
	return report(os.Stdout, o, results, []ratio{
		{"creates per raw create", "create: Patient", "create: raw object", 0.7},
		{"updates per raw create", "update: Patient", "create: raw object", 0.35},
		{"reads by id per raw get", "read by id: Patient", "read by id: raw object", 0.8},
	})
}

// unlimited are limits of a Site that no load generator reaches.
const unlimited = `"limits":{"requestsPerSecond":1000000,"callerRequestsPerSecond":1000000,"burst":1000000,"concurrentSearches":10000}`

func openSite(ctx context.Context, paddock *localpaddock.Paddock) (*site, error) {
	if err := paddock.Apply(ctx, filepath.Join("config", "samples")); err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{"patch", "site", "demo", "-n", "demo", "--type=merge", "-p", `{"spec":{"storage":{"cluster":{"maxRecords":1000000,"maxSize":"100Gi"}},` + unlimited + `}}`},
		{"wait", "--for=condition=Ready", "--timeout=30s", "-n", "demo", "site/demo"},
	} {
		if _, err := paddock.Kubectl(ctx, args...); err != nil {
			return nil, err
		}
	}
	token, err := paddock.Token(ctx, "demo", "editor", "paddock.health/demo/demo", 2*time.Hour)
	if err != nil {
		return nil, err
	}
	return newSite(paddock.URLs[0]+"/site/demo/fhir", token), nil
}
