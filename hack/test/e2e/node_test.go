//go:build linux

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The node", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		apply(ctx, "node.yaml")
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "delete", "namespace", "node", "--wait=false") })
	})

	It("is Ready", func(ctx SpecContext) {
		Expect(kubectl(ctx, "get", "nodes")).To(MatchRegexp(`node +Ready`))
	})

	It("runs a pod of an imported image that may do next to nothing", func(ctx SpecContext) {
		kubectl(ctx, "-n", "node", "wait", "--for=condition=Ready", "--timeout=2m", "pod/database", "pod/client")
		Expect(kubectl(ctx, "-n", "node", "logs", "database")).To(ContainSubstring("database system is ready to accept connections"))
	})

	It("binds a claim to a volume that the pod's user can write to", func(ctx SpecContext) {
		Expect(kubectl(ctx, "-n", "node", "get", "persistentvolumeclaim", "data", "-o", "jsonpath={.status.phase}")).To(Equal("Bound"))
		Expect(kubectl(ctx, "-n", "node", "exec", "database", "--", "stat", "--format=%u", "/var/lib/postgresql/data/pgdata")).To(Equal("999\n"))
	})

	// A pod is Ready before the node's proxy and DNS have heard of it.
	It("resolves the name of a Service, and leads it to the pod", func(ctx SpecContext) {
		query := "select current_user || ' in ' || current_database()"
		Eventually(ctx, func() (string, error) {
			return node.Kubectl(ctx, "-n", "node", "exec", "client", "--", "psql", "--host=database.node.svc.cluster.local",
				"--username=keeper", "--dbname=records", "--no-align", "--tuples-only", "--command="+query)
		}).Should(Equal("keeper in records\n"))
		Expect(kubectl(ctx, "-n", "node", "exec", "client", "--", "getent", "hosts", "kubernetes.default")).To(ContainSubstring("10.0.0.1"))
	})
})
