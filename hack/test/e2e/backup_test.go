//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/dev/locals3"
)

// describeBackup are the specs of a CronJob that backs up a site to S3. Its program is tested in
// hack/test/chart.
func describeBackup() {
	It("backs up a site by a CronJob, which says when it last succeeded", func(ctx SpecContext) {
		s3, err := locals3.StartAt(ctx, node.Address().String(), binDir, GinkgoT().TempDir(), GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(s3.Stop)
		kubectl(ctx, "-n", namespace, "create", "secret", "generic", "s3",
			"--from-literal=AWS_ACCESS_KEY_ID="+locals3.AccessKeyID, "--from-literal=AWS_SECRET_ACCESS_KEY="+locals3.SecretAccessKey)
		upgrade(ctx, "--set", "backup.sites[0].namespace=clinic-oak,backup.sites[0].name=oak,backup.s3.bucket="+locals3.Bucket+
			",backup.s3.credentialsSecret=s3,backup.s3.endpoint="+s3.Endpoint)
		job := kubectl(ctx, "-n", namespace, "get", "cronjobs", "--selector=paddock.health/site-name=oak", "-o", "name")
		kubectl(ctx, "-n", namespace, "create", "job", "backup-now", "--from="+strings.TrimSpace(job))
		// It has ended when one of the conditions is there.
		Eventually(ctx, func() (string, error) {
			return node.Kubectl(ctx, "-n", namespace, "get", "job", "backup-now", "-o", "jsonpath={.status.conditions[*].type}")
		}).Should(Or(ContainSubstring("Complete"), ContainSubstring("Failed")))
		Expect(kubectl(ctx, "-n", namespace, "get", "job", "backup-now", "-o", "jsonpath={.status.succeeded}")).To(Equal("1"),
			func() string { return kubectl(ctx, "-n", namespace, "logs", "job/backup-now") })
		manifests, err := filepath.Glob(filepath.Join(s3.Objects, "paddock", "clinic-oak", "oak", "*", "manifest.json"))
		Expect(err).NotTo(HaveOccurred())
		Expect(manifests).To(HaveLen(1))
		text, err := os.ReadFile(manifests[0])
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).To(ContainSubstring(`"Patient"`))
		Eventually(ctx, func() (string, error) {
			return node.Kubectl(ctx, "-n", namespace, "get", "cronjobs", "-o", "jsonpath={.items[*].status.lastSuccessfulTime}")
		}).ShouldNot(BeEmpty())
		upgrade(ctx, "--set-json", "backup.sites=[]")
	}, NodeTimeout(3*time.Minute))
}
