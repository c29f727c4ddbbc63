package aggregated_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// auditEvent is what the specs look at of an AuditEvent.
type auditEvent struct {
	Subtype []struct{ System, Code string }
	Action  string
	Outcome string
	Agent   []struct {
		Who struct{ Identifier struct{ Value string } }
	}
	Entity []struct {
		Detail []struct{ Type, ValueString string }
	}
}

// accesses are the entries of a record in the log of a facade: api, verb, action and outcome, oldest
// first.
func accesses(ctx SpecContext, facade, query string) []string {
	GinkgoHelper()
	answer := ask(ctx, facade+"/fhir/AuditEvent?_count=1000&"+query, "application/fhir+json")
	Expect(answer.status).To(Equal(http.StatusOK), string(answer.body))
	var page struct {
		Entry []struct{ Resource auditEvent }
	}
	Expect(json.Unmarshal(answer.body, &page)).To(Succeed())
	var found []string
	for _, each := range page.Entry {
		event := each.Resource
		api := "fhir"
		if _, other, ok := strings.Cut(event.Subtype[0].System, "2026:"); ok {
			api = other
		}
		details := event.Entity[len(event.Entity)-1].Detail
		Expect(details).To(ContainElement(HaveField("Type", "request-id")))
		Expect(event.Agent[0].Who.Identifier.Value).NotTo(BeEmpty())
		found = append([]string{strings.Join([]string{api, event.Subtype[0].Code, event.Action, event.Outcome}, " ")}, found...)
	}
	return found
}

var _ = Describe("The audit log", func() {
	It("has what comes through kube-apiserver, once", func(ctx SpecContext) {
		const manifest = `{"apiVersion":"r4.fhir.paddock.health/v1alpha1","kind":"Patient","metadata":{"name":"audited","namespace":"demo"},"spec":{"name":[{"family":"SeededKubectlBody"}]}}`
		apply(ctx, manifest)
		must(ctx, "get", "patients.r4.fhir.paddock.health", "audited", "-n", "demo")
		must(ctx, "get", "patients.r4.fhir.paddock.health", "-n", "demo", "-l", "example.org/owner=SeededKubectlSelector")
		must(ctx, "get", "patients.r4.fhir.paddock.health", "-n", "demo")
		must(ctx, "patch", "patients.r4.fhir.paddock.health", "audited", "-n", "demo", "--type=merge", "-p", `{"spec":{"gender":"male","name":[{"family":"SeededKubectlPatch"}]}}`)
		must(ctx, "get", "--raw", facade+"/fhir/Patient/audited")
		must(ctx, "get", "--raw", facade+"/fhir/patient?family=SeededKubectlQuery")
		must(ctx, "delete", "patients.r4.fhir.paddock.health", "audited", "-n", "demo")
		refused(ctx, "get", "patients.r4.fhir.paddock.health", "audited-ghost", "-n", "demo")
		Eventually(func() []string {
			return accesses(ctx, facade, "entity=Patient/audited&subtype=create,get,list,patch,read,delete")
		}).
			WithContext(ctx).Should(Equal([]string{
			"kubernetes get R 4", "kubernetes create C 0", "kubernetes get R 0",
			"kubernetes list E 0", // by labels: a record is read to see what it has
			"kubernetes list E 0",
			"kubernetes get R 0", "kubernetes patch U 0", "fhir read R 0",
			"kubernetes delete D 0", "kubernetes get R 4", // kubectl waits until it is gone
		}))
		// This entry may be stored in a later batch.
		Eventually(func() []string { return accesses(ctx, facade, "entity=Patient/audited-ghost") }).WithContext(ctx).
			Should(Equal([]string{"kubernetes get R 4"}))
		By("and nothing of what was sent")
		misshapen := strings.ReplaceAll(manifest, `[{"family":"SeededKubectlBody"}]`, `"SeededKubectlShape"`)
		patients := group + "/namespaces/demo/patients"
		Expect(sendTo(ctx, http.MethodPost, patients, "application/json", misshapen).status).To(Equal(http.StatusUnprocessableEntity))
		Expect(sendTo(ctx, http.MethodPatch, patients+"/audited?fieldManager=x", "application/apply-patch+yaml", misshapen).status).To(Equal(http.StatusBadRequest))
		log := ask(ctx, facade+"/fhir/AuditEvent?_count=1000", "application/fhir+json")
		files, err := filepath.Glob(filepath.Join(cluster.Dir(), "apiserver*.log"))
		Expect(err).NotTo(HaveOccurred())
		Expect(files).NotTo(BeEmpty())
		texts := []string{string(log.body)}
		for _, file := range files {
			text, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			texts = append(texts, string(text))
		}
		for _, text := range texts {
			for line := range strings.Lines(text) {
				Expect(line).NotTo(ContainSubstring("SeededKubectl"))
			}
		}
	}, NodeTimeout(3*time.Minute))

	It("has what this server refuses itself", func(ctx SpecContext) {
		answer := visit(ctx, "stranger-to-all", http.MethodGet, group+"/namespaces/demo/patients/rex", "", "")
		Expect(answer.status).To(Equal(http.StatusForbidden), "by kube-apiserver, whose own log has it")
		apply(ctx, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"door","namespace":"demo"},"rules":[{"apiGroups":["r4.fhir.paddock.health"],"resources":["facades/fhir"],"verbs":["get"]}]}`)
		apply(ctx, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"door","namespace":"demo"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"door"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"at-the-door"}]}`)
		Eventually(func() string { // kube-apiserver refuses with a Status until it has the RoleBinding
			return string(visit(ctx, "at-the-door", http.MethodGet, facade+"/fhir/Patient/rex", "", "").body)
		}).WithContext(ctx).Should(ContainSubstring("OperationOutcome"))
		Eventually(func() []string { return accesses(ctx, facade, "agent=at-the-door") }).WithContext(ctx).
			Should(ContainElement("fhir read R 4"))
	}, NodeTimeout(time.Minute))
})
