package acceptance

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

func startPostgres(ctx context.Context) *localpostgres.Server {
	GinkgoHelper()
	dir, err := os.MkdirTemp("", "paddock-processes-postgres")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	server, err := localpostgres.Start(ctx, localpostgres.Options{Dir: dir, UnsafeNoFsync: true, Secure: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	return server
}

// asAdministrator runs a statement in a database.
func asAdministrator(ctx context.Context, database, sql string, args ...any) {
	GinkgoHelper()
	conn, err := pgx.Connect(ctx, postgres.URL(database))
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, sql, args...)
	Expect(err).NotTo(HaveOccurred())
}

func databaseURI(name, password string) string {
	GinkgoHelper()
	uri, err := url.Parse(postgres.URL(name))
	Expect(err).NotTo(HaveOccurred())
	uri.User, uri.RawQuery = url.UserPassword(name, password), "" // TLS, as nothing says otherwise
	return uri.String()
}

// cutSessions ends the sessions of a role.
func cutSessions(ctx context.Context, role string) {
	GinkgoHelper()
	asAdministrator(ctx, "postgres", `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1`, role)
}

// connectionIdle is the time after which a pool checks an idle connection before it uses it. Until then, a request can
// still meet a connection that was cut.
const connectionIdle = 1100 * time.Millisecond

var _ = Describe("A site in Postgres", Ordered, Serial, func() {
	const patients = "/site/demo-postgres/fhir/patient"

	get := func(address string) int { return send(request{method: "GET", url: address}).status }
	put := func(id string, n int) int {
		return send(request{method: "PUT", url: balanced + patients + "/" + id, body: patient(n)}).status
	}
	expectUnavailable := func(answer response) {
		GinkgoHelper()
		Expect(answer.status).To(Equal(http.StatusServiceUnavailable), string(answer.body))
		Expect(answer.header.Get("Retry-After")).NotTo(BeEmpty())
		Expect(string(answer.body)).To(ContainSubstring(`"OperationOutcome"`))
		server, err := url.Parse(postgres.URL("demo"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(answer.body)).NotTo(ContainSubstring(server.Port()))
	}
	// others are served all the while.
	expectOthersServed := func() {
		GinkgoHelper()
		for _, base := range paddock.URLs {
			Eventually(func() time.Duration { // any of these requests may meet a busy machine
				began := time.Now()
				Expect(get(base + "/site/demo/fhir/patient?_count=1")).To(Equal(http.StatusOK))
				return time.Since(began)
			}).WithTimeout(10 * time.Second).Should(BeNumerically("<", 3*time.Second))
		}
		for _, base := range paddock.HealthURLs {
			Expect(send(request{method: "GET", url: base + "/readyz", token: "none"}).status).To(Equal(http.StatusOK))
		}
	}
	expectRecovery := func() {
		GinkgoHelper()
		for _, base := range paddock.URLs {
			Eventually(func() int { return get(base + patients + "/survivor") }).Should(Equal(http.StatusOK))
			Eventually(func() int {
				return send(request{method: "PUT", url: base + patients + "/recovered", body: patient(time.Now().Nanosecond())}).status
			}).Should(BeElementOf(http.StatusOK, http.StatusCreated))
		}
		time.Sleep(connectionIdle)
	}
	// load writes and reads until it is stopped, and returns what was not answered with 2xx.
	load := func() (stop func() []string) {
		ctx, cancel := context.WithCancel(context.Background())
		var group sync.WaitGroup
		var failed []string
		var mu sync.Mutex
		var done atomic.Int64
		for worker := range 4 {
			group.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					for _, r := range []request{
						{method: "PUT", url: fmt.Sprintf("%s%s/load-%d", balanced, patients, worker), body: patient(n)},
						{method: "GET", url: balanced + patients + "?_id=survivor"},
					} {
						answer, err := trySend(r)
						done.Add(1)
						if err != nil || answer.status >= 300 {
							mu.Lock()
							failed = append(failed, fmt.Sprintf("%s: %d %s %v", r.method, answer.status, answer.body, err))
							mu.Unlock()
						}
					}
				}
			})
		}
		DeferCleanup(func() {
			cancel()
			group.Wait()
		})
		return func() []string {
			cancel()
			group.Wait()
			Expect(done.Load()).To(BeNumerically(">", 20))
			return failed
		}
	}

	BeforeAll(func() {
		Expect(put("survivor", 1)).To(Equal(http.StatusCreated))
	})

	It("has its index reported as ready, also for a newer spec", func(ctx SpecContext) {
		kubectl(ctx, "wait", "--for=condition=IndexReady", "--timeout=60s", "-n", "demo-postgres", "site/demo-postgres")
		kubectl(ctx, "patch", "site", "demo-postgres", "-n", "demo-postgres", "--type=merge", "-p", `{"spec":{"audit":{"retention":"2184h0m0s"}}}`)
		kubectl(ctx, "wait", "--for=condition=IndexReady", "--timeout=1m", "-n", "demo-postgres", "site/demo-postgres")
	})

	It("is there again on a database that it shares, and does not meet its neighbour", func(ctx SpecContext) {
		apply(ctx, postgresSiteManifest, "clinic-neighbour", "neighbour", databaseURI("demo", "first"))
		waitReady(ctx, "clinic-neighbour", "neighbour")
		editor := editorOf(ctx, "clinic-neighbour", "neighbour")
		base := balanced + "/site/neighbour/fhir/patient"
		Expect(send(request{method: "GET", url: base + "/survivor", token: editor}).status).To(Equal(http.StatusNotFound))
		Expect(send(request{method: "GET", url: base + "?_total=accurate", token: editor}).field("total")).To(BeEquivalentTo(0))
		Expect(send(request{method: "PUT", url: base + "/survivor", body: patient(77), token: editor}).status).To(Equal(http.StatusCreated))
		Expect(send(request{method: "GET", url: balanced + patients + "/survivor"}).field("multipleBirthInteger")).To(BeEquivalentTo(1))
		kubectl(ctx, "delete", "site", "neighbour", "-n", "clinic-neighbour")
	})

	It("serves throughout when its credentials are rotated", func(ctx SpecContext) {
		rotate := func(user, password string) {
			GinkgoHelper()
			uri := strings.Replace(databaseURI("demo", password), "//demo:", "//"+user+":", 1)
			kubectl(ctx, "patch", "secret", "demo-db", "-n", "demo-postgres", "-p", fmt.Sprintf(`{"stringData":{"uri":%q}}`, uri))
			Eventually(func() string {
				return kubectl(ctx, "get", "secret", "site-demo-postgres", "-n", connectionsNamespace, "-o", "go-template={{.data.uri | base64decode}}")
			}).Should(ContainSubstring(user + ":" + password))
		}
		asAdministrator(ctx, "postgres", `CREATE ROLE standby LOGIN PASSWORD 'second' IN ROLE demo`)
		stop := load()
		rotate("standby", "second")
		By("serving for longer than all processes need to see the Secret")
		Consistently(func() int { return get(balanced + patients + "/survivor") }).WithTimeout(5 * time.Second).Should(Equal(http.StatusOK))
		asAdministrator(ctx, "postgres", `ALTER ROLE demo PASSWORD 'third'`)
		rotate("demo", "third")
		Expect(stop()).To(BeEmpty())
		By("not needing the old ones any more")
		asAdministrator(ctx, "postgres", `ALTER ROLE standby NOLOGIN`)
		cutSessions(ctx, "standby")
		cutSessions(ctx, "demo")
		expectRecovery()
	})

	It("serves throughout an expanding migration", func(ctx SpecContext) {
		stop := load()
		for _, statement := range []string{ // in transactions of their own: schema's tests have one for several
			`ALTER TABLE res ADD COLUMN later_release int8 NOT NULL DEFAULT 0`, `ALTER TABLE hist ADD COLUMN later_release text`,
			`ALTER TABLE sites ADD COLUMN later_release int8 NOT NULL DEFAULT 0`, `UPDATE paddock_schema_version SET version = version + 1`,
		} {
			asAdministrator(ctx, "demo", statement)
		}
		time.Sleep(time.Second) // under load
		Expect(stop()).To(BeEmpty())
		kubectl(ctx, "annotate", "site", "demo-postgres", "-n", "demo-postgres", "touched=yes")
		kubectl(ctx, "wait", "--for=condition=SchemaReady", "--timeout=1m", "-n", "demo-postgres", "site/demo-postgres")
	})

	It("answers 503 while the database is down, alone", func(ctx SpecContext) {
		Expect(postgres.Stop()).To(Succeed())
		for _, base := range paddock.URLs {
			expectUnavailable(send(request{method: "GET", url: base + patients + "/survivor"}))
			expectUnavailable(send(request{method: "GET", url: base + patients + "?_id=survivor"}))
			expectUnavailable(send(request{method: "PUT", url: base + patients + "/survivor", body: patient(2)}))
		}
		expectOthersServed()
		Expect(postgres.Restart(ctx)).To(Succeed())
		expectRecovery()
	})

	It("answers 503 in bounded time while the database hangs, alone", func() {
		Expect(postgres.Pause()).To(Succeed())
		defer func() { Expect(postgres.Resume()).To(Succeed()) }()
		began := time.Now()
		var group sync.WaitGroup
		for range 32 {
			group.Go(func() {
				defer GinkgoRecover()
				expectUnavailable(send(request{method: "GET", url: balanced + patients + "/survivor"}))
			})
		}
		expectOthersServed()
		group.Wait()
		Expect(time.Since(began)).To(BeNumerically("<", 15*time.Second))
		expectOthersServed()
		Expect(postgres.Resume()).To(Succeed())
		expectRecovery()
	})

	It("reads and does not write while the database is read-only", func(ctx SpecContext) {
		// Else reads are refused as soon as the audit log finds that it cannot be written.
		onAuditFailure := func(ctx SpecContext, onFailure string) {
			GinkgoHelper()
			kubectl(ctx, "patch", "site", "demo-postgres", "-n", "demo-postgres", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"audit":{"onFailure":%q}}}`, onFailure))
		}
		onAuditFailure(ctx, "Continue")
		DeferCleanup(onAuditFailure, "Refuse")
		asAdministrator(ctx, "postgres", `ALTER ROLE demo SET default_transaction_read_only = on`)
		DeferCleanup(func(ctx SpecContext) {
			asAdministrator(ctx, "postgres", `ALTER ROLE demo RESET default_transaction_read_only`)
			cutSessions(ctx, "demo")
		})
		cutSessions(ctx, "demo")
		for _, base := range paddock.URLs {
			Eventually(func() int { return get(base + patients + "/survivor") }).Should(Equal(http.StatusOK))
			Eventually(func() int { return get(base + patients + "?_id=survivor") }).Should(Equal(http.StatusOK))
			expectUnavailable(send(request{method: "PUT", url: base + patients + "/survivor", body: patient(time.Now().Nanosecond())}))
			expectUnavailable(send(request{method: "POST", url: base + patients, body: patient(3)}))
		}
		expectOthersServed()
		asAdministrator(ctx, "postgres", `ALTER ROLE demo RESET default_transaction_read_only`)
		cutSessions(ctx, "demo")
		expectRecovery()
	})

	It("answers 503 while the database has no connection left", func(ctx SpecContext) {
		asAdministrator(ctx, "postgres", `ALTER ROLE demo CONNECTION LIMIT 0`)
		cutSessions(ctx, "demo")
		for _, base := range paddock.URLs {
			Eventually(func() int { return get(base + patients + "/survivor") }).Should(Equal(http.StatusServiceUnavailable))
		}
		expectOthersServed()
		asAdministrator(ctx, "postgres", `ALTER ROLE demo CONNECTION LIMIT -1`)
		expectRecovery()
	})

	It("finds what another release indexed otherwise, after bringing the index up to date", func(ctx SpecContext) {
		for n := range 30 {
			body := fmt.Sprintf(`{"resourceType":"Patient","name":[{"family":"Reindexed%d"}]}`, n)
			Expect(send(request{method: "PUT", url: fmt.Sprintf("%s%s/reindexed-%d", balanced, patients, n), body: body}).status).To(Equal(http.StatusCreated))
		}
		found := func() any {
			return send(request{method: "GET", url: paddock.URLs[0] + patients + "?family=reindexed&_total=accurate&_count=50"}).field("total")
		}
		Expect(found()).To(BeEquivalentTo(30))
		// As a release would have written them that knew no texts.
		asAdministrator(ctx, "demo", `DELETE FROM ix_text; UPDATE res SET ixsum = ixsum + 1; UPDATE sites SET extraction = 0`)
		Expect(found()).To(BeEquivalentTo(0))
		Expect(paddock.APIServers[0].Kill()).To(Succeed())
		Expect(paddock.APIServers[0].Restart(ctx)).To(Succeed())
		Eventually(found).Within(30 * time.Second).Should(BeEquivalentTo(30))
		Eventually(func() string {
			return string(send(request{method: "GET", url: paddock.HealthURLs[0] + "/metrics", token: "none"}).body)
		}).Within(30 * time.Second).Should(MatchRegexp(`(?m)^paddock_reindex_records_total [1-9]`))
		kubectl(ctx, "wait", "--for=condition=IndexReady", "--timeout=60s", "-n", "demo-postgres", "site/demo-postgres")
	})
})

// postgresSiteManifest is siteManifest with a database: namespace, name and siteID, URI.
const postgresSiteManifest = tenantManifest + `---
apiVersion: v1
kind: Secret
metadata: {name: db, namespace: %[1]s}
type: paddock.health/dsn
stringData: {uri: "%[3]s"}
---
apiVersion: paddock.health/v1alpha1
kind: Site
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  siteID: %[2]s
  deletionPolicy: Delete
  storage: {type: Postgres, postgres: {external: {secretRef: {name: db}}}}
`
