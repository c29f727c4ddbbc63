package move

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// newNamespace is the namespace to which the Site demo moves, with some of the rights of the editor. The
// command copies the others.
const newNamespace = `
apiVersion: v1
kind: Namespace
metadata: {name: clinic}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editor-admin, namespace: clinic}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-admin}
subjects: [{kind: ServiceAccount, name: editor, namespace: demo}]
`

const takingSite = `
apiVersion: paddock.health/v1alpha1
kind: Site
metadata: {name: demo, namespace: clinic}
spec:
  takeOver: {namespace: %s, name: demo}
  storage: {type: Postgres, postgres: {external: {secretRef: {name: second}}}}
`

const moveToClinic = `
apiVersion: paddock.health/v1alpha1
kind: SiteMove
metadata: {name: %s, namespace: demo}
spec: {siteName: demo, toSite: {namespace: clinic, name: demo}}`

func holder(ctx context.Context) string {
	GinkgoHelper()
	return kubectl(ctx, "get", "siteclaim", "demo", "-o", "jsonpath={.spec.siteRef.namespace}/{.spec.siteRef.name} {.spec.siteKey}")
}

func accepted(ctx context.Context, namespace string) string {
	GinkgoHelper()
	return kubectl(ctx, "get", "site", "demo", "-n", namespace, "-o", `jsonpath={.status.conditions[?(@.type=="Accepted")].reason}`)
}

func stalled(ctx context.Context, name string) func() string {
	return func() string {
		output, _ := paddock.Kubectl(ctx, "get", "sitemove", name, "-n", "demo", "-o", `jsonpath={.status.conditions[?(@.type=="Stalled")].reason}`)
		return string(output)
	}
}

// prepareClinic makes the namespace clinic and its Site, which agrees to a move from a namespace.
func prepareClinic(ctx context.Context, from string) {
	GinkgoHelper()
	apply(ctx, newNamespace)
	Expect(paddock.SetSecret(ctx, "clinic", "second", "paddock.health/dsn", map[string]string{"uri": uris["second"]})).To(Succeed())
	apply(ctx, fmt.Sprintf(takingSite, from))
	Eventually(func() string { return accepted(ctx, "clinic") }).WithTimeout(patience).Should(Equal("AwaitingMove"))
}

// siteKey returns the site key of the Site demo.
func siteKey(ctx context.Context) string {
	GinkgoHelper()
	return strings.Fields(holder(ctx))[1]
}

// pagePatients is the search of the patients page-1 to page-3, whose first page has two of them.
const pagePatients = patients + "?_id=page-1,page-2,page-3&_count=2"

// firstPage makes patients in this order, unless they exist, and reads the first page of a search for them.
// It returns the address of the next page.
func firstPage(ctx context.Context) string {
	GinkgoHelper()
	for n := range 3 {
		id := fmt.Sprintf("page-%d", n+1)
		got := send(ctx, "PUT", paddock.URLs[0]+patients+"/"+id, patient(id, 0))
		Expect(got.status).To(Or(Equal(200), Equal(201)), got.body)
	}
	ids, next := pageAt(ctx, paddock.URLs[0]+pagePatients)
	Expect(ids).To(Equal([]string{"page-3", "page-2"}), "the newest first")
	Expect(next).NotTo(BeEmpty())
	return next
}

// expectLastPage expects that the address which firstPage returned has the rest of the search. In another
// database, records of one millisecond have another order, so the last record of the page can be repeated.
func expectLastPage(ctx context.Context, address string) {
	GinkgoHelper()
	ids, next := pageAt(ctx, address)
	Expect(ids).To(Or(Equal([]string{"page-1"}), Equal([]string{"page-2", "page-1"})))
	Expect(next).To(BeEmpty())
}

// firstChange makes two slots and returns the cursor that follows on the first change.
func firstChange(ctx context.Context) string {
	GinkgoHelper()
	for n := range 2 {
		created := ahds(ctx, "POST", "/availability-slot", slotAt(3, 8+n))
		Expect(created.status).To(Equal(201), created.body)
	}
	got := ahds(ctx, "GET", "/availability-slot/changes?pageSize=1", "")
	Expect(got.status).To(Equal(200), got.body)
	var page struct {
		Meta struct {
			Next string
			More bool
		}
	}
	Expect(json.Unmarshal([]byte(got.body), &page)).To(Succeed(), got.body)
	Expect(page.Meta.More).To(BeTrue(), got.body)
	return page.Meta.Next
}

// expectRefused expects that an address with a page token of the other engine is refused, because the rest
// of the search would be another one.
func expectRefused(ctx context.Context, address string) {
	GinkgoHelper()
	got := send(ctx, "GET", address, "")
	Expect(got.status).To(Equal(400), got.body)
	Expect(got.body).To(ContainSubstring("start again without it"))
}

// pageAt returns the ids on a page of a search, and the address of the next page.
func pageAt(ctx context.Context, address string) (ids []string, next string) {
	GinkgoHelper()
	got := send(ctx, "GET", address, "")
	Expect(got.status).To(Equal(200), got.body)
	var bundle struct {
		Link  []struct{ Relation, URL string }
		Entry []struct{ Resource struct{ ID string } }
	}
	Expect(json.Unmarshal([]byte(got.body), &bundle)).To(Succeed(), got.body)
	for _, entry := range bundle.Entry {
		ids = append(ids, entry.Resource.ID)
	}
	for _, link := range bundle.Link {
		if link.Relation == "next" {
			next = link.URL
		}
	}
	return ids, next
}

// clusterNamespaceSpecs begin and end with storage in the cluster. The Site of the namespace clinic remains
// there, and waits for a move.
func clusterNamespaceSpecs() {
	It("does not move to a namespace that does not agree", func(ctx SpecContext) {
		key := siteKey(ctx)
		prepareClinic(ctx, "other")
		apply(ctx, fmt.Sprintf(moveToClinic, "refused"))
		Eventually(stalled(ctx, "refused")).WithTimeout(patience).Should(Equal("TargetNotReady"))
		Expect(holder(ctx)).To(Equal("demo/demo " + key))
		decide(ctx, "refused", "RollBack")
		await(ctx, "refused", "RolledBack")
		apply(ctx, fmt.Sprintf(takingSite, "demo"))
	})

	It("moves from the cluster to a namespace under load, and returns with the writes since the switch", func(ctx SpecContext) {
		Expect(storage(ctx)).To(Equal("Cluster "))
		key := siteKey(ctx)
		kubectl(ctx, "delete", "webhookevent", "hook-on", "-n", "demo", "--ignore-not-found") // which the other namespace lacks
		next, cursor := firstPage(ctx), firstChange(ctx)
		l := startLoadOf("k", crowd, crowd)
		apply(ctx, fmt.Sprintf(moveToClinic, "out-of-cluster"))
		await(ctx, "out-of-cluster", "Switched")
		Expect(holder(ctx)).To(Equal("clinic/demo " + key))
		AddReportEntry("pause of writes, from the cluster to another namespace", pauseOf(ctx, "out-of-cluster"))
		expectRefused(ctx, next)
		changes := ahds(ctx, "GET", "/availability-slot/changes?pageSize=1&since="+cursor, "")
		Expect(changes.status).To(Equal(400), changes.body)
		Expect(changes.body).To(ContainSubstring("for example because the site was moved to another storage"))
		later := firstPage(ctx)
		decide(ctx, "out-of-cluster", "RollBack")
		await(ctx, "out-of-cluster", "RolledBack")
		Expect(holder(ctx)).To(Equal("demo/demo " + key))
		Expect(storage(ctx)).To(Equal("Cluster "))
		expectRefused(ctx, later)
		expectLastPage(ctx, next)
		l.stop(ctx)
		expectNothing(ctx, "second")
	})
}

// namespaceSpecs move the Site demo to the namespace clinic, and back.
func namespaceSpecs() {
	var key, url string

	It("moves from Postgres to a namespace under load, with its deliveries, although programs are killed", func(ctx SpecContext) {
		key = siteKey(ctx)
		prepareClinic(ctx, "demo") // already, unless this spec runs alone
		url = kubectl(ctx, "get", "site", "demo", "-n", "demo", "-o", "jsonpath={.status.url}")
		migrate(ctx, "second")
		create(ctx, "before-clinic", "first")
		await(ctx, "before-clinic", "Switched")
		decide(ctx, "before-clinic", "Confirm")
		await(ctx, "before-clinic", "Completed")

		receiver.Take()
		receiver.Answer(200)
		hook := fmt.Sprintf(webhook, receiver.URL+"/hook", receiver.CABundle())
		apply(ctx, hook)
		kubectl(ctx, "wait", "--for=condition=Active", "--timeout=60s", "-n", "demo", "webhook/hook")
		awaitHook(ctx, receiver)
		practitioner(ctx, "n-ended")
		var delivered map[string]delivered
		Eventually(func() string {
			delivered = deliveriesTo(ctx, "demo", "hook", "Practitioner/n-ended")
			return delivered["Practitioner/n-ended"].Status
		}).WithTimeout(patience).Should(Equal("delivered"))
		receiver.Take()
		receiver.Answer(503)
		practitioner(ctx, "n-0")
		Eventually(func() int { return len(receiver.About("Practitioner/n-0")) }).WithTimeout(patience).Should(BeNumerically(">", 0))
		calendar := newCalendar(ctx, "n")
		fill(ctx, 0, 1200) // so that the copy takes several transactions
		next := firstPage(ctx)

		apply(ctx, fmt.Sprintf(moveToClinic, "to-clinic"))
		Eventually(stalled(ctx, "to-clinic")).WithTimeout(patience).Should(Equal("WebhooksMissing"))
		l := startLoadOf("n", crowd, crowd)
		steps := forwardSteps("first", "second")
		steps[1].partly = true
		killIn(ctx, "to-clinic", "second", steps, controllerAndAPI, func() {
			apply(ctx, strings.ReplaceAll(hook, "namespace: demo", "namespace: clinic"))
		})
		await(ctx, "to-clinic", "Switched")
		Expect(holder(ctx)).To(Equal("clinic/demo " + key))
		Eventually(func() string { return accepted(ctx, "demo") }).WithTimeout(patience).Should(Equal("Moved"))
		Expect(kubectl(ctx, "get", "site", "demo", "-n", "clinic", "-o", "jsonpath={.status.url}")).To(Equal(url))
		receiver.Take()
		receiver.Answer(200)
		Eventually(func() int { return len(receiver.About("Practitioner/n-0")) }).WithTimeout(patience).Should(Equal(1))
		time.Sleep(time.Second)
		Expect(receiver.About("Practitioner/n-0")).To(HaveLen(1), "deliveries after the switch, each made once")
		l.stop(ctx)
		AddReportEntry("pause of writes with killed programs, to another namespace", pauseOf(ctx, "to-clinic"))

		By("using what was there before")
		awaitPast(ctx, "to-clinic")
		moved := deliveriesTo(ctx, "clinic", "hook", "Practitioner/n-ended")["Practitioner/n-ended"]
		former := delivered["Practitioner/n-ended"]
		moved.DeliveryID = former.DeliveryID // which depends on the namespace of the webhook
		Expect(moved).To(Equal(former), "the ended delivery, with its attempts")
		readCalendar(calendar)
		expectLastPage(ctx, next)
	})

	It("returns to its namespace with the writes since the switch, although programs are killed", func(ctx SpecContext) {
		next := firstPage(ctx)
		l := startLoadOf("o", crowd, crowd)
		time.Sleep(time.Second)
		killIn(ctx, "to-clinic", "second", backSteps("first", "second"), controllerAndAPI, func() { decide(ctx, "to-clinic", "RollBack") })
		await(ctx, "to-clinic", "RolledBack")
		Expect(holder(ctx)).To(Equal("demo/demo " + key))
		Eventually(func() string { return accepted(ctx, "clinic") }).WithTimeout(patience).Should(Equal("AwaitingMove"))
		time.Sleep(time.Second)
		l.stop(ctx)
		expectNothing(ctx, "second")
		AddReportEntry("pause of writes with killed programs, from another namespace", pauseOf(ctx, "to-clinic"))
		Expect(deliveriesTo(ctx, "demo", "hook", "Practitioner/n-0")["Practitioner/n-0"].Status).To(Equal("delivered"), "the delivery made since the switch")
		expectLastPage(ctx, next)
		for _, namespace := range []string{"clinic", "demo"} {
			kubectl(ctx, "delete", "webhook", "hook", "-n", namespace)
		}
	})

	It("moves for good, with the tokens of its former namespace", func(ctx SpecContext) {
		l := startLoadOf("q", crowd, crowd)
		time.Sleep(time.Second)
		got := run(ctx, "move", "demo", "-n", "demo", "--to-namespace", "clinic")
		Expect(got.code).To(Equal(1), "%+v", got)
		Expect(got.stderr).To(ContainSubstring("editor-auditor (paddock-auditor)"))
		got = run(ctx, "move", "demo", "-n", "demo", "--to-namespace", "clinic", "--copy-role-bindings")
		Expect(got.code).To(Equal(0), "%+v", got)
		Expect(kubectl(ctx, "get", "rolebinding", "editor-auditor", "-n", "clinic", "-o", "jsonpath={.roleRef.name}")).To(Equal("paddock-auditor"))
		name := kubectl(ctx, "get", "site", "demo", "-n", "clinic", "-o", "jsonpath={.status.move.name}")
		time.Sleep(time.Second)
		l.stop(ctx)
		AddReportEntry("pause of writes, to another namespace", pauseOf(ctx, name))
		Expect(pauseOf(ctx, name)).To(BeNumerically("<", maxPause))
		got = run(ctx, "move", "demo", "-n", "clinic", "--confirm")
		Expect(got.code).To(Equal(0), "%+v", got)
		expectNothing(ctx, "first")
		kubectl(ctx, "delete", "site", "demo", "-n", "demo")
		Expect(holder(ctx)).To(Equal("clinic/demo " + key))
		Expect(send(ctx, "GET", paddock.URLs[0]+patients+"?_count=1", "").status).To(Equal(200))
		current, err := paddock.Token(ctx, "demo", "editor", "paddock.health/clinic/demo", time.Hour)
		Expect(err).NotTo(HaveOccurred())
		former := token
		token = current
		defer func() { token = former }()
		Expect(send(ctx, "GET", paddock.URLs[0]+patients+"?_count=1", "").status).To(Equal(200))
	})
}
