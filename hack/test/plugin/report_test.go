package plugin

import (
	"archive/tar"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// seed is part of all secrets and records that must not be in a report.
const seed = "SeededZebra"

// seededManifest has secrets and data wherever users and the cluster can put them. Events are as
// components of Kubernetes and kubectl write them.
const seededManifest = `
apiVersion: v1
kind: Secret
metadata: {name: headers, namespace: demo}
type: paddock.health/webhook
stringData: {X-Key: %[1]s}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: %[2]s, namespace: demo}
data: {key: %[1]s}
---
apiVersion: paddock.health/v1alpha1
kind: Webhook
metadata: {name: seeded, namespace: demo, annotations: {note: %[1]s}, labels: {note: %[1]s}}
spec:
  {eventType: user.updated, url: "https://hooks.example.org/%[1]s?token=%[1]s", active: false, description: %[1]s, extensions: {key: %[1]s}, fields: [%[1]s],
  headersSecretRef: {name: headers}}
---
apiVersion: v1
kind: Pod
metadata: {name: facade, namespace: demo, labels: {app.kubernetes.io/part-of: paddock, app.kubernetes.io/component: facade, note: %[1]s}}
spec:
  automountServiceAccountToken: false
  containers:
  - {name: apiserver, image: "example.org/paddock:1", args: ["--key=%[1]s"], env: [{name: KEY, value: %[1]s}], resources: {limits: {memory: 64Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: other, namespace: demo}
spec:
  automountServiceAccountToken: false
  containers: [{name: other, image: "example.org/%[2]s:1"}]
---
apiVersion: v1
kind: Event
metadata: {name: facade, namespace: demo}
involvedObject: {apiVersion: v1, kind: Pod, name: facade, namespace: demo}
type: Warning
reason: BackOff
message: "restarting, connection postgres://oak:%[1]s@db:5432/oak"
---
apiVersion: v1
kind: Event
metadata: {name: other, namespace: demo}
involvedObject: {apiVersion: v1, kind: Pod, name: other, namespace: demo}
reason: %[1]s
message: %[1]s
---
apiVersion: v1
kind: Event
metadata: {name: patient, namespace: demo}
involvedObject: {apiVersion: r4.fhir.paddock.health/v1alpha1, kind: Patient, name: %[2]s, namespace: demo}
reason: Updated
message: %[1]s
---
apiVersion: v1
kind: Event
metadata: {name: site, namespace: demo}
involvedObject: {apiVersion: paddock.health/v1alpha1, kind: Site, name: demo, namespace: demo}
type: Normal
reason: KeptEvent
message: "a token eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiI%[1]s.c2ln"
`

var _ = Describe("report", func() {
	It("has what support needs, but no records and no secrets", func(ctx SpecContext) {
		apply(ctx, fmt.Sprintf(seededManifest, seed, strings.ToLower(seed)))
		kubectl(ctx, "", "annotate", "site/demo", "-n", "demo", "note="+seed)
		kubectl(ctx, "", "patch", "pod/facade", "-n", "demo", "--subresource=status", "--type=merge", "-p", `{"status": {"containerStatuses": [{"name": "apiserver",
			"image": "example.org/paddock:1", "imageID": "", "ready": false, "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "`+seed+`"}},
			"lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "message": "`+seed+`"}}}]}}`)
		body := `{"resourceType":"Patient","id":"` + seed + `","name":[{"family":"` + seed + `"}]}`
		Expect(request(ctx, http.MethodPut, "/fhir/patient/"+seed, editor, body).StatusCode).To(Equal(http.StatusCreated))
		kubectl(ctx, "", "wait", "--for=condition=Accepted", "--timeout=60s", "-n", "demo", "webhook/seeded")
		signing := kubectl(ctx, "", "get", "secrets", "-n", "demo", "-o", `go-template={{range .items}}{{with .data.secret}}{{.}} {{end}}{{end}}`)
		Expect(strings.Fields(signing)).NotTo(BeEmpty(), "the controller makes signing secrets")

		path := filepath.Join(GinkgoT().TempDir(), "report.tar.gz")
		got := run(ctx, "report", "-A", "--file", path)
		Expect(got).To(Equal(result{0, path + "\n", ""}))
		info, err := os.Stat(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
		files := unpack(path)
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(name string) bool {
			return strings.HasPrefix(name, "sites/") && !strings.HasPrefix(name, "sites/demo/") && !strings.HasPrefix(name, "sites/waiting/") // the Sites of other specs
		})
		Expect(names).To(Equal([]string{"errors.yaml", "events.yaml", "limits.yaml", "pods.yaml", "sites/demo/demo.yaml", "sites/waiting/waiting.yaml", "versions.yaml", "webhooks.yaml"}))

		By("finding what support needs")
		Expect(files["sites/demo/demo.yaml"]).To(And(ContainSubstring("kind: Site"), ContainSubstring("type: Ready"), ContainSubstring("reason: Serving")))
		Expect(files["sites/waiting/waiting.yaml"]).To(ContainSubstring("reason: SecretNotFound"))
		Expect(files["limits.yaml"]).To(ContainSubstring("requestsPerSecond: 7"))
		Expect(files["webhooks.yaml"]).To(And(ContainSubstring("receiver: https://hooks.example.org\n"), ContainSubstring("type: Accepted")))
		Expect(files["pods.yaml"]).To(And(ContainSubstring("state: Waiting CrashLoopBackOff"), ContainSubstring("lastExit: OOMKilled"), ContainSubstring("lastExitCode: 137"), ContainSubstring("restarts: 3"), ContainSubstring("memory: 64Mi")))
		Expect(files["events.yaml"]).To(And(ContainSubstring("reason: BackOff"), ContainSubstring("reason: KeptEvent"), ContainSubstring("postgres://REDACTED@db:5432/oak")))
		Expect(files["versions.yaml"]).To(And(ContainSubstring("kubernetes: v1."), ContainSubstring("sites.paddock.health:\n  - v1alpha1"), ContainSubstring("example.org/paddock:1"), ContainSubstring("plugin: ")))
		Expect(files["errors.yaml"]).To(Equal("[]\n"))

		By("finding nothing else")
		forbidden := []string{seed, base64.StdEncoding.EncodeToString([]byte(seed)), editor, "PRIVATE KEY", "whsec_"}
		for _, encoded := range strings.Fields(signing) {
			secret, err := base64.StdEncoding.DecodeString(encoded)
			Expect(err).NotTo(HaveOccurred())
			forbidden = append(forbidden, encoded, string(secret))
		}
		for name, text := range files {
			for _, each := range forbidden {
				Expect(strings.ToLower(name+"\n"+text)).NotTo(ContainSubstring(strings.ToLower(each)), "%s", name)
			}
		}

		By("keeping files that exist")
		Expect(fails(ctx, "report", "-A", "--file", path)).To(ContainSubstring("file exists"))
	})

	It("says what the user has no right to read", func(ctx SpecContext) {
		path := filepath.Join(GinkgoT().TempDir(), "report.tar.gz")
		kubectl(ctx, "", "create", "rolebinding", "support", "-n", "demo", "--clusterrole=paddock-viewer", "--user=support")
		Eventually(func() string { // the authorizer of kube-apiserver sees a new binding a moment later
			allowed, _ := paddock.Kubectl(ctx, "auth", "can-i", "get", "sites.paddock.health", "-n", "demo", "--as", "support")
			return string(allowed)
		}).WithContext(ctx).WithTimeout(patience).Should(Equal("yes\n"))
		got := run(ctx, "report", "demo", "-n", "demo", "--as", "support", "--file", path)
		Expect(got.code).To(Equal(0), got.stderr)
		Expect(got.stderr).To(HavePrefix("The report is incomplete: "))
		files := unpack(path)
		Expect(files["errors.yaml"]).To(And(ContainSubstring("pods of demo: "), ContainSubstring("events of paddock-system: "), ContainSubstring("custom resource definitions: ")))
		Expect(files).To(HaveKey("sites/demo/demo.yaml"))
		Expect(fails(ctx, "report", "-A", "--as", "nobody", "--file", path+".2")).To(ContainSubstring("forbidden"))
		Expect(path + ".2").NotTo(BeAnExistingFile())
	})
})

// unpack returns the files of a report by their paths below its folder.
func unpack(path string) map[string]string {
	GinkgoHelper()
	file, err := os.Open(path)
	Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	Expect(err).NotTo(HaveOccurred())
	files := map[string]string{}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		Expect(err).NotTo(HaveOccurred())
		text, err := io.ReadAll(archive)
		Expect(err).NotTo(HaveOccurred())
		_, name, _ := strings.Cut(header.Name, "/")
		files[name] = string(text)
	}
}
