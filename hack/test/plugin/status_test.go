package plugin

import (
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("status", func() {
	It("shows the Sites of all namespaces, as a table, JSON and YAML", func(ctx SpecContext) {
		table := ok(ctx, "status", "-A")
		// Other specs make Sites of their own, before or after this one.
		Expect(table).To(MatchRegexp(`^NAMESPACE +NAME +SITE ID +STORAGE +READY +REASON +NEAR LIMIT +WEBHOOKS +PENDING +FAILING +DISABLED +URL\n`))
		Expect(table).To(MatchRegexp(`(?m)^demo +demo +demo +Cluster +True +Serving +no +\d+ +\d+ +\d+ +\d+ +http://\S+/site/demo$`))
		Expect(table).To(MatchRegexp(`(?m)^waiting +waiting +waiting +Postgres/external +False +SecretNotFound +no +0 +0 +0 +0`))
		Expect(table).NotTo(ContainSubstring("\x1b"), "the output is no terminal")

		type site struct {
			Namespace, SiteID, Ready, Reason, Message string
			Limits                                    struct{ RequestsPerSecond int }
		}
		got := decode[struct{ Items []site }](ok(ctx, "status", "waiting", "-n", "waiting", "-o", "json"))
		Expect(got.Items).To(HaveLen(1))
		Expect(got.Items[0].Message).To(ContainSubstring("absent-db"))
		got.Items[0].Message = ""
		want := site{Namespace: "waiting", SiteID: "waiting", Ready: "False", Reason: "SecretNotFound"}
		want.Limits.RequestsPerSecond = 7
		Expect(got.Items[0]).To(Equal(want))
		Expect(ok(ctx, "status", "-n", "demo", "-o", "yaml")).To(ContainSubstring("\n  siteID: demo\n"))
	})

	It("says which Site is missing, and that there are none", func(ctx SpecContext) {
		Expect(fails(ctx, "status", "absent", "-n", "demo")).To(ContainSubstring(`sites.paddock.health "absent" not found`))
		got := run(ctx, "status", "-n", "default")
		Expect(got).To(Equal(result{0, "", "There are no Sites.\n"}))
	})

	It("runs as a plugin of kubectl, and as paddock", func(ctx SpecContext) {
		Eventually(func(g Gomega) { // the status of Webhooks may change between the two commands
			direct := ok(ctx, "status", "-A")
			plugin := exec.Command(filepath.Join(bin, "kubectl"), "paddock", "status", "-A")
			plugin.Env = append(os.Environ(), "PATH="+bin, "KUBECONFIG="+cluster.Kubeconfig())
			g.Expect(finish(ctx, plugin)).To(Equal(result{0, direct, ""}))
		}).WithContext(ctx).Should(Succeed())

		link := filepath.Join(GinkgoT().TempDir(), "paddock")
		Expect(os.Symlink(filepath.Join(bin, "kubectl-paddock"), link)).To(Succeed())
		got := finish(ctx, exec.Command(link, "bogus"))
		Expect(got.code).To(Equal(2))
		Expect(got.stderr).To(HaveSuffix("See paddock --help.\n"))
	})

	It("completes Sites and namespaces", func(ctx SpecContext) {
		Expect(ok(ctx, "__complete", "status", "-n", "waiting", "")).To(HavePrefix("waiting\n"))
		Expect(ok(ctx, "__complete", "status", "-n", "wai")).To(HavePrefix("waiting\n"))
		Expect(ok(ctx, "__complete", "status", "-n", "waiting", "x")).To(HavePrefix(":"))
	})
})
