package fhir_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/access/gate/gatetest"
	"github.com/paddock-health/paddock/apiserver/extraction"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// newReplicatedSite opens a site whose searches a standby can answer, and returns a pool of the standby.
func newReplicatedSite(ctx context.Context) (site, *pgxpool.Pool) {
	GinkgoHelper()
	var endpoint fhir.Endpoint
	s := newPostgresSite(ctx, func(e *fhir.Endpoint) { endpoint = *e })
	dir, err := os.MkdirTemp("", "paddock-fhir-standby")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	Expect(os.Chmod(dir, 0o755)).To(Succeed()) //nolint:gosec // the user of Postgres must enter it
	standby, err := localpostgres.Start(ctx, localpostgres.Options{Dir: filepath.Join(dir, "standby"), UnsafeNoFsync: true, StandbyOf: relational.server})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(standby.Stop)
	pool, err := postgres.Connect(context.Background(), standby.URL("postgres"))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(pool.Close)

	opened, err := postgres.Open(ctx, relational.pool, uuid.NewString(), postgres.Options{
		Extractor: extraction.Extractor{}, Replicas: postgres.NewReplicas(relational.pool, pool),
	})
	Expect(err).NotTo(HaveOccurred())
	_, err = opened.Renew(ctx, extraction.Version, func(postgres.Reindexed) {})
	Expect(err).NotTo(HaveOccurred())
	endpoint.Store = gatetest.Everything(opened)
	openSites.Store(s.id, endpoint)
	s.store, s.raw = endpoint.Store, opened
	return s, pool
}

var _ = Describe("A search that accepts a stale response", Serial, func() {
	It("is answered by a read replica, with its Age, and no other request is", func(ctx SpecContext) {
		s, standby := newReplicatedSite(ctx)
		put := func(id string) {
			GinkgoHelper()
			answer := s.do("PUT", "/Patient/"+id, `{"resourceType":"Patient","id":"`+id+`"}`)
			Expect(answer.status).To(Equal(http.StatusCreated), answer.body)
		}
		// found returns the ids of the patients in a response, and its Age.
		found := func(method, path, body string, options ...option) (ids []string, age string) {
			GinkgoHelper()
			if strings.HasSuffix(path, "/_search") {
				options = append(options, with("Content-Type", "application/x-www-form-urlencoded"))
			}
			answer := s.do(method, path, body, options...)
			Expect(answer.status).To(Equal(http.StatusOK), answer.body)
			for _, id := range []string{"bella", "rex"} {
				if strings.Contains(answer.body, `"id":"`+id+`"`) {
					ids = append(ids, id)
				}
			}
			return ids, answer.header.Get("Age")
		}
		const stale = "max-stale=60"
		put("rex")
		Eventually(func(g Gomega) {
			ids, age := found("GET", "/Patient", "", with("Cache-Control", stale))
			g.Expect(ids).To(ConsistOf("rex"))
			g.Expect(age).To(Equal("1"))
		}).Should(Succeed())
		_, err := standby.Exec(ctx, `SELECT pg_wal_replay_pause()`)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() (state string) {
			Expect(standby.QueryRow(ctx, `SELECT pg_get_wal_replay_pause_state()`).Scan(&state)).To(Succeed())
			return state
		}).Should(Equal("paused"))
		put("bella")

		for _, request := range []struct{ method, path, body string }{
			{"GET", "/Patient", ""}, {"GET", "/?_type=Patient", ""}, {"POST", "/Patient/_search", "_sort=_id"}, {"GET", "/Patient/rex/$everything", ""},
		} {
			By(request.method + " " + request.path)
			Eventually(func(g Gomega) { // the primary answers for a while after the standby did not answer in time
				ids, age := found(request.method, request.path, request.body, with("Cache-Control", stale))
				g.Expect(ids).To(ConsistOf("rex"))
				g.Expect(age).To(MatchRegexp(`^[1-9]\d?$`))
			}).Should(Succeed())
			ids, age := found(request.method, request.path, request.body)
			Expect(ids).To(ContainElement("rex"))
			Expect(age).To(BeEmpty())
		}
		for _, control := range []string{"max-stale", "max-stale=0", "max-stale=60, no-cache", "max-age=60"} {
			By("Cache-Control: " + control)
			ids, age := found("GET", "/Patient", "", with("Cache-Control", control))
			Expect(ids).To(ConsistOf("rex", "bella"))
			Expect(age).To(BeEmpty())
		}
		By("what may serve to poll, or follows a write")
		for _, path := range []string{"/Patient?_sort=-_lastUpdated", "/Patient?_lastUpdated=gt2020-01-01", "/Patient/_history"} {
			ids, age := found("GET", path, "", with("Cache-Control", stale))
			Expect(ids).To(ConsistOf("rex", "bella"), path)
			Expect(age).To(BeEmpty(), path)
		}
		for _, kind := range []string{"batch", "transaction"} {
			ids, age := found("POST", "", `{"resourceType":"Bundle","type":"`+kind+`","entry":[{"request":{"method":"GET","url":"Patient"}}]}`, with("Cache-Control", stale))
			Expect(ids).To(ConsistOf("rex", "bella"), kind)
			Expect(age).To(BeEmpty(), kind)
		}
		By("conditional writes")
		answer := s.do("POST", "/Patient", `{"resourceType":"Patient"}`, with("If-None-Exist", "_id=bella"), with("Cache-Control", stale))
		Expect(answer.status).To(Equal(http.StatusOK), answer.body)
	})
})
