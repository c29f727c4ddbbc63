package acceptance

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

var _ = Describe("A read replica", Serial, func() {
	const patients = "/site/demo-postgres/fhir/patient"

	It("answers stale searches from when its address is in the Secret until it is killed", func(ctx SpecContext) {
		dir, err := os.MkdirTemp("", "paddock-processes-standby")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(os.RemoveAll, dir)
		Expect(os.Chmod(dir, 0o755)).To(Succeed()) //nolint:gosec // the user of Postgres must enter it
		standby, err := localpostgres.Start(ctx, localpostgres.Options{Dir: filepath.Join(dir, "standby"), UnsafeNoFsync: true, StandbyOf: postgres})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(standby.Stop)
		kubectl(ctx, "wait", "--for=condition=IndexReady", "--timeout=60s", "-n", "demo-postgres", "site/demo-postgres")
		search := func(base string, header map[string]string) (status int, age string) {
			GinkgoHelper()
			answer := send(request{method: "GET", url: base + patients + "?_count=1", header: header})
			return answer.status, answer.header.Get("Age")
		}
		stale := map[string]string{"Cache-Control": "max-stale=60"}
		for _, base := range paddock.URLs {
			status, age := search(base, stale)
			Expect(status).To(Equal(http.StatusOK))
			Expect(age).To(BeEmpty())
		}

		at, err := url.Parse(standby.URL("demo"))
		Expect(err).NotTo(HaveOccurred())
		at.User = url.User("demo")
		kubectl(ctx, "patch", "secret", "demo-db", "-n", "demo-postgres", "-p", fmt.Sprintf(`{"stringData":{"uri-replica":%q}}`, at))
		DeferCleanup(func(ctx SpecContext) {
			kubectl(ctx, "patch", "secret", "demo-db", "-n", "demo-postgres", "-p", `{"data":{"uri-replica":null}}`)
		})
		for _, base := range paddock.URLs {
			Eventually(func() string {
				_, age := search(base, stale)
				return age
			}).Should(MatchRegexp(`^\d+$`))
			status, age := search(base, nil)
			Expect(status).To(Equal(http.StatusOK))
			Expect(age).To(BeEmpty())
		}

		Expect(standby.Stop()).To(Succeed())
		for _, base := range paddock.URLs {
			for range 3 {
				status, age := search(base, stale)
				Expect(status).To(Equal(http.StatusOK))
				Expect(age).To(BeEmpty())
			}
		}
	})
})
