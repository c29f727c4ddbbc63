package robustness

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"

	"github.com/paddock-health/paddock/hack/test/robustness/history"
)

// verify reads everything back from every server and judges it.
func verify(ctx context.Context, k kind, log *recorder) {
	GinkgoHelper()
	for _, health := range paddock.HealthURLs[:2] {
		Eventually(ctx, requestsInFlight).WithArguments(health).Should(ContainSubstring("paddock_http_requests_in_flight 0\n"))
	}
	var clients []*client
	for _, server := range paddock.URLs[:2] {
		clients = append(clients, newClient(k, server))
	}
	ops := log.all()
	readings := readAtRest(ctx, clients, ops)
	report.checked(readings)
	judge(history.Check(ops, readings), ops, readings)
	judge(history.CheckLinearizable(ops, readings), ops, readings)
	for _, c := range clients {
		// A replica's index follows what another one wrote within a second.
		Eventually(ctx, func() ([]history.Violation, error) {
			found, err := c.search(ctx)
			return history.CheckSearch(found, readings), err
		}).Should(BeEmpty())
	}
	Expect(log.undesigned()).To(BeEmpty())
}

// requestsInFlight reads the metrics of a server.
func requestsInFlight(ctx context.Context, health string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, health+"/metrics", nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return string(content), err
}

// readAtRest reads until two readings in a row are the same. What a client hung up
// on, or a killed server had under way, may land in the cluster when all servers are
// done with it: between one server's reading and the next, where disks are slow.
func readAtRest(ctx context.Context, clients []*client, ops []history.Operation) []history.Reading {
	GinkgoHelper()
	var readings []history.Reading
	Eventually(ctx, func() string {
		before := readings
		readings = readAll(ctx, clients, recordsOf(ctx, clients, ops))
		return cmp.Diff(before, readings, cmpopts.IgnoreFields(history.Reading{}, "Start", "End"))
	}).Should(BeEmpty())
	return readings
}

// recordsOf names all records: those that were written to, and those that a search
// finds because the answer to their create was lost.
func recordsOf(ctx context.Context, clients []*client, ops []history.Operation) []string {
	GinkgoHelper()
	names := history.Records(ops, nil)
	for _, c := range clients {
		found, err := c.search(ctx)
		Expect(err).NotTo(HaveOccurred())
		names = slices.AppendSeq(names, maps.Keys(found.Found))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// readAll reads the histories of records from every server.
func readAll(ctx context.Context, clients []*client, records []string) []history.Reading {
	GinkgoHelper()
	readings := make([]history.Reading, len(records)*len(clients))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i, id := range records {
		for j, c := range clients {
			group.Go(func() (err error) {
				readings[i*len(clients)+j], err = c.history(ctx, id)
				return err
			})
		}
	}
	Expect(group.Wait()).To(Succeed())
	return readings
}

// shownViolations is how many violations a failure spells out.
const shownViolations = 20

// judge fails the spec if there are violations, and tells the story of the first.
func judge(violations []history.Violation, ops []history.Operation, readings []history.Reading) {
	GinkgoHelper()
	if len(violations) == 0 {
		return
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d violations\n", len(violations))
	for _, v := range violations[:min(len(violations), shownViolations)] {
		fmt.Fprintf(&text, "  %s\n", v)
	}
	record := violations[0].Record
	fmt.Fprintf(&text, "all about %s:\n", record)
	for i := range ops {
		if ops[i].Record == record {
			fmt.Fprintf(&text, "  %s\n", &ops[i])
		}
	}
	for _, r := range readings {
		if r.Record == record && r.Final {
			fmt.Fprintf(&text, "  %s reads\n", r.By)
			for _, v := range r.Versions {
				fmt.Fprintf(&text, "    %d %s %s deleted=%t %s\n", v.Number, v.UID, v.Token, v.Deleted, v.Damage)
			}
		}
	}
	Fail(text.String())
}
