package main

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
)

// writeRequestsMetric matches the counters of writes in kube-apiserver's metrics: resource,
// subresource, verb and value. A server-side apply has the verb APPLY.
var writeRequestsMetric = regexp.MustCompile(`(?m)^apiserver_request_total\{.*,resource="([^"]*)",scope="[^"]*",subresource="([^"]*)",verb="(POST|PUT|PATCH|APPLY|DELETE|DELETECOLLECTION)",.*\} (\S+)$`)

// writeRequests returns how many write requests kube-apiserver has had, by verb and resource. Those for
// Leases are not counted.
func writeRequests(ctx context.Context, in installation) (map[string]float64, error) {
	config := in.cluster.Config()
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	text, err := fetchWith(ctx, httpClient, config.Host+"/metrics")
	if err != nil {
		return nil, err
	}
	writes := map[string]float64{}
	for _, match := range writeRequestsMetric.FindAllSubmatch(text, -1) {
		name := string(match[3]) + " " + string(match[1])
		if subresource := string(match[2]); subresource != "" {
			name += "/" + subresource
		}
		value, err := strconv.ParseFloat(string(match[4]), 64)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", match[0], err)
		}
		if string(match[1]) != "leases" {
			writes[name] += value
		}
	}
	if len(writes) == 0 {
		return nil, fmt.Errorf("%s/metrics has no counter of writes", config.Host)
	}
	return writes, nil
}

// tellIdleWrites reports the write requests to kube-apiserver in a minute without requests of clients.
func (f *fleet) tellIdleWrites(ctx context.Context) error {
	if err := settle(ctx); err != nil {
		return err
	}
	before, err := writeRequests(ctx, f.in)
	if err != nil {
		return err
	}
	time.Sleep(idle)
	after, err := writeRequests(ctx, f.in)
	if err != nil {
		return err
	}
	total, kinds := 0.0, ""
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if n := after[name] - before[name]; n > 0 {
			total += n
			kinds += fmt.Sprintf(", %s: %.0f", name, n)
		}
	}
	fmt.Printf("\nAt rest: %.2f writes per second to kube-apiserver, not counting Leases; measured for %s%s\n", total/idle.Seconds(), idle, kinds)
	return nil
}

// reviews returns how many reviews of tokens and rights kube-apiserver has made.
func reviews(ctx context.Context, in installation) (float64, error) {
	writes, err := writeRequests(ctx, in)
	return writes["POST tokenreviews"] + writes["POST subjectaccessreviews"], err
}
