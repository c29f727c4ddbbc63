package move

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const poolClass = `
apiVersion: paddock.health/v1alpha1
kind: SiteClass
metadata: {name: pooled}
spec:
  storage:
    type: Postgres
    postgres:
      pool:
        databases:
        - {name: pool-a, secretRef: {name: pool-a}, capacity: 2}
        - {name: pool-b, secretRef: {name: pool-b}, capacity: 1}
`

// poolSpecs begin with the database second, and end with a database of a pool.
func poolSpecs() {
	status := func(ctx context.Context, field string) string {
		return kubectl(ctx, "get", "site", "demo", "-n", "demo", "-o", "jsonpath={.status."+field+"}")
	}

	It("moves into the pool of its class, and away from a database that is drained", func(ctx SpecContext) {
		for _, database := range []string{"pool-a", "pool-b"} {
			uri, err := postgres.CreateDatabase(ctx, database, database)
			Expect(err).NotTo(HaveOccurred())
			Expect(paddock.SetSecret(ctx, "paddock-system", database, "paddock.health/dsn", map[string]string{"uri": uri})).To(Succeed())
		}
		apply(ctx, poolClass)
		kubectl(ctx, "patch", "site", "demo", "-n", "demo", "--type=merge", "-p", `{"spec":{"className":"pooled"}}`)
		key := status(ctx, "siteKey")
		l := startLoad("e")
		got := run(ctx, "move", "demo", "-n", "demo", "--to", "pool")
		Expect(got.code).To(Equal(0), "%+v", got)
		Expect(status(ctx, "database")).To(Equal("pool-a"))
		got = run(ctx, "move", "demo", "-n", "demo", "--confirm")
		Expect(got.code).To(Equal(0), "%+v", got)
		Expect(kubectl(ctx, "get", "site", "demo", "-n", "demo", "-o", "jsonpath={.spec.storage.postgres}")).To(Equal(`{"pool":{}}`))
		expectNothing(ctx, "second")

		By("draining the database")
		kubectl(ctx, "patch", "siteclass", "pooled", "--type=json", "-p", `[{"op":"add","path":"/spec/storage/postgres/pool/databases/0/drain","value":true}]`)
		Eventually(status).WithContext(ctx).WithArguments("database").WithTimeout(patience).Should(Equal("pool-b"))
		Eventually(func(ctx context.Context) string {
			return kubectl(ctx, "get", "siteclass", "pooled", "-o", "jsonpath={range .status.databases[*]}{.name} {.sites},{end}") +
				kubectl(ctx, "get", "sitemoves", "-n", "demo", "-l", "paddock.health/drain=pooled", "-o", "name")
		}).WithContext(ctx).WithTimeout(patience).Should(Equal("pool-a 0,pool-b 1,"))
		l.stop(ctx)
		Expect(status(ctx, "siteKey")).To(Equal(key))
		expectNothing(ctx, "pool-a")
	})
}
