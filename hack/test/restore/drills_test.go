package restore

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// inCluster has its records in etcd, inPostgres in a database.
const inCluster, inPostgres = "oak", "elm"

var sites = []string{inCluster, inPostgres}

// manifest has the Sites, and who may write their records. Its argument is the URI of the database.
const manifest = `
apiVersion: v1
kind: Secret
metadata: {name: elm-db, namespace: clinic-elm}
type: paddock.health/dsn
stringData: {uri: %q}
---
apiVersion: paddock.health/v1beta1
kind: Site
metadata: {name: oak, namespace: clinic-oak}
spec: {}
---
apiVersion: paddock.health/v1beta1
kind: Site
metadata: {name: elm, namespace: clinic-elm}
spec: {storage: {type: Postgres, postgres: {external: {secretRef: {name: elm-db}}}}}
`

const editor = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
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
`

// memory is what clients of a site know at the time of the backup.
type memory struct {
	// answers are the responses to GET requests, by path or link.
	answers map[string]response
	// booking is the request that made the booked slot.
	booking string
}

// fill writes records of all kinds to a site, and returns what its clients know then.
func fill(ctx context.Context, i *installation, site string) memory {
	GinkgoHelper()
	m := memory{answers: map[string]response{}}
	put := func(id, family string, status int) {
		i.want(ctx, status, site, http.MethodPut, "/fhir/patient/"+id, fmt.Sprintf(`{"resourceType":"Patient","id":%q,"name":[{"family":%q}]}`, id, family), nil)
	}
	for n, family := range []string{"First", "Second", "Third"} {
		put("kept", family, []int{http.StatusCreated, http.StatusOK, http.StatusOK}[n])
		put(fmt.Sprint("page-", n), "Paged", http.StatusCreated)
	}
	put("gone", "Gone", http.StatusCreated)
	i.want(ctx, http.StatusOK, site, http.MethodDelete, "/fhir/patient/gone", "", nil)
	resource := uuid.NewString()
	start := time.Now().Add(48 * time.Hour).UTC().Truncate(time.Hour)
	m.booking = fmt.Sprintf(`{"startAt":%q,"endAt":%q,"locationId":%q,"resourceId":%q,"isBooked":true}`,
		start.Format(time.RFC3339), start.Add(time.Hour).Format(time.RFC3339), resource, resource)
	var slot struct{ AvailabilitySlotID string }
	i.want(ctx, http.StatusCreated, site, http.MethodPost, "/ahds/v1/availability-slot", m.booking, &slot)
	var feed struct{ URL string }
	i.want(ctx, http.StatusCreated, site, http.MethodPost, "/ahds/v1/availability-slot-feed", fmt.Sprintf(`{"resourceId":%q}`, resource), &feed)
	var page struct {
		Link []struct{ Relation, URL string }
	}
	i.want(ctx, http.StatusOK, site, http.MethodGet, "/fhir/patient?family=Paged&_count=1", "", &page)
	paths := []string{
		"/fhir/patient/kept", "/fhir/patient/kept/_history", "/fhir/patient/gone", "/fhir/patient/gone/_history",
		"/ahds/v1/availability-slot/" + slot.AvailabilitySlotID, feed.URL,
	}
	for _, link := range page.Link {
		if link.Relation == "next" {
			paths = append(paths, link.URL)
		}
	}
	Expect(paths).To(HaveLen(7), "no link to a next page")
	for _, path := range paths {
		m.answers[path] = i.send(ctx, site, http.MethodGet, path, "")
	}
	Expect(m.answers["/fhir/patient/gone"].status).To(Equal(http.StatusGone))
	Expect(m.answers[feed.URL].status).To(Equal(http.StatusOK), m.answers[feed.URL].body)
	return m
}

// verify checks that a site is what it was at the time of the backup, and can be written.
func verify(ctx context.Context, i *installation, site string, m memory) {
	GinkgoHelper()
	for path, want := range m.answers {
		got := i.send(ctx, site, http.MethodGet, path, "")
		Expect(got.status).To(Equal(want.status), "%s: %s", path, got.body)
		Expect(cmp.Diff(stable(want.body), stable(got.body))).To(BeEmpty(), path)
	}
	i.want(ctx, http.StatusConflict, site, http.MethodPost, "/ahds/v1/availability-slot", m.booking, nil)
	i.want(ctx, http.StatusNotFound, site, http.MethodGet, "/fhir/patient/after", "", nil)
	i.want(ctx, http.StatusOK, site, http.MethodPut, "/fhir/patient/kept", `{"resourceType":"Patient","id":"kept","name":[{"family":"Restored"}]}`, nil)
	var history struct{ Total int }
	i.want(ctx, http.StatusOK, site, http.MethodGet, "/fhir/patient/kept/_history", "", &history)
	Expect(history.Total).To(Equal(4))
}

// stable returns a body without what differs between two responses for the same records: the time of a
// Bundle, the tokens of links, and the time of a calendar.
func stable(body string) string {
	var lines []string
	var document map[string]any
	if json.Unmarshal([]byte(body), &document) != nil {
		for line := range strings.Lines(body) {
			if !strings.HasPrefix(line, "DTSTAMP") {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "")
	}
	for _, name := range []string{"id", "link", "meta", "instance"} {
		if document["resourceType"] == "Bundle" || name == "instance" {
			delete(document, name)
		}
	}
	text, err := json.Marshal(document)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

var _ = Describe("An installation", Ordered, func() {
	var (
		dir                 string
		database, restored  *localpostgres.Server
		uri                 string
		remembered          = map[string]memory{}
		objects, keys       string
		etcdSnapshot        string
		postgresSnapshotDir string
	)

	startPostgres := func(ctx context.Context, dir string) *localpostgres.Server {
		GinkgoHelper()
		server, err := localpostgres.Start(ctx, localpostgres.Options{Dir: dir, UnsafeNoFsync: true})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(server.Stop)
		return server
	}
	// restorePostgres starts a server with a copy of the snapshot of the volume, and puts the URI of the
	// database there into the Secret.
	restorePostgres := func(ctx context.Context, i *installation, name string) {
		GinkgoHelper()
		at := filepath.Join(dir, name)
		Expect(exec.CommandContext(ctx, "cp", "-a", postgresSnapshotDir, at).Run()).To(Succeed())
		restored = startPostgres(ctx, at)
		uri, err := restored.CreateDatabase(ctx, "elm", "secret") // it exists
		Expect(err).NotTo(HaveOccurred())
		i.kubectl(ctx, fmt.Sprintf(`{"stringData":{"uri":%q}}`, uri), "patch", "secret", "elm-db", "--namespace", namespaceOf(inPostgres), "--patch-file", "/dev/stdin")
	}

	BeforeAll(func(ctx SpecContext) {
		var err error
		dir, err = os.MkdirTemp("", "paddock-restore")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(os.RemoveAll, dir)
		Expect(os.Chmod(dir, 0o755)).To(Succeed()) // Postgres runs as another user, if the tests run as root
		database = startPostgres(ctx, filepath.Join(dir, "postgres"))
		uri, err = database.CreateDatabase(ctx, "elm", "secret")
		Expect(err).NotTo(HaveOccurred())
	}, NodeTimeout(2*time.Minute))

	It("is saved as the guide says", func(ctx SpecContext) {
		i := startCluster(ctx, filepath.Join(dir, "cluster"))
		i.startPaddock(ctx)
		for _, site := range sites {
			i.kubectl(ctx, fmt.Sprintf(editor, namespaceOf(site)), "apply", "--filename", "-")
		}
		i.kubectl(ctx, fmt.Sprintf(manifest, uri), "apply", "--filename", "-")
		i.awaitSites(ctx)
		for _, site := range sites {
			remembered[site] = fill(ctx, i, site)
		}
		etcdSnapshot = filepath.Join(dir, "etcd.snapshot")
		Expect(i.cluster.SaveEtcd(ctx, etcdSnapshot)).To(Succeed())
		// A snapshot of a volume is the state of all its files at one moment.
		postgresSnapshotDir = filepath.Join(dir, "volume")
		Expect(database.Pause()).To(Succeed())
		Expect(exec.CommandContext(ctx, "cp", "-a", filepath.Join(dir, "postgres"), postgresSnapshotDir).Run()).To(Succeed())
		Expect(database.Resume()).To(Succeed())
		for _, name := range []string{"lock", filepath.Join("data", "postmaster.pid")} {
			Expect(os.RemoveAll(filepath.Join(postgresSnapshotDir, name))).To(Succeed())
		}
		objects = saveObjects(ctx, i)
		keys = portable(i.kubectl(ctx, "", "get", "secret", "paddock-page-token-key", "--namespace", system, "--output", "json"))
		for _, site := range sites {
			i.want(ctx, http.StatusCreated, site, http.MethodPut, "/fhir/patient/after", `{"resourceType":"Patient","id":"after"}`, nil)
		}
		Expect(i.cluster.Stop()).To(Succeed())
		Expect(database.Kill()).To(Succeed())
	}, NodeTimeout(5*time.Minute))

	It("is what it was after etcd and the database are restored from snapshots", func(ctx SpecContext) {
		at := filepath.Join(dir, "cluster")
		etcd := filepath.Join(at, "etcd")
		Expect(os.RemoveAll(etcd)).To(Succeed())
		out, err := exec.CommandContext(ctx, filepath.Join(bin, "etcdutl"), "snapshot", "restore", etcdSnapshot, "--data-dir", etcd,
			"--bump-revision", "1000000000", "--mark-compacted").CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		i := startCluster(ctx, at)
		restorePostgres(ctx, i, "first")
		i.startPaddock(ctx)
		i.awaitSites(ctx)
		for _, site := range sites {
			verify(ctx, i, site, remembered[site])
		}
		Expect(i.cluster.Stop()).To(Succeed())
		Expect(restored.Stop()).To(Succeed())
	}, NodeTimeout(5*time.Minute))

	It("is what it was in another cluster, from its objects and the snapshot of the database", func(ctx SpecContext) {
		i := startCluster(ctx, filepath.Join(dir, "other"))
		i.kubectl(ctx, "", "create", "namespace", system)
		i.kubectl(ctx, keys, "create", "--filename", "-")
		i.startPaddock(ctx)
		// Only API servers write records, while this binding exists.
		const binding = "validatingadmissionpolicybinding.admissionregistration.k8s.io/paddock-records"
		policy := portable(i.kubectl(ctx, "", "get", binding, "--output", "json"))
		i.kubectl(ctx, "", "delete", binding)
		applyObjects := func() error {
			_, err := i.tryKubectl(ctx, objects, "apply", "--server-side", "--force-conflicts", "--filename", "-")
			return err
		}
		Eventually(ctx, applyObjects).WithTimeout(patience).Should(Succeed())
		By("restoring again, as after a failure, although the controller has changed the SiteClaims")
		for _, site := range sites {
			i.kubectl(ctx, "", "wait", "--for=condition=Accepted", "--timeout=1m", "--namespace", namespaceOf(site), "site/"+site)
		}
		Expect(applyObjects()).To(Succeed())
		i.kubectl(ctx, policy, "create", "--filename", "-")
		restorePostgres(ctx, i, "second")
		i.awaitSites(ctx)
		for _, site := range sites {
			verify(ctx, i, site, remembered[site])
		}
	}, NodeTimeout(5*time.Minute))
})

// saveObjects returns the objects that docs/guides/sites.md lists under "What to save", as JSON documents
// in the order in which they are restored.
func saveObjects(ctx context.Context, i *installation) string {
	GinkgoHelper()
	var all strings.Builder
	get := func(args ...string) {
		GinkgoHelper()
		all.WriteString(portable(i.kubectl(ctx, "", append([]string{"get", "--output", "json"}, args...)...)))
	}
	for _, site := range sites {
		get("namespaces", namespaceOf(site))
		get("serviceaccounts,rolebindings.rbac.authorization.k8s.io,secrets", "--namespace", namespaceOf(site))
		get("records.records.paddock.health,recordhistories.records.paddock.health,recordclaims.records.paddock.health,webhookdeliveries.records.paddock.health", "--namespace", namespaceOf(site))
	}
	get("siteclaims.paddock.health,namespaceclaims.paddock.health")
	for _, site := range sites {
		get("sites.paddock.health", "--namespace", namespaceOf(site))
	}
	return all.String()
}

// portable returns a List or an object without what belongs to one cluster.
func portable(text string) string {
	GinkgoHelper()
	var document map[string]any
	Expect(json.Unmarshal([]byte(text), &document)).To(Succeed())
	items, isList := document["items"].([]any)
	if !isList {
		items = []any{document}
	}
	for _, item := range items {
		object := item.(map[string]any)
		delete(object, "status")
		metadata := object["metadata"].(map[string]any)
		for _, name := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "ownerReferences", "managedFields"} {
			delete(metadata, name)
		}
	}
	made, err := json.Marshal(document)
	Expect(err).NotTo(HaveOccurred())
	return string(made) + "\n---\n"
}
