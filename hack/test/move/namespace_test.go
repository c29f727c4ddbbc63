package move

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/dev/localreceiver"
)

// newNamespace has the Site that takes over from the Site demo of the namespace demo, without consent at
// first. The rights of the editor are copied by the command, or here.
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

const (
	// clinicWriters and clinicReaders are those of the issue.
	clinicWriters, clinicReaders = 16, 16
)

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

// namespaceSpecs move the Site demo to the namespace clinic, and back.
func namespaceSpecs() {
	var key, url string

	It("does not move to a namespace that does not agree", func(ctx SpecContext) {
		key = strings.Fields(holder(ctx))[1]
		url = kubectl(ctx, "get", "site", "demo", "-n", "demo", "-o", "jsonpath={.status.url}")
		apply(ctx, newNamespace)
		uri := postgres.URL("second")
		Expect(paddock.SetSecret(ctx, "clinic", "second", "paddock.health/dsn", map[string]string{"uri": uri})).To(Succeed())
		apply(ctx, fmt.Sprintf(takingSite, "other"))
		Eventually(func() string { return accepted(ctx, "clinic") }).WithTimeout(patience).Should(Equal("AwaitingMove"))
		apply(ctx, fmt.Sprintf(moveToClinic, "refused"))
		Eventually(stalled(ctx, "refused")).WithTimeout(patience).Should(Equal("TargetNotReady"))
		Expect(holder(ctx)).To(Equal("demo/demo " + key))
		decide(ctx, "refused", "RollBack")
		await(ctx, "refused", "RolledBack")
		apply(ctx, fmt.Sprintf(takingSite, "demo"))
	})

	It("moves from Postgres to a namespace under load, with its pending deliveries, although programs are killed", func(ctx SpecContext) {
		create(ctx, "tables", "second") // the database gets the tables that killIn locks
		await(ctx, "tables", "Switched")
		decide(ctx, "tables", "RollBack")
		await(ctx, "tables", "RolledBack")
		create(ctx, "before-clinic", "first")
		await(ctx, "before-clinic", "Switched")
		decide(ctx, "before-clinic", "Confirm")
		await(ctx, "before-clinic", "Completed")

		receiver.Take()
		receiver.Answer(503)
		hook := fmt.Sprintf(webhook, receiver.URL+"/hook", receiver.CABundle())
		apply(ctx, hook)
		kubectl(ctx, "wait", "--for=condition=Active", "--timeout=60s", "-n", "demo", "webhook/hook")
		got := send(ctx, "PUT", paddock.URLs[0]+demo+"/fhir/practitioner/n-0", `{"resourceType":"Practitioner","id":"n-0"}`)
		Expect(got.status).To(Or(Equal(200), Equal(201)), got.body)
		Eventually(func() int { return len(receiver.Where(func(localreceiver.Delivery) bool { return true })) }).WithTimeout(patience).Should(BeNumerically(">", 0))

		apply(ctx, fmt.Sprintf(moveToClinic, "to-clinic"))
		Eventually(stalled(ctx, "to-clinic")).WithTimeout(patience).Should(Equal("WebhooksMissing"))
		l := startLoadOf("n", clinicWriters, clinicReaders)
		killIn(ctx, "to-clinic", "second", forwardSteps("first", "second"), controllerAndAPI, func() {
			apply(ctx, strings.ReplaceAll(hook, "namespace: demo", "namespace: clinic"))
		})
		await(ctx, "to-clinic", "Switched")
		Expect(holder(ctx)).To(Equal("clinic/demo " + key))
		Eventually(func() string { return accepted(ctx, "demo") }).WithTimeout(patience).Should(Equal("Moved"))
		Expect(kubectl(ctx, "get", "site", "demo", "-n", "clinic", "-o", "jsonpath={.status.url}")).To(Equal(url))
		receiver.Take()
		receiver.Answer(200)
		all := func(localreceiver.Delivery) bool { return true }
		Eventually(func() int { return len(receiver.Where(all)) }).WithTimeout(patience).Should(Equal(1))
		time.Sleep(time.Second)
		Expect(receiver.Where(all)).To(HaveLen(1), "deliveries after the switch, each made once")
		l.stop(ctx)
		AddReportEntry("pause of writes with killed programs, to another namespace", pauseOf(ctx, "to-clinic"))
		kubectl(ctx, "delete", "webhook", "hook", "-n", "clinic")
		kubectl(ctx, "delete", "webhook", "hook", "-n", "demo")
	})

	It("returns to its namespace with the writes since the switch", func(ctx SpecContext) {
		l := startLoadOf("o", clinicWriters, clinicReaders)
		time.Sleep(time.Second)
		decide(ctx, "to-clinic", "RollBack")
		await(ctx, "to-clinic", "RolledBack")
		Expect(holder(ctx)).To(Equal("demo/demo " + key))
		Eventually(func() string { return accepted(ctx, "clinic") }).WithTimeout(patience).Should(Equal("AwaitingMove"))
		time.Sleep(time.Second)
		l.stop(ctx)
		expectNothing(ctx, "second")
		AddReportEntry("pause of writes, from another namespace", pauseOf(ctx, "to-clinic"))
	})

	It("moves for good, with the tokens of its former namespace", func(ctx SpecContext) {
		l := startLoadOf("q", clinicWriters, clinicReaders)
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
		Expect(pauseOf(ctx, name)).To(BeNumerically("<", 15*time.Second))
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
