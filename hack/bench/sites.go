package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

const (
	// sitesPoll is the interval of checks whether Sites are Ready. drain is how long programs get to
	// finish what they have begun. idle is how long programs without requests are measured.
	sitesPoll = 100 * time.Millisecond
	drain     = 10 * time.Second
	idle      = time.Minute
	// sitesDeadline is how long Sites may take to become Ready.
	sitesDeadline = 15 * time.Minute
)

// siteCounts are the numbers of Sites at which benchSites measures the cost, in ascending order.
var siteCounts = []int{10, 50, 100, 200}

// programCost is what one program uses while clients send no requests.
type programCost struct {
	// resident and heap are in bytes. cpu is seconds of processor time, and requests the number of
	// requests to kube-apiserver, both within the time idle.
	resident, heap, cpu, requests float64
}

// sitesCost is the cost of a number of Sites.
type sitesCost struct {
	sites int
	// ready is the time from the creation of the first of the added Sites until all Sites were Ready.
	ready    time.Duration
	added    int
	programs map[string]programCost
}

// benchSites adds Sites with etcd-backed storage, and prints what programs use at each of siteCounts.
func benchSites(ctx context.Context, _ options, in installation) error {
	objects, err := adminClient(in)
	if err != nil {
		return err
	}
	programs := map[string]string{"controller": in.paddock.ControllerURLs[0] + "/metrics", "API server": in.metrics}
	var costs []sitesCost
	sites := 1 // the demo site
	for _, count := range siteCounts {
		began := time.Now()
		added := count - sites
		for ; sites < count; sites++ {
			if err := addSite(ctx, objects, fmt.Sprintf("clinic-%03d", sites)); err != nil {
				return err
			}
		}
		if err := awaitReady(ctx, objects, count, sitesPoll); err != nil {
			return err
		}
		cost := sitesCost{sites: count, added: added, ready: time.Since(began)}
		fmt.Fprintf(os.Stderr, "%d sites: %d were Ready after %s\n", count, added, cost.ready.Round(time.Millisecond))
		if cost.programs, err = idleCosts(ctx, programs); err != nil {
			return err
		}
		costs = append(costs, cost)
	}
	tellSites(costs)
	return nil
}

// adminClient returns a client of kube-apiserver with the rights of the administrator and no rate
// limit.
func adminClient(in installation) (client.Client, error) {
	config := in.cluster.Config()
	config.QPS = -1
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}

// addSite makes a namespace and its Site.
func addSite(ctx context.Context, objects client.Client, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := objects.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return objects.Create(ctx, &v1alpha1.Site{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}})
}

// awaitReady returns when exactly count Sites are Ready. interval is the time between two counts.
func awaitReady(ctx context.Context, objects client.Client, count int, interval time.Duration) error {
	return wait.PollUntilContextTimeout(ctx, interval, sitesDeadline, true, func(ctx context.Context) (bool, error) {
		list := &v1alpha1.SiteList{}
		if err := objects.List(ctx, list); err != nil {
			return false, err
		}
		ready := 0
		for i := range list.Items {
			if meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, v1alpha1.ConditionReady) {
				ready++
			}
		}
		return ready == count, nil
	})
}

// idleCosts returns what programs use in the time idle, during which no client sends requests.
func idleCosts(ctx context.Context, programs map[string]string) (map[string]programCost, error) {
	time.Sleep(drain)
	before := map[string]programCost{}
	for name, address := range programs {
		cost, err := readCost(ctx, address)
		if err != nil {
			return nil, err
		}
		before[name] = cost
	}
	time.Sleep(idle)
	costs := map[string]programCost{}
	for name, address := range programs {
		cost, err := readCost(ctx, address)
		if err != nil {
			return nil, err
		}
		cost.cpu -= before[name].cpu
		cost.requests -= before[name].requests
		costs[name] = cost
	}
	return costs, nil
}

var (
	heapMetric     = regexp.MustCompile(`(?m)^go_memstats_heap_inuse_bytes (\S+)$`)
	cpuMetric      = regexp.MustCompile(`(?m)^process_cpu_seconds_total (\S+)$`)
	requestsMetric = regexp.MustCompile(`(?m)^rest_client_requests_total\{[^}]*\} (\S+)$`)
)

// readCost reads what a program uses from its metrics. cpu and requests are totals since its start.
func readCost(ctx context.Context, address string) (cost programCost, err error) {
	text, err := fetch(ctx, address)
	if err != nil {
		return cost, err
	}
	for _, metric := range []struct {
		pattern *regexp.Regexp
		to      *float64
	}{
		{memoryMetric, &cost.resident},
		{heapMetric, &cost.heap},
		{cpuMetric, &cost.cpu},
		{requestsMetric, &cost.requests},
	} {
		found := metric.pattern.FindAllSubmatch(text, -1)
		if len(found) == 0 {
			return cost, fmt.Errorf("%s has no metric %s", address, metric.pattern)
		}
		for _, match := range found {
			value, err := strconv.ParseFloat(string(match[1]), 64)
			if err != nil {
				return cost, err
			}
			*metric.to += value
		}
	}
	return cost, nil
}

func tellSites(costs []sitesCost) {
	const mebi = 1 << 20
	names := slices.Sorted(maps.Keys(costs[0].programs))
	fmt.Print("| sites | added | until all are Ready | per added site |")
	for _, name := range names {
		fmt.Printf(" %s: resident | heap | CPU, idle | requests, idle |", name)
	}
	fmt.Print("\n|---|---|---|---|")
	for range names {
		fmt.Print("---|---|---|---|")
	}
	fmt.Println()
	for _, cost := range costs {
		fmt.Printf("| %d | %d | %.1f s | %.0f ms |", cost.sites, cost.added, cost.ready.Seconds(), cost.ready.Seconds()*1000/float64(cost.added))
		for _, name := range names {
			c := cost.programs[name]
			fmt.Printf(" %.0f MiB | %.1f MiB | %.2f s/min | %.0f/min |", c.resident/mebi, c.heap/mebi, c.cpu, c.requests)
		}
		fmt.Println()
	}
}
