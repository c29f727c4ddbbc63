package acceptance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// tenantManifest is a namespace with an editor of its records.
const tenantManifest = `
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
`

// siteManifest is a tenant with a Site: namespace, name, siteID, deletionPolicy.
const siteManifest = tenantManifest + `---
apiVersion: paddock.health/v1alpha1
kind: Site
metadata: {name: %[2]s, namespace: %[1]s}
spec: {siteID: %[3]s, deletionPolicy: %[4]s}
`

// apply applies YAML with kubectl.
func apply(ctx SpecContext, format string, args ...any) {
	GinkgoHelper()
	Expect(tryApply(ctx, format, args...)).To(Succeed())
}

func tryApply(ctx SpecContext, format string, args ...any) error {
	GinkgoHelper()
	return applyWith(ctx, nil, format, args...)
}

// dryRun asks kube-apiserver whether it would accept YAML.
func dryRun(ctx SpecContext, format string, args ...any) error {
	GinkgoHelper()
	return applyWith(ctx, []string{"--dry-run=server"}, format, args...)
}

func applyWith(ctx SpecContext, flags []string, format string, args ...any) error {
	GinkgoHelper()
	file, err := os.CreateTemp("", "manifest-*.yaml")
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(os.Remove(file.Name())).To(Succeed()) }()
	_, err = fmt.Fprintf(file, format, args...)
	Expect(errors.Join(err, file.Close())).To(Succeed())
	_, err = paddock.Kubectl(ctx, append([]string{"apply", "-f", file.Name()}, flags...)...)
	return err
}

func kubectl(ctx SpecContext, args ...string) string {
	GinkgoHelper()
	output, err := paddock.Kubectl(ctx, args...)
	Expect(err).NotTo(HaveOccurred())
	return string(output)
}

// awaitRight waits until a user has a right, because kube-apiserver learns of a RoleBinding a moment after it
// was created.
func awaitRight(ctx SpecContext, user string, right authorizationv1.ResourceAttributes) {
	GinkgoHelper()
	clients, err := kubernetes.NewForConfig(cluster.Config())
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() (bool, error) {
		review, err := clients.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &right},
		}, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed, err
	}).Should(BeTrue())
}

// editorOf makes a token of a namespace's editor for a Site, and waits until the editor has its rights.
func editorOf(ctx SpecContext, namespace, site string) string {
	GinkgoHelper()
	awaitRight(ctx, "system:serviceaccount:"+namespace+":editor",
		authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "list", Group: "r4.fhir.paddock.health", Resource: "patients"})
	made, err := paddock.Token(ctx, namespace, "editor", "paddock.health/"+namespace+"/"+site, time.Hour)
	Expect(err).NotTo(HaveOccurred())
	return made
}

var _ = Describe("Sites", func() {
	It("are served soon after they are Ready, and no longer within a second after they are deleted", func(ctx SpecContext) {
		apply(ctx, siteManifest, "clinic-short", "short", "short", "Retain")
		waitReady(ctx, "clinic-short", "short")
		editor := editorOf(ctx, "clinic-short", "short")
		for i, base := range paddock.URLs {
			answer := send(request{method: "PUT", url: fmt.Sprintf("%s/site/short/fhir/patient/p%d", base, i), body: patient(i), token: editor})
			Expect(answer.status).To(Equal(http.StatusCreated), string(answer.body))
		}
		kubectl(ctx, "delete", "site", "short", "-n", "clinic-short")
		for _, base := range paddock.URLs {
			Eventually(func() int {
				return send(request{method: "GET", url: base + "/site/short/fhir/patient/p0", token: editor}).status
			}).Within(time.Second).ProbeEvery(5 * time.Millisecond).Should(Equal(http.StatusNotFound))
		}
		By("adopting the retained records again")
		apply(ctx, siteManifest, "clinic-short", "short", "short", "Delete")
		waitReady(ctx, "clinic-short", "short")
		for _, base := range paddock.URLs {
			Expect(send(request{method: "GET", url: base + "/site/short/fhir/patient/p1", token: editor}).status).To(Equal(http.StatusOK))
		}
		By("deleting the records with the Site")
		kubectl(ctx, "delete", "site", "short", "-n", "clinic-short")
		Expect(kubectl(ctx, "get", "records,recordhistories,recordclaims", "-n", "clinic-short", "-o", "name")).To(BeEmpty())
		By("giving the siteID to somebody else, who finds nothing")
		apply(ctx, siteManifest, "clinic-next", "next", "short", "Retain")
		waitReady(ctx, "clinic-next", "next")
		next := editorOf(ctx, "clinic-next", "next")
		for _, base := range paddock.URLs {
			Eventually(func() any {
				return send(request{method: "GET", url: base + "/site/short/fhir/patient", token: next}).field("total")
			}).Should(BeEquivalentTo(0))
			Expect(send(request{method: "GET", url: base + "/site/short/fhir/patient/p0", token: editor}).status).NotTo(Equal(http.StatusOK))
		}
	})

	It("that want another's siteID never get to its records", func(ctx SpecContext) {
		apply(ctx, siteManifest, "clinic-first", "oak", "contested", "Retain")
		waitReady(ctx, "clinic-first", "oak")
		first := editorOf(ctx, "clinic-first", "oak")
		Expect(send(request{method: "PUT", url: balanced + "/site/contested/fhir/patient/rex", body: patient(1), token: first}).status).To(Equal(http.StatusCreated))
		By("being refused as they are applied")
		apply(ctx, tenantManifest, "clinic-second")
		// Without an answer within three seconds, kube-apiserver accepts a Site, so these are not stored.
		Eventually(func() error { return dryRun(ctx, siteManifest, "clinic-second", "oak", "contested", "Retain") }).
			Should(MatchError(ContainSubstring("spec.siteID: SiteIDTaken: siteID \"contested\" is taken by another Site")))
		Eventually(func() error { return dryRun(ctx, siteManifest, "clinic-first", "elm", "contested-too", "Retain") }).
			Should(MatchError(ContainSubstring("metadata.namespace: NamespaceOccupied")))

		By("and where that was not asked")
		kubectl(ctx, "delete", "validatingwebhookconfiguration", "paddock-controller")
		DeferCleanup(func(ctx SpecContext) { Expect(paddock.RegisterWebhook(ctx)).To(Succeed()) })
		Eventually(func() error { return tryApply(ctx, siteManifest, "clinic-second", "oak", "contested", "Retain") }).Should(Succeed())
		Expect(kubectl(ctx, "wait", "--for=condition=Accepted=false", "--timeout=1m", "-n", "clinic-second", "site/oak")).NotTo(BeEmpty())
		Expect(kubectl(ctx, "get", "site", "oak", "-n", "clinic-second", "-o", `jsonpath={.status.conditions[?(@.type=="Accepted")].reason}`)).To(Equal("SiteIDTaken"))
		second := editorOf(ctx, "clinic-second", "oak")
		refused := func() int {
			return send(request{method: "GET", url: balanced + "/site/contested/fhir/patient/rex", token: second}).status
		}
		Expect(refused()).To(Equal(http.StatusUnauthorized), "a token for another site")
		kubectl(ctx, "delete", "site", "oak", "-n", "clinic-first")
		Consistently(refused).WithTimeout(2 * time.Second).ProbeEvery(50 * time.Millisecond).Should(BeElementOf(http.StatusUnauthorized, http.StatusNotFound))
	})

	It("say so when storage is nearly full, and refuse at the limit", func(ctx SpecContext) {
		apply(ctx, siteManifest, "clinic-small", "small", "small", "Delete")
		kubectl(ctx, "patch", "site", "small", "-n", "clinic-small", "--type=merge", "-p", `{"spec":{"storage":{"cluster":{"maxRecords":10}}}}`)
		waitReady(ctx, "clinic-small", "small")
		editor := editorOf(ctx, "clinic-small", "small")
		base := balanced + "/site/small/fhir/patient"
		Eventually(func(g Gomega) {
			for i := range 10 {
				send(request{method: "PUT", url: fmt.Sprintf("%s/p%d", base, i), body: patient(i), token: editor})
			}
			g.Expect(send(request{method: "POST", url: base, body: patient(11), token: editor}).status).To(Equal(http.StatusInsufficientStorage))
		}).Should(Succeed())
		Expect(kubectl(ctx, "wait", "--for=condition=StorageNearLimit", "--timeout=1m", "-n", "clinic-small", "site/small")).NotTo(BeEmpty())
	})
})

// idleTime is how long nothing may be written. PADDOCK_IDLE_TIME lengthens it.
func idleTime() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("PADDOCK_IDLE_TIME")); err == nil {
		return d
	}
	return 20 * time.Second
}

var _ = Describe("An idle installation", Serial, func() {
	It("writes nothing but Leases", func(ctx SpecContext) {
		// What other specs caused is written when no state of a site is still to come, and
		// for longer than between two looks at it nothing was.
		const quiet = 7 * time.Second
		time.Sleep(quiet)
		Eventually(ctx, func(g Gomega) {
			g.Expect(kubectl(ctx, "get", "site", "demo-postgres", "-n", "demo-postgres", "-o",
				`jsonpath={.status.conditions[?(@.type=="IndexReady")].status}`)).To(Equal("True"))
			g.Expect(kubectl(ctx, "get", "validatingwebhookconfiguration", "paddock-controller", "-o", "jsonpath={.webhooks[*].clientConfig.caBundle}")).
				NotTo(BeEmpty(), "another spec registers the webhook anew, and the controller looks once a minute whom it is to trust")
			g.Expect(writesSince(time.Now().Add(-quiet))).To(BeEmpty())
		}).WithTimeout(2 * time.Minute).WithPolling(time.Second).Should(Succeed())
		from := time.Now()
		time.Sleep(idleTime())
		Expect(writesSince(from)).To(BeEmpty())
	}, SpecTimeout(time.Hour))
})

// writesSince lists the API requests that wrote something, from the audit log.
func writesSince(from time.Time) []string {
	GinkgoHelper()
	text, err := os.ReadFile(cluster.AuditLog())
	Expect(err).NotTo(HaveOccurred())
	text = text[:bytes.LastIndexByte(text, '\n')+1] // kube-apiserver may be writing the last line
	var writes []string
	seen := 0
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Stage, Verb, RequestURI  string
			User                     struct{ Username string }
			ObjectRef                struct{ Resource, Name string }
			RequestReceivedTimestamp time.Time
		}
		Expect(json.Unmarshal(lines.Bytes(), &event)).To(Succeed())
		seen++
		ours := event.User.Username == "system:serviceaccount:paddock-system:paddock-apiserver" ||
			event.User.Username == "system:serviceaccount:paddock-system:paddock-controller"
		reads := map[string]bool{"get": true, "list": true, "watch": true}
		if ours && !reads[event.Verb] && event.ObjectRef.Resource != "leases" && event.RequestReceivedTimestamp.After(from) {
			writes = append(writes, event.User.Username+" "+event.Verb+" "+event.RequestURI)
		}
	}
	Expect(lines.Err()).NotTo(HaveOccurred())
	Expect(seen).To(BeNumerically(">", 100), "the audit log is there")
	return writes
}
