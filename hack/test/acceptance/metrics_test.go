package acceptance

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// metricsOf reads a program's page of metrics.
func metricsOf(address string) string {
	GinkgoHelper()
	answer := send(request{method: "GET", url: address + "/metrics", token: "none"})
	Expect(answer.status).To(Equal(http.StatusOK), string(answer.body))
	return string(answer.body)
}

// seriesOf are those of a Site in its namespace, of all metrics.
func seriesOf(page, namespace, name string) []string {
	var found []string
	for line := range strings.Lines(page) {
		if strings.Contains(line, fmt.Sprintf("name=%q,namespace=%q", name, namespace)) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

var _ = Describe("The metrics", func() {
	It("tell how far the search index is", func() {
		Expect(send(request{method: "PUT", url: balanced + "/site/demo/fhir/patient/counted", body: patient(1)}).status).To(BeElementOf(http.StatusOK, http.StatusCreated))
		for _, health := range paddock.HealthURLs {
			metrics := func() string {
				return string(send(request{method: "GET", url: health + "/metrics", token: "none"}).body)
			}
			Eventually(metrics).Should(MatchRegexp(`(?m)^paddock_index_records [1-9]`))
			Expect(metrics()).To(ContainSubstring("paddock_index_complete 1\n"))
		}
	})

	It("tell the state of each Site, as long as there is one", func(ctx SpecContext) {
		page := func(namespace, name string) func() []string {
			return func() []string { return seriesOf(metricsOf(paddock.ControllerURLs[0]), namespace, name) }
		}
		condition := func(namespace, name, kind, status string, value int) string {
			return fmt.Sprintf("paddock_site_status_condition{name=%q,namespace=%q,status=%q,type=%q} %d", name, namespace, status, kind, value)
		}
		Eventually(page("demo", "demo")).Should(ContainElements(
			condition("demo", "demo", "Ready", "True", 1),
			condition("demo", "demo", "Ready", "False", 0),
			condition("demo", "demo", "Ready", "Unknown", 0),
			`paddock_site_info{deleting="false",name="demo",namespace="demo",paused="false",site_id="demo",storage="Cluster"} 1`,
		))
		Eventually(page("demo-postgres", "demo-postgres")).Should(ContainElement(condition("demo-postgres", "demo-postgres", "SchemaReady", "True", 1)))

		By("a Site that is refused")
		apply(ctx, `
apiVersion: v1
kind: Namespace
metadata: {name: measured}
---
apiVersion: paddock.health/v1alpha1
kind: Site
metadata: {name: measured, namespace: measured}
spec: {storage: {type: Postgres, postgres: {external: {secretRef: {name: none}}}}}
`)
		Eventually(page("measured", "measured")).Should(ContainElements(
			condition("measured", "measured", "Ready", "True", 0), condition("measured", "measured", "Ready", "False", 1)))

		By("one that nobody looks at")
		kubectl(ctx, "create", "namespace", "measured-paused")
		apply(ctx, `
apiVersion: paddock.health/v1alpha1
kind: Site
metadata: {name: measured, namespace: measured-paused, annotations: {paddock.health/paused: "yes"}}
spec: {siteID: measured-paused}
`)
		Eventually(page("measured-paused", "measured")).Should(ConsistOf(
			condition("measured-paused", "measured", "Ready", "True", 0),
			condition("measured-paused", "measured", "Ready", "False", 0),
			condition("measured-paused", "measured", "Ready", "Unknown", 1),
			`paddock_site_info{deleting="false",name="measured",namespace="measured-paused",paused="true",site_id="measured-paused",storage="Cluster"} 1`,
		))

		By("Sites that are gone")
		for _, namespace := range []string{"measured", "measured-paused"} {
			kubectl(ctx, "delete", "--wait", "site/measured", "-n", namespace)
			Eventually(page(namespace, "measured")).Should(BeEmpty())
		}
	}, NodeTimeout(3*time.Minute))

	It("tell the state of pools by the first of their Sites, and nothing of what they connect to", func(ctx SpecContext) {
		const password = "measured-secret"
		_, err := postgres.CreateDatabase(ctx, "measured", password)
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"pool-a", "pool-b"} {
			apply(ctx, postgresSiteManifest, "clinic-"+name, name, databaseURI("measured", password))
			waitReady(ctx, "clinic-"+name, name)
		}
		health := paddock.HealthURLs[0]
		poolOf := func(name string) func() []string {
			return func() []string { return seriesOf(metricsOf(health), "clinic-"+name, name) }
		}
		pool := func(metric, name, state, value string) string {
			labels := fmt.Sprintf("name=%q,namespace=%q", name, "clinic-"+name)
			if state != "" {
				labels += fmt.Sprintf(",state=%q", state)
			}
			return fmt.Sprintf("paddock_postgres_pool_%s{%s} %s", metric, labels, value)
		}
		token := editorOf(ctx, "clinic-pool-a", "pool-a")
		patients := paddock.URLs[0] + "/site/pool-a/fhir/patient"
		Expect(send(request{method: "PUT", url: patients + "/0", body: patient(0), token: token}).status).To(Equal(http.StatusCreated))
		Eventually(poolOf("pool-a")).Should(ContainElements(
			pool("sites", "pool-a", "", "2"), pool("max_connections", "pool-a", "", "16"), pool("connections", "pool-a", "acquired", "0"),
			MatchRegexp(pool("acquires_total", "pool-a", "", "[1-9]")), MatchRegexp(pool("connections", "pool-a", "idle", "[1-9]"))))
		Expect(seriesOf(metricsOf(health), "clinic-pool-b", "pool-b")).NotTo(ContainElement(ContainSubstring("paddock_postgres_pool")))

		By("a pool that has no connection left")
		conn, err := pgx.Connect(ctx, postgres.URL("measured"))
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = conn.Close(ctx) }()
		lock, err := conn.Begin(ctx)
		Expect(err).NotTo(HaveOccurred())
		_, err = lock.Exec(ctx, "LOCK TABLE res IN ACCESS EXCLUSIVE MODE")
		Expect(err).NotTo(HaveOccurred())
		var clients sync.WaitGroup
		for n := range 40 { // searches of a site leave some connections to its writes
			clients.Go(func() { _, _ = trySend(request{method: "GET", url: patients + "?_id=0", token: token}) })
			clients.Go(func() {
				_, _ = trySend(request{method: "PUT", url: fmt.Sprintf("%s/%d", patients, n), body: patient(n), token: token})
			})
		}
		Eventually(poolOf("pool-a")).ProbeEvery(10 * time.Millisecond).Should(ContainElement(pool("connections", "pool-a", "acquired", "16")))
		Expect(lock.Rollback(ctx)).To(Succeed())
		clients.Wait()
		Expect(poolOf("pool-a")()).To(ContainElements(
			MatchRegexp(pool("waited_acquires_total", "pool-a", "", "[1-9]")), MatchRegexp(pool("wait_seconds_total", "pool-a", "", "[0-9.e-]*[1-9]"))))

		page := metricsOf(health)
		Expect(page).NotTo(ContainSubstring(password))
		server, err := url.Parse(postgres.URL("measured"))
		Expect(err).NotTo(HaveOccurred())
		Expect(page).NotTo(ContainSubstring(server.Host))

		By("the first Site leaves the pool")
		kubectl(ctx, "delete", "--wait", "site/pool-a", "-n", "clinic-pool-a")
		Eventually(poolOf("pool-b")).Should(ContainElement(pool("sites", "pool-b", "", "1")))
		Eventually(poolOf("pool-a")).Should(BeEmpty())
		kubectl(ctx, "delete", "--wait", "site/pool-b", "-n", "clinic-pool-b")
		Eventually(poolOf("pool-b")).Should(BeEmpty())
	}, NodeTimeout(2*time.Minute))

	It("tell the requests of each API apart, and those of neither", func() {
		base, health := paddock.URLs[0], paddock.HealthURLs[0]
		for _, asked := range []struct {
			path, series string
			code         int
		}{
			{"/site/demo/fhir/patient?_count=1", `api="fhir",code="200",method="get"`, http.StatusOK},
			{"/site/demo/ahds/v1/slots/none", `api="ahds",code="404",method="get"`, http.StatusNotFound},
			{"/site/demo/unknown/path", `api="none",code="404",method="get"`, http.StatusNotFound},
			{"/", `api="none",code="200",method="get"`, http.StatusOK},
		} {
			count := func() int {
				found := regexp.MustCompile(`(?m)^paddock_http_request_duration_seconds_count\{` + asked.series + `\} (\d+)$`).FindStringSubmatch(metricsOf(health))
				if found == nil {
					return 0
				}
				n, err := strconv.Atoi(found[1])
				Expect(err).NotTo(HaveOccurred())
				return n
			}
			before := count()
			Expect(send(request{method: "GET", url: base + asked.path}).status).To(Equal(asked.code), asked.path)
			// More, where a request of an earlier spec is counted only now.
			Eventually(count).Should(BeNumerically(">", before), asked.path)
		}
	})

	It("tell how full a Site is, and all of them together", func(ctx SpecContext) {
		apply(ctx, tenantManifest+`---
apiVersion: paddock.health/v1alpha1
kind: Site
metadata: {name: sized, namespace: clinic-sized}
spec: {deletionPolicy: Delete, storage: {type: Cluster, cluster: {maxRecords: 70, maxSize: 1Mi}}}
`, "clinic-sized")
		waitReady(ctx, "clinic-sized", "sized")
		token := editorOf(ctx, "clinic-sized", "sized")
		for n := range 3 {
			answer := send(request{method: "PUT", url: fmt.Sprintf("%s/site/sized/fhir/patient/%d", balanced, n), body: patient(n), token: token})
			Expect(answer.status).To(Equal(http.StatusCreated), string(answer.body))
		}
		for _, health := range paddock.HealthURLs {
			sized := func() []string { return seriesOf(metricsOf(health), "clinic-sized", "sized") }
			Eventually(sized).Should(ConsistOf(
				`paddock_site_records{name="sized",namespace="clinic-sized"} 3`,
				`paddock_site_limit_records{name="sized",namespace="clinic-sized"} 70`,
				MatchRegexp(`^paddock_site_bytes{name="sized",namespace="clinic-sized"} [1-9]\d{2,3}$`),
				`paddock_site_limit_bytes{name="sized",namespace="clinic-sized"} 1.048576e+06`,
			))
			Expect(metricsOf(health)).To(And(
				MatchRegexp(`(?m)^paddock_cluster_records ([3-9]|[1-9]\d+)$`), ContainSubstring("\npaddock_cluster_limit_records 20000\n"),
				MatchRegexp(`(?m)^paddock_cluster_bytes [1-9]`), ContainSubstring("\npaddock_cluster_limit_bytes 5.36870912e+08\n"),
			))
			Expect(seriesOf(metricsOf(health), "demo-postgres", "demo-postgres")).NotTo(ContainElement(HavePrefix("paddock_site_")))
		}
		kubectl(ctx, "delete", "--wait", "site/sized", "-n", "clinic-sized")
		for _, health := range paddock.HealthURLs {
			Eventually(func() []string { return seriesOf(metricsOf(health), "clinic-sized", "sized") }).Should(BeEmpty())
		}
	}, NodeTimeout(3*time.Minute))
})
