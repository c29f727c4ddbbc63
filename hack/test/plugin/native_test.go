package plugin

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// nativeManifest has a Site whose ServiceAccount administrator has the rights of an administrator.
const nativeManifest = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: administrator, namespace: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: administrator, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-admin}
subjects: [{kind: ServiceAccount, name: administrator, namespace: %[1]s}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: editor, namespace: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editor, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-editor}
subjects: [{kind: ServiceAccount, name: editor, namespace: %[1]s}]
---
apiVersion: paddock.health/v1alpha1
kind: Site
metadata: {name: %[1]s, namespace: %[1]s}
spec: {storage: %[2]s}
`

// nativeManifestFile is the part of manifest.json that the specs compare.
type nativeManifestFile struct {
	SHA256   string
	Versions int
	Records  map[string]int
}

var _ = Describe("export and import in the native format", Ordered, func() {
	const patients = 1500
	// slot is booked, so it claims its resource for its time.
	const slot = `{"locationId":"0198c4f2-7d1e-7c3a-9b5f-000000000001","resourceId":"0198c4f2-7d1e-7c3a-9b5f-000000000002","startAt":"2031-03-03T09:00:00Z","endAt":"2031-03-03T09:30:00Z","isBooked":true}`
	var dir string
	native := func(command, site, directory string, more ...string) []string {
		return append([]string{command, site, "-n", site, "--as-service-account", "administrator", "--directory", directory}, more...)
	}
	send := func(ctx SpecContext, site, method, path, body string) int {
		GinkgoHelper()
		token := ok(ctx, "token", site, "-n", site, "--as-service-account", "administrator")
		request, err := http.NewRequestWithContext(ctx, method, paddock.PublicURL()+"/site/"+site+path, strings.NewReader(body))
		Expect(err).NotTo(HaveOccurred())
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		Expect(err).NotTo(HaveOccurred())
		Expect(response.Body.Close()).To(Succeed())
		return response.StatusCode
	}
	exported := func(ctx SpecContext, site, name string) nativeManifestFile {
		GinkgoHelper()
		ok(ctx, native("export", site, filepath.Join(dir, name), "--native")...)
		return decode[nativeManifestFile](contentOf(filepath.Join(dir, name, "manifest.json")))
	}

	BeforeAll(func(ctx SpecContext) {
		var err error
		dir, err = os.MkdirTemp("", "paddock-native")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(os.RemoveAll, dir)
		server, err := localpostgres.Start(ctx, localpostgres.Options{Dir: filepath.Join(dir, "postgres"), UnsafeNoFsync: true, Secure: true})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(server.Stop)
		uri, err := server.CreateDatabase(ctx, "stable", "stable")
		Expect(err).NotTo(HaveOccurred())
		for _, site := range []string{"barn", "shed"} {
			apply(ctx, fmt.Sprintf(nativeManifest, site, "{cluster: {maxRecords: 20000}}"))
		}
		apply(ctx, fmt.Sprintf(nativeManifest, "stable", "{type: Postgres, postgres: {external: {secretRef: {name: stable-db}}}}"))
		kubectl(ctx, "", "create", "secret", "generic", "stable-db", "-n", "stable", "--type=paddock.health/dsn", "--from-literal=uri="+uri)
		for _, site := range []string{"barn", "shed", "stable"} {
			kubectl(ctx, "", "wait", "--for=condition=Ready", "--timeout=60s", "-n", site, "site/"+site)
		}
		source := filepath.Join(dir, "source")
		Expect(os.Mkdir(source, 0o700)).To(Succeed())
		var all strings.Builder
		for i := range patients {
			fmt.Fprintf(&all, `{"resourceType":"Patient","id":"P%d","name":[{"family":"Rex %d"}]}`+"\n", i, i)
		}
		Expect(os.WriteFile(filepath.Join(source, "Patient.ndjson"), []byte(all.String()), 0o600)).To(Succeed())
		Eventually(func(g Gomega) { // the rights of a new namespace are cached
			for _, site := range []string{"barn", "shed", "stable"} {
				g.Expect(run(ctx, native("import", site, source, "--dry-run")...).code).To(Equal(0))
			}
		}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
		ok(ctx, native("import", "barn", source)...)
		Expect(send(ctx, "barn", http.MethodPut, "/fhir/Patient/P1", `{"resourceType":"Patient","id":"P1","active":true}`)).To(Equal(http.StatusOK))
		Expect(send(ctx, "barn", http.MethodDelete, "/fhir/Patient/P2", "")).To(BeElementOf(http.StatusOK, http.StatusNoContent))
		Expect(send(ctx, "barn", http.MethodPost, "/ahds/v1/availability-slot", slot)).To(Equal(http.StatusCreated))
	})

	It("make the same site of another one, in either storage, in spite of kills", func(ctx SpecContext) {
		By("killing the plugin in the middle of the export, then the API server")
		first := filepath.Join(dir, "first")
		for range 3 {
			session := start(native("export", "barn", first, "--native")...)
			Eventually(func() bool {
				files, _ := filepath.Glob(filepath.Join(first, "records.*.ndjson"))
				return len(files) > 0 || session.ExitCode() >= 0
			}).WithContext(ctx).WithTimeout(patience).Should(BeTrue())
			session.Kill().Wait(patience)
			if _, err := os.Stat(filepath.Join(first, "manifest.json")); err == nil {
				break
			}
		}
		if _, err := os.Stat(filepath.Join(first, "manifest.json")); err != nil {
			ok(ctx, native("export", "barn", first, "--native")...)
		}
		want := exported(ctx, "barn", "at-once")
		Expect(decode[nativeManifestFile](contentOf(filepath.Join(first, "manifest.json")))).To(Equal(want))
		Expect(want.Records).To(Equal(map[string]int{"Patient": patients, "AvailabilitySlot": 1}))
		Expect(want.Versions).To(BeNumerically(">=", patients+2))

		By("killing the plugin in the middle of the import, then the API server")
		for range 3 {
			session := start(native("import", "stable", first)...)
			Eventually(func() bool {
				_, err := os.Stat(filepath.Join(first, ".paddock-import.json"))
				return err == nil || session.ExitCode() >= 0
			}).WithContext(ctx).WithTimeout(patience).Should(BeTrue())
			session.Kill().Wait(patience)
		}
		session := start(native("import", "stable", first)...)
		Expect(paddock.APIServers[0].Kill()).To(Succeed())
		Expect(paddock.APIServers[0].Restart(ctx)).To(Succeed())
		Eventually(session).WithContext(ctx).WithTimeout(2 * patience).Should(HaveField("ExitCode()", 0))
		Expect(exported(ctx, "stable", "second")).To(Equal(want), "etcd to Postgres")
		Expect(send(ctx, "stable", http.MethodGet, "/fhir/Patient/P1/_history/1", "")).To(Equal(http.StatusOK))
		Expect(send(ctx, "stable", http.MethodGet, "/fhir/Patient/P2", "")).To(Equal(http.StatusGone))
		Expect(send(ctx, "stable", http.MethodPost, "/ahds/v1/availability-slot", slot)).To(Equal(http.StatusConflict), "the claim of the booked slot")

		By("importing it again, and back into the cluster")
		Expect(ok(ctx, native("import", "stable", first)...)).To(MatchRegexp(`unchanged +%d\n`, patients+1))
		ok(ctx, native("import", "shed", filepath.Join(dir, "second"))...)
		Expect(exported(ctx, "shed", "third")).To(Equal(want), "Postgres to etcd")
	})

	It("need rights on the Site, and report what fails", func(ctx SpecContext) {
		first := filepath.Join(dir, "first")
		asEditor := []string{"import", "barn", "-n", "barn", "--as-service-account", "editor", "--directory", first}
		Expect(run(ctx, asEditor...).stderr).To(ContainSubstring("403 Forbidden"))
		Expect(run(ctx, "export", "barn", "-n", "barn", "--as-service-account", "editor", "--directory", filepath.Join(dir, "none"), "--native").stderr).To(ContainSubstring("403 Forbidden"))
		usage := run(ctx, native("export", "barn", filepath.Join(dir, "none"), "--native", "--type", "Patient")...)
		Expect(usage.code).To(Equal(2))
		Expect(usage.stderr).To(ContainSubstring("omit --type"))

		By("a record that has another version already")
		Expect(send(ctx, "shed", http.MethodPut, "/fhir/Patient/P3", `{"resourceType":"Patient","id":"P3","active":true}`)).To(Equal(http.StatusOK))
		Expect(send(ctx, "barn", http.MethodPut, "/fhir/Patient/P3", `{"resourceType":"Patient","id":"P3","active":false}`)).To(Equal(http.StatusOK))
		exported(ctx, "barn", "fourth")
		diverged := run(ctx, native("import", "shed", filepath.Join(dir, "fourth"))...)
		Expect(diverged.code).To(Equal(1))
		Expect(diverged.stderr).To(ContainSubstring("error: 1 lines failed"))
		Expect(contentOf(filepath.Join(dir, "fourth", "import-errors.jsonl"))).To(And(ContainSubstring(`"code":"diverged"`), ContainSubstring("Patient/P3")))

		By("an erased record")
		Expect(run(ctx, "erase", "barn", "Patient/P4", "-n", "barn", "--as-service-account", "administrator").stderr).To(ContainSubstring("--yes"))
		Expect(ok(ctx, "erase", "barn", "Patient/P4", "-n", "barn", "--as-service-account", "administrator", "--yes")).To(MatchRegexp(`Patient +1\n`))
		Expect(send(ctx, "barn", http.MethodGet, "/fhir/Patient/P4", "")).To(Equal(http.StatusNotFound))

		By("a line whose body is not valid, and a file that was changed")
		bad := filepath.Join(dir, "bad")
		Expect(os.Mkdir(bad, 0o700)).To(Succeed())
		line := `{"type":"Patient","id":"bad","versions":[{"version":1,"created":"2031-01-01T00:00:00.000Z","updated":"2031-01-01T00:00:00.000Z","method":"PUT","idOffset":32,"metaOffset":42,"body":{"resourceType":"Patient","id":"","meta":{},"active":"yes"}}]}`
		Expect(os.WriteFile(filepath.Join(bad, "records.00001.ndjson"), []byte("\n"+line+"\n"), 0o600)).To(Succeed())
		manifest := fmt.Sprintf(`{"format":"paddock-native/1","files":[{"name":"records.00001.ndjson","sha256":"%x"}]}`, sha256.Sum256([]byte("\n"+line+"\n")))
		Expect(os.WriteFile(filepath.Join(bad, "manifest.json"), []byte(manifest), 0o600)).To(Succeed())
		Expect(run(ctx, native("import", "shed", bad, "--dry-run")...).code).To(Equal(1))
		Expect(decode[map[string]any](contentOf(filepath.Join(bad, "import-errors.jsonl")))).To(And(
			HaveKeyWithValue("file", "records.00001.ndjson"), HaveKeyWithValue("line", BeEquivalentTo(2)),
			HaveKeyWithValue("expression", "versions[0].Patient.active"), HaveKeyWithValue("code", "wrong_json_kind"),
		))
		Expect(os.WriteFile(filepath.Join(bad, "manifest.json"), []byte(`{"format":"paddock-native/1","files":[{"name":"records.00001.ndjson","sha256":"00"}]}`), 0o600)).To(Succeed())
		Expect(fails(ctx, native("import", "shed", bad)...)).To(ContainSubstring("differs from what was exported"))
	})
})
