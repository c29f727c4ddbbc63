package plugin

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
)

var _ = Describe("token", func() {
	It("issues a token that the Site accepts and kube-apiserver does not", func(ctx SpecContext) {
		type issued struct {
			Token, Audience     string
			IssuedAt, ExpiresAt time.Time
		}
		got := decode[issued](ok(ctx, "token", "demo", "-n", "demo", "--as-service-account", "editor", "--duration", "20m", "-o", "json"))
		Expect(got.Audience).To(Equal("paddock.health/demo/demo"))
		Expect(got.ExpiresAt.Sub(got.IssuedAt)).To(BeNumerically("~", 20*time.Minute, time.Minute))
		Expect(request(ctx, http.MethodGet, "/fhir/patient", got.Token, "").StatusCode).To(Equal(http.StatusOK))
		Expect(fails(ctx, "status", "--token", got.Token, "--kubeconfig", withoutUser(ctx))).To(ContainSubstring("Unauthorized"))
	})

	It("keeps a token in a file of the user until it is interrupted", func(ctx SpecContext) {
		file := filepath.Join(GinkgoT().TempDir(), "token")
		Expect(os.WriteFile(file, []byte("old"), 0o644)).To(Succeed())
		session := start("token", "demo", "-n", "demo", "--as-service-account", "editor", "--file", file, "--renew")
		Eventually(session.Err).Within(patience).Should(gbytes.Say(`token has a token until \S+Z\.\n`))
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(request(ctx, http.MethodGet, "/fhir/patient", strings.TrimSpace(string(text)), "").StatusCode).To(Equal(http.StatusOK))
		info, err := os.Stat(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
		interrupt(session)
		Expect(session.Out.Contents()).To(BeEmpty(), "the token is only in the file")
	})

	It("fails for an account that does not exist", func(ctx SpecContext) {
		Expect(fails(ctx, "token", "demo", "-n", "demo", "--as-service-account", "absent")).To(ContainSubstring(`request a token of the ServiceAccount demo/absent: `))
	})
})

// withoutUser returns a kubeconfig for the cluster that has no credentials.
func withoutUser(ctx SpecContext) string {
	GinkgoHelper()
	config := kubectl(ctx, "", "config", "view", "--raw", "--minify", "-o", "json")
	stripped := decode[map[string]any](config)
	for _, user := range stripped["users"].([]any) {
		user.(map[string]any)["user"] = map[string]any{}
	}
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(path, []byte(encode(stripped)), 0o600)).To(Succeed())
	return path
}
