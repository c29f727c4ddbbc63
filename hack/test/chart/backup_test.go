package chart_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/hack/dev/localcluster"
	"github.com/paddock-health/paddock/hack/dev/localpaddock"
	"github.com/paddock-health/paddock/hack/dev/locals3"
)

// backupValues are the values of a chart that backs up the Site oak.
const backupValues = "backup.sites[0].namespace=clinic-oak,backup.sites[0].name=oak,backup.keep=2," +
	"backup.s3.bucket=" + locals3.Bucket + ",backup.s3.credentialsSecret=s3"

// clinicManifest has a Site, and a ServiceAccount with the rights of an administrator.
const clinicManifest = `apiVersion: v1
kind: Namespace
metadata: {name: clinic-%[1]s}
---
apiVersion: paddock.health/v1beta1
kind: Site
metadata: {name: %[1]s, namespace: clinic-%[1]s}
spec: {}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: administrator, namespace: clinic-%[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: administrator, namespace: clinic-%[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-admin}
subjects: [{kind: ServiceAccount, name: administrator, namespace: clinic-%[1]s}]
---
apiVersion: paddock.health/v1beta1
kind: Webhook
metadata: {name: bookings, namespace: clinic-%[1]s}
spec: {eventType: user.created, url: "https://receiver.example.org/hook", active: true}
`

// describeBackupRights are the specs of the objects of scheduled backups.
func describeBackupRights() {
	It("gives a backup the right to export one Site, and pods that the restricted policy admits", func(ctx SpecContext) {
		run(ctx, "kubectl", "create", "namespace", "clinic-oak")
		install(ctx, backupValues)
		jobs := objectsOf[batchv1.CronJob](run(ctx, "helm", "get", "manifest", release, "--namespace", namespace), "CronJob")
		Expect(jobs).To(HaveLen(1))
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "backup"}, Spec: jobs[0].Spec.JobTemplate.Spec.Template.Spec}
		Expect(admin.Create(ctx, pod, client.DryRunAll)).To(Succeed())
		for _, where := range []string{namespace, "clinic-oak", "default"} {
			expectGolden(ctx, jobs[0].Name, where, "paddock-backup-in-"+where+".txt")
		}
		install(ctx, "logLevel=info")
	}, NodeTimeout(3*time.Minute))
}

// backups runs what the CronJob of the chart runs, as its ServiceAccount.
type backups struct {
	paddock *localpaddock.Paddock
	s3      *locals3.Server
	// args are the arguments of the container, with the addresses and files of this machine.
	args       []string
	kubeconfig string
	dir        string
}

func startBackups(ctx context.Context, control *localcluster.Cluster, paddock *localpaddock.Paddock) *backups {
	GinkgoHelper()
	b := &backups{paddock: paddock, dir: GinkgoT().TempDir()}
	var err error
	b.s3, err = locals3.Start(ctx, bin, filepath.Join(b.dir, "s3"), GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(b.s3.Stop)
	for _, site := range []string{"oak", "elm"} {
		b.apply(ctx, fmt.Sprintf(clinicManifest, site))
		_, err := paddock.Kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=1m", "--namespace", "clinic-"+site, "site/"+site)
		Expect(err).NotTo(HaveOccurred())
	}
	rendered := run(ctx, "helm", "template", release, chartDir, "--namespace", namespace, "--show-only", "templates/backup.yaml", "--set", backupValues)
	b.apply(ctx, rendered)
	job := objectsOf[batchv1.CronJob](rendered, "CronJob")[0]
	spec := job.Spec.JobTemplate.Spec.Template.Spec
	// What the kubelet would mount.
	var audience string
	for _, volume := range spec.Volumes {
		if volume.Projected != nil {
			audience = volume.Projected.Sources[0].ServiceAccountToken.Audience
		}
	}
	b.file("token", b.token(ctx, namespace, spec.ServiceAccountName, audience))
	account := rest.AnonymousClientConfig(control.Config())
	account.BearerToken = b.token(ctx, namespace, spec.ServiceAccountName, "")
	b.kubeconfig = filepath.Join(b.dir, "kubeconfig")
	Expect(localcluster.WriteKubeconfig(b.kubeconfig, account)).To(Succeed())
	for _, arg := range spec.Containers[0].Args {
		switch name, _, _ := strings.Cut(arg, "="); name {
		case "--server":
			arg = name + "=" + paddock.URLs[0]
		case "--token-file":
			arg = name + "=" + filepath.Join(b.dir, "token")
		case "--s3-endpoint":
			arg = name + "=" + b.s3.Endpoint
		case "--server-ca-file": // this server speaks plain HTTP
			continue
		}
		b.args = append(b.args, arg)
	}
	return b
}

// file writes a file and returns its path.
func (b *backups) file(name, content string) string {
	GinkgoHelper()
	path := filepath.Join(b.dir, name)
	Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	return path
}

func (b *backups) apply(ctx context.Context, manifests string) {
	GinkgoHelper()
	_, err := b.paddock.Kubectl(ctx, "apply", "--filename", b.file("manifest.yaml", manifests))
	Expect(err).NotTo(HaveOccurred())
}

func (b *backups) token(ctx context.Context, namespace, account, audience string) string {
	GinkgoHelper()
	args := []string{"create", "token", account, "--namespace", namespace}
	if audience != "" {
		args = append(args, "--audience", audience)
	}
	token, err := b.paddock.Kubectl(ctx, args...)
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(string(token))
}

// command returns the command of the container, with more flags.
func (b *backups) command(ctx context.Context, flags ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, filepath.Join(bin, "controller"), slices.Concat(b.args, flags)...)
	command.Env = append(append(os.Environ(), "KUBECONFIG="+b.kubeconfig), locals3.Environment()...)
	return command
}

// take makes a backup and returns its name.
func (b *backups) take(ctx context.Context) string {
	GinkgoHelper()
	before := b.complete()
	out, err := b.command(ctx).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	made := slices.DeleteFunc(b.complete(), func(name string) bool { return slices.Contains(before, name) })
	Expect(made).To(HaveLen(1))
	b.check(made[0])
	return made[0]
}

// folder is the folder of the backups of oak, as files.
func (b *backups) folder() string { return filepath.Join(b.s3.Objects, "paddock", "clinic-oak", "oak") }

// names returns the names of all backups that have a file, oldest first.
func (b *backups) names(file string) []string {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(b.folder(), "*", file))
	Expect(err).NotTo(HaveOccurred())
	names := []string{}
	for _, file := range files {
		names = append(names, filepath.Base(filepath.Dir(file)))
	}
	return names
}

// complete returns the names of the backups that look complete.
func (b *backups) complete() []string { return b.names("manifest.json") }

type backupFile struct{ Name, SHA256 string }

type backupManifest struct {
	SHA256   string
	Versions int
	Records  map[string]int
	Files    []backupFile
	Objects  []backupFile
}

// check compares the files of a backup with its manifest.
func (b *backups) check(name string) backupManifest {
	GinkgoHelper()
	manifest := manifestIn(filepath.Join(b.folder(), name))
	all := sha256.New()
	for _, file := range manifest.Files {
		content, err := os.ReadFile(filepath.Join(b.folder(), name, file.Name))
		Expect(err).NotTo(HaveOccurred())
		sum := sha256.Sum256(content)
		Expect(hex.EncodeToString(sum[:])).To(Equal(file.SHA256))
		all.Write(content)
	}
	Expect(hex.EncodeToString(all.Sum(nil))).To(Equal(manifest.SHA256))
	return manifest
}

func manifestIn(directory string) (m backupManifest) {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(directory, "manifest.json"))
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(text, &m)).To(Succeed())
	return m
}

// plugin runs kubectl-paddock for a site, as its administrator.
func (b *backups) plugin(ctx context.Context, kubeconfig, command, site, directory string, flags ...string) (string, error) {
	args := slices.Concat([]string{command, site, "--namespace", "clinic-" + site, "--as-service-account", "administrator", "--directory", directory}, flags)
	program := exec.CommandContext(ctx, filepath.Join(bin, "kubectl-paddock"), args...)
	program.Env = append(append(os.Environ(), "KUBECONFIG="+kubeconfig), locals3.Environment()...)
	out, err := program.CombinedOutput()
	return string(out), err
}

// send sends a request to the site oak as its administrator.
func (b *backups) send(ctx context.Context, token, method, path, body string) int {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, method, b.paddock.URLs[0]+"/site/oak"+path, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	return response.StatusCode
}

// stall serves the S3 API of the server, except that it does not pass on the PUT of an object whose path has
// a part. The channel is closed when such a request arrives.
func (b *backups) stall(part string) (endpoint string, arrived chan struct{}) {
	GinkgoHelper()
	target, err := url.Parse(b.s3.Endpoint)
	Expect(err).NotTo(HaveOccurred())
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // it is signed
	}}
	arrived = make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, part) {
			_, _ = io.Copy(io.Discard, r.Body) // the server sees the end of a connection only after the body
			close(arrived)
			<-r.Context().Done()
			return
		}
		forward.ServeHTTP(w, r)
	}))
	DeferCleanup(server.Close)
	return server.URL, arrived
}

// describeBackups are the specs of scheduled backups: their programs, and their restore.
func describeBackups(control **localcluster.Cluster, paddock **localpaddock.Paddock) {
	It("save a Site to S3 as the chart schedules it, and restore it", func(ctx SpecContext) {
		b := startBackups(ctx, *control, *paddock)
		token := b.token(ctx, "clinic-oak", "administrator", "paddock.health/clinic-oak/oak")
		Eventually(ctx, func() int { return b.send(ctx, token, http.MethodGet, "/fhir/Patient", "") }).WithTimeout(learns).Should(Equal(http.StatusOK))
		source := filepath.Join(b.dir, "source")
		Expect(os.Mkdir(source, 0o700)).To(Succeed())
		var patients strings.Builder
		for i := range 1100 { // more than a page
			fmt.Fprintf(&patients, `{"resourceType":"Patient","id":"P%d","name":[{"family":"Rex %d"}]}`+"\n", i, i)
		}
		b.file("source/Patient.ndjson", patients.String())
		out, err := b.plugin(ctx, (*control).Kubeconfig(), "import", "oak", source)
		Expect(err).NotTo(HaveOccurred(), out)
		put := func(id, family string) int {
			GinkgoHelper()
			return b.send(ctx, token, http.MethodPut, "/fhir/Patient/"+id, fmt.Sprintf(`{"resourceType":"Patient","id":%q,"name":[{"family":%q}]}`, id, family))
		}
		Expect(put("P1", "Second")).To(Equal(http.StatusOK))
		Expect(b.send(ctx, token, http.MethodDelete, "/fhir/Patient/P2", "")).To(BeElementOf(http.StatusOK, http.StatusNoContent))
		Expect(b.send(ctx, token, http.MethodPost, "/ahds/v1/availability-slot", `{"locationId":"0198c4f2-7d1e-7c3a-9b5f-000000000001",
			"resourceId":"0198c4f2-7d1e-7c3a-9b5f-000000000002","startAt":"2031-03-03T09:00:00Z","endAt":"2031-03-03T09:30:00Z","isBooked":true}`)).To(Equal(http.StatusCreated))
		Expect(b.send(ctx, token, http.MethodPost, "/ahds/v1/eventgroup", `{"name":"bookings","status":"active"}`)).To(Equal(http.StatusCreated))

		By("making two backups")
		first := b.take(ctx)
		Expect(b.check(first).Records).To(Equal(map[string]int{"Patient": 1100, "AvailabilitySlot": 1, "EventGroup": 1}))
		Expect(put("P1", "Third")).To(Equal(http.StatusOK))
		second := b.take(ctx)
		Expect(b.check(second).Versions).To(Equal(b.check(first).Versions + 1))

		By("killing one in the middle")
		endpoint, arrived := b.stall("records.00002")
		killed := b.command(ctx, "--s3-endpoint="+endpoint)
		Expect(killed.Start()).To(Succeed())
		Eventually(ctx, arrived).WithTimeout(learns).Should(BeClosed())
		Expect(killed.Process.Kill()).To(Succeed())
		_ = killed.Wait() // it was killed
		Expect(b.complete()).To(Equal([]string{first, second}))
		Expect(b.names("records.00001.ndjson")).To(HaveLen(3))
		b.check(first)

		By("failing with other credentials, and for another Site")
		for reason, command := range map[string]*exec.Cmd{
			"write s3://backups/paddock/clinic-oak/oak/": b.command(ctx),
			"is forbidden": b.command(ctx, "--site=clinic-elm/elm"),
		} {
			if !strings.HasPrefix(reason, "is") {
				command.Env = append(command.Env, "AWS_SECRET_ACCESS_KEY=another")
			}
			out, err := command.CombinedOutput()
			Expect(err).To(HaveOccurred())
			Expect(string(out)).To(ContainSubstring(reason))
		}
		Expect(b.complete()).To(Equal([]string{first, second}))

		By("deleting old backups only when a newer one is complete")
		abandoned := slices.DeleteFunc(b.names("records.00001.ndjson"), func(name string) bool { return name == first || name == second })
		Expect(abandoned).To(HaveLen(1))
		const old, foreign = "2020-01-01T00-00-00.000Z-00000000", "notes"
		for _, name := range []string{old, foreign} {
			Expect(os.CopyFS(filepath.Join(b.folder(), name), os.DirFS(filepath.Join(b.folder(), abandoned[0])))).To(Succeed())
		}
		third := b.take(ctx)
		Expect(b.complete()).To(Equal([]string{second, third}))
		Expect(b.names("*")).NotTo(ContainElements(BeElementOf(first, old)))
		Expect(b.names("records.00001.ndjson")).To(ConsistOf(second, third, foreign, abandoned[0]), "the abandoned one could still run")

		By("restoring the newest one into another Site")
		restored := filepath.Join(b.dir, "restored")
		from := []string{"--s3-endpoint", b.s3.Endpoint, "--from", "s3://" + locals3.Bucket + "/paddock/clinic-oak/oak"}
		out, err = b.plugin(ctx, (*control).Kubeconfig(), "restore", "elm", restored, from...)
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(out).To(ContainSubstring(third))
		exported := filepath.Join(b.dir, "exported")
		out, err = b.plugin(ctx, (*control).Kubeconfig(), "export", "elm", exported, "--native")
		Expect(err).NotTo(HaveOccurred(), out)
		got, want := manifestIn(exported), b.check(third)
		Expect(cmp.Diff(want.Records, got.Records)).To(BeEmpty())
		Expect(got.SHA256).To(Equal(want.SHA256))
		webhooks, err := os.ReadFile(filepath.Join(restored, "webhooks.json"))
		Expect(err).NotTo(HaveOccurred())
		_, err = b.paddock.Kubectl(ctx, "delete", "webhook", "bookings", "--namespace", "clinic-oak")
		Expect(err).NotTo(HaveOccurred())
		b.apply(ctx, string(webhooks))
		found, err := b.paddock.Kubectl(ctx, "get", "webhook", "bookings", "--namespace", "clinic-oak", "--output", "jsonpath={.spec.url}")
		Expect(err).NotTo(HaveOccurred())
		Expect(string(found)).To(Equal("https://receiver.example.org/hook"))

		By("refusing a backup that has changed")
		damaged := filepath.Join(b.folder(), second, "records.00001.ndjson")
		content, err := os.ReadFile(damaged)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(damaged, bytes.Replace(content, []byte("Rex"), []byte("Max"), 1), 0o600)).To(Succeed())
		from[3] += "/" + second
		out, err = b.plugin(ctx, (*control).Kubeconfig(), "restore", "elm", filepath.Join(b.dir, "damaged"), append(from, "--dry-run")...)
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("differs from what was saved"))
	}, NodeTimeout(2*time.Minute))
}
