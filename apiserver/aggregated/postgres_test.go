package aggregated_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// startPostgresSite makes the site demo-postgres with a database, and returns a token of
// the editor beside it.
func startPostgresSite(ctx context.Context) string {
	GinkgoHelper()
	dir, err := os.MkdirTemp("", "paddock-aggregation-postgres")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	server, err := localpostgres.Start(ctx, localpostgres.Options{Dir: dir, UnsafeNoFsync: true, Secure: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	_, err = server.CreateDatabase(ctx, "demo", "first")
	Expect(err).NotTo(HaveOccurred())
	uri, err := url.Parse(server.URL("demo"))
	Expect(err).NotTo(HaveOccurred())
	uri.User, uri.RawQuery = url.UserPassword("demo", "first"), ""
	Expect(paddock.Apply(ctx, filepath.Join("config", "samples", "postgres"))).To(Succeed())
	must(ctx, "create", "secret", "generic", "demo-db", "-n", "demo-postgres", "--type=paddock.health/dsn", "--from-literal=uri="+uri.String())
	return startSite(ctx, "demo-postgres", "demo-postgres")
}
