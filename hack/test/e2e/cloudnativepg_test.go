//go:build linux

package e2e

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	ashNamespace = "clinic-ash"
	ashCluster   = "clusters.postgresql.cnpg.io/paddock-postgres"
)

// describeCloudNativePG are the specs of a site with three instances of Postgres, run by
// CloudNativePG's own operator.
func describeCloudNativePG() {
	var ash *client

	It("says what is missing to a site that asks for CloudNativePG", func(ctx SpecContext) {
		apply(ctx, "cloudnative-pg.yaml")
		kubectl(ctx, "-n", ashNamespace, "wait", "--for=jsonpath={.status.conditions[?(@.type==\"Ready\")].reason}=EngineMissing", "--timeout=1m", "site/ash")
	}, NodeTimeout(2*time.Minute))

	It("makes it Ready once its operator is there, with three instances", func(ctx SpecContext) {
		kubectl(ctx, "apply", "--server-side", "--filename", filepath.Join(binDir, "e2e", "cloudnative-pg.yaml"))
		kubectl(ctx, "-n", "cnpg-system", "rollout", "status", "--timeout=2m", "deployment/cnpg-controller-manager")
		awaitSites(ctx, "ash")
		awaitInstances(ctx, 3)
		ash = newClient(ctx, "ash")
		Eventually(ctx, func() (int, error) {
			status, _, err := ash.put(ctx, "rex", "Smith")
			return status, err
		}).Should(Or(Equal(http.StatusCreated), Equal(http.StatusOK))) // a request without a response may have created it
		Expect(inPrimary(ctx, "show synchronous_standby_names")).To(HavePrefix("ANY 1 "))
	}, NodeTimeout(8*time.Minute))

	It("lets a standby answer stale searches, and no others", func(ctx SpecContext) {
		Eventually(ctx, func() (string, error) { return ash.age(ctx, "max-stale=60") }).WithTimeout(2 * time.Minute).Should(MatchRegexp(`^\d+$`))
		Expect(ash.age(ctx, "")).To(BeEmpty())
	}, NodeTimeout(3*time.Minute))

	It("loses no write when the primary of three is deleted", func(ctx SpecContext) {
		before := primary(ctx)
		disturb(ctx, []*client{ash}, "primary", func() {
			kubectl(ctx, "-n", ashNamespace, "delete", "pod", before, "--grace-period=0", "--force", "--wait=false")
			Eventually(ctx, func() string { return primary(ctx) }).ShouldNot(Equal(before))
		})
		awaitInstances(ctx, 3)
		Expect(ash.family(ctx, "rex")).To(Equal("Smith"))
	}, NodeTimeout(6*time.Minute))

	It("loses no write when the primary of three ends as a drain has it", func(ctx SpecContext) {
		before := primary(ctx)
		disturb(ctx, []*client{ash}, "switchover", func() {
			kubectl(ctx, "-n", ashNamespace, "delete", "pod", before, "--wait=false")
			Eventually(ctx, func() string { return primary(ctx) }).ShouldNot(Equal(before))
		})
		awaitInstances(ctx, 3)
	}, NodeTimeout(6*time.Minute))

	It("takes its database along on request", func(ctx SpecContext) {
		kubectl(ctx, "-n", ashNamespace, "patch", "site", "ash", "--type=merge", "--patch", `{"spec":{"deletionPolicy":"Delete"}}`)
		Eventually(ctx, func() error {
			_, err := node.Kubectl(ctx, "delete", "namespace", ashNamespace, "--ignore-not-found", "--timeout=1m")
			return err
		}).Should(Succeed())
		Expect(kubectl(ctx, "get", "siteclaims", "-o", "name")).NotTo(ContainSubstring("/ash"))
	}, NodeTimeout(4*time.Minute))
}

// awaitInstances returns when so many instances of the database are ready.
func awaitInstances(ctx context.Context, count int) {
	GinkgoHelper()
	Eventually(ctx, func() (string, error) {
		return node.Kubectl(ctx, "-n", ashNamespace, "get", "pods", "--selector=cnpg.io/podRole=instance", "-o",
			"jsonpath={range .items[*]}{.status.containerStatuses[0].ready} {end}")
	}).WithTimeout(4*time.Minute).Should(Equal(strings.Repeat("true ", count)), func() string { return podsOf(ctx, ashNamespace) })
}

// primary is the name of the instance that takes writes.
func primary(ctx context.Context) string {
	GinkgoHelper()
	return kubectl(ctx, "-n", ashNamespace, "get", ashCluster, "-o", "jsonpath={.status.currentPrimary}")
}

// inPrimary asks the primary for one value.
func inPrimary(ctx context.Context, query string) string {
	GinkgoHelper()
	return kubectl(ctx, "-n", ashNamespace, "exec", primary(ctx), "--container=postgres", "--",
		"psql", "--username=postgres", "--no-align", "--tuples-only", "--command="+query)
}
