// Package console_test drives the web console and the API reference of running sites in headless
// Chromium. The steps are in console.mjs and reference.mjs; this package starts what they need.
package console_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/dev/localcluster"
	"github.com/paddock-health/paddock/hack/dev/localissuer"
	"github.com/paddock-health/paddock/hack/dev/localpaddock"
	"github.com/paddock-health/paddock/hack/dev/localreceiver"
	"github.com/paddock-health/paddock/hack/dev/module"
)

var screenshots = flag.String("screenshots", "", "folder for screenshots of the pages, such as docs/images")

func TestConsole(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Console")
}

const (
	app = "../../../apiserver/console/app"
	// siteID is the site whose console is driven, and the audience of its issuer. hiddenID is a hidden one.
	siteID, hiddenID = "oak", "elm"
	webhookID        = "0198c4f2-7d1e-7c3a-9b5f-00000000f001"
)

// tenantManifest is a namespace of a Site and its callers: the siteID. editor may read and write
// records and get the Site, alice of the issuer only the first, auditor also read the audit log, and stranger may do nothing.
const tenantManifest = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: editor, namespace: %[1]s}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: auditor, namespace: %[1]s}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: stranger, namespace: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editors, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-editor}
subjects:
- {kind: ServiceAccount, name: editor, namespace: %[1]s}
- {kind: User, apiGroup: rbac.authorization.k8s.io, name: "site:%[1]s:alice"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: viewers, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-viewer}
subjects: [{kind: ServiceAccount, name: editor, namespace: %[1]s}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: admins, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-admin}
subjects: [{kind: ServiceAccount, name: auditor, namespace: %[1]s}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: auditors, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-auditor}
subjects: [{kind: ServiceAccount, name: auditor, namespace: %[1]s}]
---
`

// sitesManifest has the Sites and a webhook: siteID, URL and CA of the issuer, hiddenID, webhookID, URL
// and CA of the receiver.
const sitesManifest = `
apiVersion: paddock.health/v1alpha1
kind: Site
metadata: {name: %[1]s, namespace: %[1]s}
spec:
  timeZone: Europe/Vienna
  access:
    issuers:
    - name: clinic
      url: %[2]s
      caBundle: %[3]s
      audiences: [%[1]s]
      console: {clientID: console, scopes: [openid, offline_access]}
  events:
    sources:
    - {type: Practitioner, created: user.created, updated: user.updated}
---
apiVersion: paddock.health/v1alpha1
kind: Site
metadata: {name: %[4]s, namespace: %[4]s}
spec: {access: {hidden: true}}
---
apiVersion: paddock.health/v1alpha1
kind: WebhookEvent
metadata: {name: staff, namespace: %[1]s}
spec: {eventType: user.created, enabled: true}
---
apiVersion: paddock.health/v1alpha1
kind: Webhook
metadata: {name: %[5]s, namespace: %[1]s}
spec: {eventType: user.created, url: %[6]q, caBundle: %[7]s, active: true, retry: {delaysSeconds: []}}
`

var _ = Describe("The console", func() {
	It("works in a browser", func(ctx SpecContext) {
		install(ctx, app)
		install(ctx, ".")
		run(ctx, app, nil, "npm", "test", "--silent")

		bin, err := module.Bin()
		Expect(err).NotTo(HaveOccurred())
		dir := GinkgoT().TempDir()
		issuer, err := localissuer.Start(ctx, filepath.Join(bin, "issuer"), dir)
		Expect(err).NotTo(HaveOccurred(), "the program comes from `make issuer`")
		DeferCleanup(issuer.Stop)
		receiver := localreceiver.Start()
		DeferCleanup(receiver.Close)
		cluster, err := localcluster.Start(ctx, localcluster.Options{Dir: filepath.Join(dir, "cluster"), UnsafeNoFsync: true, Out: GinkgoWriter})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(cluster.Stop)
		paddock, err := localpaddock.Start(ctx, cluster, localpaddock.Options{BinDir: bin, SourceDir: filepath.Dir(bin)})
		Expect(err).NotTo(HaveOccurred(), "the programs come from `make build`")

		By("making two sites with callers, an issuer and a webhook")
		ca := base64.StdEncoding.EncodeToString([]byte(issuer.CA))
		manifest := filepath.Join(dir, "sites.yaml")
		content := fmt.Sprintf(tenantManifest, siteID) + fmt.Sprintf(tenantManifest, hiddenID) +
			fmt.Sprintf(sitesManifest, siteID, issuer.URL, ca, hiddenID, webhookID, receiver.URL+"/hook", receiver.CABundle())
		Expect(os.WriteFile(manifest, []byte(content), 0o600)).To(Succeed())
		kubectl := func(args ...string) {
			GinkgoHelper()
			_, err := paddock.Kubectl(ctx, args...)
			Expect(err).NotTo(HaveOccurred())
		}
		kubectl("apply", "--filename", manifest)
		for _, site := range []string{siteID, hiddenID} {
			kubectl("wait", "--for=condition=Ready", "--timeout=60s", "--namespace", site, "site/"+site)
		}
		kubectl("wait", "--for=condition=IssuersReady", "--timeout=60s", "--namespace", siteID, "site/"+siteID)
		kubectl("wait", "--for=condition=Active", "--timeout=60s", "--namespace", siteID, "webhook/"+webhookID)
		base := paddock.URLs[0]
		Expect(issuer.Register(ctx, localissuer.Client{ID: "console", Audience: []string{siteID}, RedirectURIs: []string{base + "/site/" + siteID + "/console/callback"}})).To(Succeed())

		tokens := map[string]string{}
		for name, account := range map[string][2]string{
			"editor": {siteID, "editor"}, "auditor": {siteID, "auditor"},
			"hidden": {hiddenID, "editor"}, "stranger": {hiddenID, "stranger"},
		} {
			tokens[name], err = paddock.Token(ctx, account[0], account[1], "paddock.health/"+account[0]+"/"+account[0], time.Hour)
			Expect(err).NotTo(HaveOccurred())
		}
		for name, id := range map[string]string{"editor": siteID, "hidden": hiddenID} {
			// The API server sees Sites and rights a moment after the controller.
			Eventually(func() (int, error) {
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/site/"+id+"/fhir/Patient?_count=0", nil)
				if err != nil {
					return 0, err
				}
				request.Header.Set("Authorization", "Bearer "+tokens[name])
				response, err := http.DefaultClient.Do(request)
				if err != nil {
					return 0, err
				}
				return response.StatusCode, response.Body.Close()
			}).WithContext(ctx).WithTimeout(time.Minute).Should(Equal(http.StatusOK))
		}
		expired := localissuer.With(issuer.Claims(siteID, siteID), "exp", time.Now().Add(-time.Hour).Unix())
		tokens["expired"], err = issuer.SignClaims(ctx, expired)
		Expect(err).NotTo(HaveOccurred())

		settings, err := json.Marshal(map[string]any{
			"base": base, "site": siteID, "hidden": hiddenID, "tokens": tokens, "issuer": issuer.URL, "webhook": webhookID, "screenshots": folder(*screenshots),
		})
		Expect(err).NotTo(HaveOccurred())
		began := time.Now()
		output := run(ctx, ".", []string{"CONSOLE_TEST=" + string(settings)}, "node", "--test", "--test-concurrency=1", "--test-reporter=spec", "reference.mjs", "console.mjs")
		fmt.Printf("%s\nthe browser took %.1f s\n", output, time.Since(began).Seconds())
	}, NodeTimeout(10*time.Minute))
})

// install installs the packages of a folder, unless they are those of its lock file already.
func install(ctx SpecContext, dir string) {
	GinkgoHelper()
	wanted, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	Expect(err).NotTo(HaveOccurred())
	stamp := filepath.Join(dir, "node_modules", ".installed")
	if have, err := os.ReadFile(stamp); err == nil && bytes.Equal(have, wanted) {
		return
	}
	run(ctx, dir, nil, "npm", "ci", "--silent", "--ignore-scripts")
	Expect(os.WriteFile(stamp, wanted, 0o644)).To(Succeed())
}

// run runs a program in a folder and returns its output.
func run(ctx SpecContext, dir string, env []string, name string, args ...string) string {
	GinkgoHelper()
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = dir
	command.Env = append(os.Environ(), env...)
	output, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s %v:\n%s", name, args, output)
	return string(output)
}

// folder returns the absolute path of a folder below the repository, or nothing.
func folder(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	bin, err := module.Bin()
	Expect(err).NotTo(HaveOccurred())
	return filepath.Join(filepath.Dir(bin), name)
}
