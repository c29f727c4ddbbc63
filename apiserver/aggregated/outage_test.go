package aggregated_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const closedSite = `
apiVersion: v1
kind: Namespace
metadata: {name: closed}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: editor, namespace: closed}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editor, namespace: closed}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-editor}
subjects: [{kind: ServiceAccount, name: editor, namespace: closed}]
---
apiVersion: paddock.health/v1alpha1
kind: Site
metadata: {name: closed, namespace: closed}
`

// patients asks for the patients of a namespace.
func patients(ctx SpecContext, namespace, name string) response {
	GinkgoHelper()
	return ask(ctx, group+"/namespaces/"+namespace+"/patients"+name, "application/json")
}

var _ = Describe("A site whose storage is not ready", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		apply(ctx, closedSite)
		put(ctx, "closed", startSite(ctx, "closed", "closed"), "rex", `{"resourceType":"Patient","id":"rex"}`)
		Expect(patients(ctx, "closed", "/rex").status).To(Equal(http.StatusOK))
		// Without the controller, which would put the condition right.
		Expect(paddock.Controllers[0].Kill()).To(Succeed())
		conditions := must(ctx, "get", "site", "closed", "-n", "closed", "-o", "jsonpath={.status.conditions}")
		must(ctx, "patch", "site", "closed", "-n", "closed", "--subresource=status", "--type=merge", "-p", closeStorage(conditions))
	})
	AfterAll(func(ctx SpecContext) {
		must(ctx, "patch", "site", "closed", "-n", "closed", "--type=merge", "-p", `{"spec":{"displayName":"Open again"}}`)
		Expect(paddock.Controllers[0].Restart(ctx)).To(Succeed())
		Eventually(func() int { return patients(ctx, "closed", "/rex").status }).WithContext(ctx).WithTimeout(specLag).Should(Equal(http.StatusOK))
	})

	It("answers 503 and when to come back, it alone", func(ctx SpecContext) {
		for _, name := range []string{"", "/rex"} {
			var answer response
			Eventually(func() int {
				answer = patients(ctx, "closed", name)
				return answer.status
			}).WithContext(ctx).Should(Equal(http.StatusServiceUnavailable))
			Expect(answer.header.Get("Retry-After")).To(Equal("1"))
			var status metav1.Status
			Expect(json.Unmarshal(answer.body, &status)).To(Succeed())
			Expect(status.Reason).To(Equal(metav1.StatusReasonServiceUnavailable))
			Expect(status.Message).To(ContainSubstring("namespace closed"))
		}
		Expect(patients(ctx, "demo", "/rex").status).To(Equal(http.StatusOK))
		Expect(must(ctx, "api-resources", "--categories=fhir", "-o", "name")).To(Equal(resourceNames()))
	})
})

// closeStorage is a patch that makes the condition StorageReady false among conditions.
func closeStorage(conditions string) string {
	GinkgoHelper()
	var all []metav1.Condition
	Expect(json.Unmarshal([]byte(conditions), &all)).To(Succeed())
	for i := range all {
		if all[i].Type == "StorageReady" {
			all[i].Status = metav1.ConditionFalse
		}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": all}})
	Expect(err).NotTo(HaveOccurred())
	return string(patch)
}

var _ = Describe("A killed server", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		Expect(paddock.APIServers[0].Kill()).To(Succeed())
	})
	AfterAll(func(ctx SpecContext) {
		Expect(paddock.APIServers[0].Restart(ctx)).To(Succeed())
		Eventually(func() int { return patients(ctx, "demo", "/rex").status }).WithContext(ctx).WithTimeout(specLag).Should(Equal(http.StatusOK))
		Eventually(kubectl).WithContext(ctx).WithTimeout(specLag).WithArguments("api-resources", "--categories=fhir", "-o", "name").
			Should(Equal(resourceNames()))
	})

	It("takes the patients away and nothing else", func(ctx SpecContext) {
		Expect(patients(ctx, "demo", "/rex").status).To(Equal(http.StatusServiceUnavailable))
		Expect(must(ctx, "get", "ns", "demo", "-o", "name")).To(Equal("namespace/demo\n"))
		Expect(must(ctx, "get", "sites", "-A", "-o", "name")).To(ContainSubstring("site.paddock.health/demo"))
		apply(ctx, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: meanwhile, namespace: default}\n")
		Expect(must(ctx, "delete", "configmap", "meanwhile", "-n", "default")).To(ContainSubstring("deleted"))
	})

	It("refuses no caller while it starts", func(ctx SpecContext) {
		for range 3 {
			if paddock.APIServers[0].Running() {
				Expect(paddock.APIServers[0].Kill()).To(Succeed())
			}
			restarted := make(chan error, 1)
			go func() { restarted <- paddock.APIServers[0].Restart(ctx) }()
			statuses := map[int]int{}
			Eventually(func() int {
				// Without patience: the time in which a server knows no front proxy is short.
				answer := ask(ctx, group+"/namespaces/demo/patients/rex", "application/json")
				statuses[answer.status]++
				return statuses[http.StatusOK]
			}).WithContext(ctx).WithTimeout(specLag).WithPolling(time.Millisecond).Should(BeNumerically(">", 20))
			Expect(<-restarted).To(Succeed())
			Expect(slices.Sorted(maps.Keys(statuses))).To(HaveEach(BeElementOf(http.StatusOK, http.StatusServiceUnavailable)), "%v", statuses)
		}
	})
})
