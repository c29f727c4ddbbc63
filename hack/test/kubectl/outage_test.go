package kubectl_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// others are the parts of a cluster that have nothing to do with us.
type others struct{ script }

// expectServed does what people and controllers of a cluster do all day, in a
// namespace that is there: reads, writes, garbage collection, quota.
func (o *others) expectServed(ctx context.Context) {
	GinkgoHelper()
	o.ok(ctx, "get pods -A")
	Expect(o.ok(ctx, "get sites -A -o name")).To(ContainSubstring("site.paddock.health/etcd"))
	Expect(o.feed(ctx, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: owner}\ndata: {a: b}\n", "apply -f -")).To(ContainSubstring("configmap/owner"))
	owner := o.ok(ctx, "get configmap owner -o jsonpath={.metadata.uid}")
	o.feed(ctx, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: owned, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: %s}]}\n", owner), "apply -f -")
	Expect(o.ok(ctx, "explain pod.spec.containers")).To(ContainSubstring("FIELD: containers"))
	o.ok(ctx, "delete configmap owner")
	o.gone(ctx, "configmap/owned")

	o.feed(ctx, "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: few}\nspec: {hard: {count/configmaps: 2}}\n", "apply -f -")
	Eventually(func() string { return o.ok(ctx, "get resourcequota few -o jsonpath={.status.used}") }).
		WithContext(ctx).WithTimeout(lag).Should(MatchJSON(`{"count/configmaps": "1"}`), "kube-root-ca.crt")
	o.ok(ctx, "create configmap second")
	// The admission of kube-apiserver sees the status of the quota a moment later.
	Eventually(func() string {
		_, said, err := o.run(ctx, "", "create configmap third")
		if err == nil {
			o.ok(ctx, "delete configmap third")
		}
		return said
	}).WithContext(ctx).WithTimeout(lag).Should(ContainSubstring("exceeded quota: few"))
	o.ok(ctx, "delete configmap/second resourcequota/few")
}

// gone waits until an object is deleted.
func (o *others) gone(ctx context.Context, object string) {
	GinkgoHelper()
	Eventually(func() string { return o.ok(ctx, "get --ignore-not-found -o name "+object) }).
		WithContext(ctx).WithTimeout(lag).Should(BeEmpty())
}

// expectDiscovered makes sure that discovery has all our kinds.
func expectDiscovered(ctx context.Context) {
	GinkgoHelper()
	s := script{namespace: "default"}
	Expect(strings.Count(s.ok(ctx, "api-resources --categories=fhir -o name"), "\n")).To(Equal(14))
}

var _ = Describe("A cluster whose aggregated API is dead", Ordered, Serial, func() {
	elsewhere := &others{script{namespace: "elsewhere"}}

	BeforeAll(func(ctx SpecContext) {
		elsewhere.ok(ctx, "create namespace elsewhere")
		elsewhere.ok(ctx, "create namespace leaving")
		elsewhere.ok(ctx, "create configmap stays -n leaving")
		Expect(paddock.APIServers[0].Kill()).To(Succeed())
		Eventually(func() string {
			return elsewhere.ok(ctx, "get apiservice v1alpha1.r4.fhir.paddock.health", "-o", `jsonpath={.status.conditions[?(@.type=="Available")].status}`)
		}).WithContext(ctx).WithTimeout(lag).Should(Equal("False"))
	})
	AfterAll(func(ctx SpecContext) { elsewhere.ok(ctx, "delete namespace elsewhere") })

	It("works on, but for our kinds", func(ctx SpecContext) {
		elsewhere.expectServed(ctx)
		Expect(elsewhere.no(ctx, "get patients -n etcd --request-timeout=5s")).NotTo(BeEmpty())
	})

	It("empties a namespace that is deleted, and deletes it once the API is back", func(ctx SpecContext) {
		elsewhere.ok(ctx, "delete namespace leaving --wait=false")
		gone := &others{script{namespace: "leaving"}}
		gone.gone(ctx, "configmap/stays")
		Expect(paddock.APIServers[0].Restart(ctx)).To(Succeed())
		// kube-apiserver probes a dead API every 30 s, and the namespace controller tries again once a minute.
		Eventually(func() string { return elsewhere.ok(ctx, "get --ignore-not-found -o name namespace/leaving") }).
			WithContext(ctx).WithTimeout(2 * lag).Should(BeEmpty())
		Eventually(func(g Gomega) {
			output, _, err := elsewhere.run(ctx, "", "api-resources --categories=fhir -o name")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(strings.Count(output, "\n")).To(Equal(14))
		}).WithContext(ctx).WithTimeout(lag).Should(Succeed())
	})
})

var _ = Describe("A cluster with a site whose database is gone", Ordered, Serial, func() {
	elsewhere := &others{script{namespace: "elsewhere-too"}}

	BeforeAll(func(ctx SpecContext) {
		elsewhere.ok(ctx, "create namespace elsewhere-too")
		startSite(ctx, "orphan", "postgres")
		putAll(ctx, "orphan", editor(ctx, "orphan"), map[string]string{"/patient/rex": `{"resourceType":"Patient","id":"rex"}`})
		elsewhere.ok(ctx, "get patient rex -n orphan")
		Expect(postgres.Kill()).To(Succeed())
	})
	AfterAll(func(ctx SpecContext) {
		elsewhere.ok(ctx, "delete namespace elsewhere-too")
		Eventually(func() error {
			_, _, err := elsewhere.run(ctx, "", "get patients -n postgres -o name --request-timeout=5s")
			return err
		}).WithContext(ctx).WithTimeout(lag).Should(Succeed())
	})

	It("answers 503 for that site alone, and discovery stays complete", func(ctx SpecContext) {
		said := elsewhere.no(ctx, "get --raw "+group+"/namespaces/orphan/patients/rex")
		// The audit log of the site is in that database too, and may be the first to say so.
		Expect(said).To(Or(ContainSubstring("the records of namespace orphan cannot be read or written now"), ContainSubstring("the audit log cannot be written")))
		expectDiscovered(ctx)
		Expect(elsewhere.ok(ctx, "get patients -n etcd -o name")).NotTo(ContainSubstring("error"))
		Expect(elsewhere.ok(ctx, "get apiservice v1alpha1.r4.fhir.paddock.health", "-o", `jsonpath={.status.conditions[?(@.type=="Available")].status}`)).To(Equal("True"))
		elsewhere.expectServed(ctx)
	})

	It("deletes namespaces elsewhere, with no Site", func(ctx SpecContext) {
		elsewhere.ok(ctx, "create namespace no-site")
		elsewhere.ok(ctx, "delete namespace no-site --timeout=60s")
	})

	It("deletes a namespace with another Site", func(ctx SpecContext) {
		startSite(ctx, "leaving-site", "etcd")
		putAll(ctx, "leaving-site", editor(ctx, "leaving-site"), map[string]string{"/patient/rex": `{"resourceType":"Patient","id":"rex"}`})
		s := &script{namespace: "leaving-site"}
		Expect(s.no(ctx, "delete namespace leaving-site --timeout=60s")).To(ContainSubstring("holds the records of a Site with deletionPolicy Retain"))
		s.ok(ctx, "patch site leaving-site --type=merge -p", `{"spec":{"deletionPolicy":"Delete"}}`)
		Eventually(func() string { return s.ok(ctx, "get namespace leaving-site -o jsonpath={.metadata.labels}") }).
			WithContext(ctx).WithTimeout(lag).ShouldNot(ContainSubstring("retain"))
		s.ok(ctx, "delete namespace leaving-site --timeout=60s")
	})

	It("deletes the namespace of that site, whose records are given up", func(ctx SpecContext) {
		s := &script{namespace: "orphan"}
		Expect(s.no(ctx, "delete namespace orphan")).To(ContainSubstring("holds the records of a Site"))
		s.ok(ctx, "delete site orphan --timeout=60s")
		s.ok(ctx, "delete siteclaim orphan --timeout=60s")
		Eventually(func() string { return s.ok(ctx, "get namespace orphan -o jsonpath={.metadata.labels}") }).
			WithContext(ctx).WithTimeout(lag).ShouldNot(ContainSubstring("retain"))
		s.ok(ctx, "delete namespace orphan --timeout=60s")
	})

	It("keeps a namespace only for the Site's finalizer, never for our kinds", func(ctx SpecContext) {
		Expect(postgres.Restart(ctx)).To(Succeed())
		startSite(ctx, "waiting", "postgres")
		token := editor(ctx, "waiting")
		putAll(ctx, "waiting", token, map[string]string{"/patient/rex": `{"resourceType":"Patient","id":"rex"}`})
		s := &script{namespace: "waiting"}
		s.ok(ctx, "patch site waiting --type=merge -p", `{"spec":{"deletionPolicy":"Delete"}}`)
		Eventually(func() string { return s.ok(ctx, "get namespace waiting -o jsonpath={.metadata.labels}") }).
			WithContext(ctx).WithTimeout(lag).ShouldNot(ContainSubstring("retain"))
		Expect(postgres.Kill()).To(Succeed())
		s.ok(ctx, "delete namespace waiting --wait=false")
		condition := func(kind string) string {
			return s.ok(ctx, "get namespace waiting -o", `jsonpath={.status.conditions[?(@.type=="`+kind+`")].status}`)
		}
		Eventually(condition).WithContext(ctx).WithTimeout(lag).WithArguments("NamespaceFinalizersRemaining").Should(Equal("True"))
		Expect(condition("NamespaceDeletionDiscoveryFailure")).To(Equal("False"))
		Expect(condition("NamespaceDeletionGroupVersionParsingFailure")).To(Equal("False"))
		Expect(condition("NamespaceDeletionContentFailure")).To(Equal("False"))
		// The API server sees a moment later that the namespace is terminating.
		Eventually(func() (string, error) { output, _, err := s.run(ctx, "", "get patients -o name"); return output, err }).
			WithContext(ctx).WithTimeout(lag).Should(BeEmpty())
		Expect(s.no(ctx, "get patient rex")).To(ContainSubstring("(NotFound)"))
		Expect(postgres.Restart(ctx)).To(Succeed())
		Eventually(func() string { return s.ok(ctx, "get --ignore-not-found -o name namespace/waiting") }).
			WithContext(ctx).WithTimeout(2 * lag).Should(BeEmpty())
		Expect(rest(ctx, http.MethodGet, "waiting", token, "/patient/rex", "").status).To(BeElementOf(http.StatusNotFound, http.StatusUnauthorized, http.StatusForbidden))
	})
})
