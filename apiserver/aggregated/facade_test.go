package aggregated_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

// visitorRoles open the door to the user visitor, and to gardener beside it the locations.
const visitorRoles = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: visitor, namespace: demo}
rules: [{apiGroups: [r4.fhir.paddock.health], resources: [facades/fhir, facades/ahds], verbs: [get, create, update, patch, delete]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: visitor, namespace: demo}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: visitor}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: visitor}, {apiGroup: rbac.authorization.k8s.io, kind: User, name: gardener}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: gardener, namespace: demo}
rules: [{apiGroups: [r4.fhir.paddock.health], resources: [locations], verbs: [get, list, create, update, patch, delete]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: gardener, namespace: demo}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: gardener}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: gardener}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: lister, namespace: demo}
rules: [{apiGroups: [r4.fhir.paddock.health], resources: [patients], verbs: [get, list, create, update, patch, delete]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: lister, namespace: demo}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: lister}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: lister}]
`

const facade = group + "/namespaces/demo/facades/demo"

// visit sends a request to kube-apiserver as a user.
func visit(ctx context.Context, user, method, path, contentType, body string) response {
	GinkgoHelper()
	config := rest.CopyConfig(cluster.Config())
	config.Impersonate.UserName = user
	client, err := rest.HTTPClientFor(config)
	Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(ctx, method, config.Host+path, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	return do(client, request)
}

var _ = Describe("The FHIR API behind kube-apiserver", Ordered, func() {
	BeforeAll(func(ctx SpecContext) { apply(ctx, visitorRoles) })

	It("has an object named after the Site to stand for it", func(ctx SpecContext) {
		Expect(must(ctx, "get", "facade", "demo", "-n", "demo", "-o", "name")).To(Equal("facade.r4.fhir.paddock.health/demo\n"))
		Expect(must(ctx, "get", "facade", "demo", "-n", "demo")).To(ContainSubstring("demo"))
		for _, args := range [][]string{{"other", "-n", "demo"}, {"demo", "-n", "default"}} {
			Expect(refused(ctx, append([]string{"get", "facade"}, args...)...)).To(ContainSubstring("(NotFound)"))
		}
		Expect(sendTo(ctx, http.MethodGet, strings.Replace(facade, "facades/demo", "facades/other", 1)+"/fhir/patient", "", "").status).To(Equal(http.StatusNotFound))
	})

	It("answers what it answers at the public address, to kubectl", func(ctx SpecContext) {
		read := decoded([]byte(must(ctx, "get", "--raw", facade+"/fhir/patient/rex")))
		Expect(read).To(Equal(resource(ctx, "rex")))
		found := decoded([]byte(must(ctx, "get", "--raw", facade+"/fhir/patient?name=rex")))
		Expect(found).To(HaveKeyWithValue("total", BeEquivalentTo(1)))
		Expect(found["entry"].([]any)[0]).To(HaveKeyWithValue("fullUrl", siteURL("demo")+"/rex"), "what a record is called does not depend on the way to it")
		Expect(must(ctx, "get", "--raw", facade+"/fhir/metadata")).To(ContainSubstring("CapabilityStatement"))
	})

	It("leads on to further pages the same way", func(ctx SpecContext) {
		next, ids := facade+"/fhir/patient?_count=2&_sort=_id", []string{}
		for pages := 0; next != "" && pages < 5; pages++ {
			page := decoded([]byte(must(ctx, "get", "--raw", next)))
			for _, entry := range page["entry"].([]any) {
				ids = append(ids, entry.(map[string]any)["resource"].(map[string]any)["id"].(string))
			}
			next = ""
			for _, link := range page["link"].([]any) {
				link := link.(map[string]any)
				Expect(link["url"]).To(HavePrefix(facade + "/fhir/patient"))
				if link["relation"] == "next" {
					next = link["url"].(string)
				}
			}
		}
		Expect(ids).To(ContainElements("rex", "p1", "p2", "Bella-1"))
	})

	It("takes every method", func(ctx SpecContext) {
		const path = facade + "/fhir/location"
		Eventually(func() int { // kube-apiserver refuses until it has the RoleBindings
			return visit(ctx, "gardener", http.MethodPut, path+"/yard", "application/json", `{"resourceType":"Location","id":"yard","name":"Yard"}`).status
		}).WithContext(ctx).Should(Equal(http.StatusCreated))
		patched := visit(ctx, "gardener", http.MethodPatch, path+"/yard", "application/json-patch+json", `[{"op":"replace","path":"/name","value":"Back yard"}]`)
		Expect(patched.status).To(Equal(http.StatusOK), "%s", patched.body)
		Expect(patched.header.Get("ETag")).To(Equal(`W/"2"`))
		Expect(string(visit(ctx, "gardener", http.MethodGet, path+"/yard", "", "").body)).To(ContainSubstring("Back yard"))
		created := visit(ctx, "gardener", http.MethodPost, path, "application/json", `{"resourceType":"Location","name":"Barn"}`)
		Expect(created.status).To(Equal(http.StatusCreated), "%s", created.body)
		Expect(created.header.Get("Location")).To(HavePrefix(strings.Replace(siteURL("demo"), "/patient", "/location/", 1)))
		searched := visit(ctx, "gardener", http.MethodPost, path+"/_search", "application/x-www-form-urlencoded", "name=barn")
		Expect(decoded(searched.body)).To(HaveKeyWithValue("total", BeEquivalentTo(1)))
		barn, _ := decoded(created.body)["id"].(string)
		Expect(visit(ctx, "gardener", http.MethodDelete, path+"/"+barn, "", "").status).To(Equal(http.StatusOK))
		Expect(visit(ctx, "gardener", http.MethodDelete, path+"/yard", "", "").status).To(Equal(http.StatusOK))
		Expect(visit(ctx, "gardener", http.MethodGet, path+"/yard", "", "").status).To(Equal(http.StatusGone))
		Expect(visit(ctx, "gardener", http.MethodHead, path, "", "").status).To(Equal(http.StatusOK))
	})

	It("keeps out who has rights on records and none to come this way", func(ctx SpecContext) {
		read := func() int {
			return visit(ctx, "lister", http.MethodGet, group+"/namespaces/demo/patients/rex", "", "").status
		}
		Eventually(read).WithContext(ctx).Should(Equal(http.StatusOK))
		answer := visit(ctx, "lister", http.MethodGet, facade+"/fhir/patient/rex", "", "")
		Expect(answer.status).To(Equal(http.StatusForbidden))
		Expect(string(answer.body)).To(ContainSubstring("facades/fhir"))
	})

	It("does not pass for another site's", func(ctx SpecContext) {
		for _, path := range []string{"/fhir/../../../site/writes/fhir/patient", "/fhir/%2e%2e/%2e%2e/writes/fhir/patient", "/fhirx/patient"} {
			Expect(sendTo(ctx, http.MethodGet, facade+path, "", "").status).To(BeNumerically(">=", 400), path)
		}
	})

	// The way there is no right on any record, neither for users without other rights nor for
	// those with a right on another type.
	for _, kind := range kinds {
		It("does not open "+kind.plural, func(ctx SpecContext) {
			users := []string{"visitor"}
			if kind.plural != "locations" { // those are gardener's own
				users = append(users, "gardener")
			}
			before := history(ctx)
			segment := "/fhir/" + kind.kind
			body := `{"resourceType":"` + kind.kind + `","id":"rex"}`
			for _, try := range []struct{ method, path, contentType, body string }{
				{http.MethodGet, segment, "", ""},
				{http.MethodGet, segment + "?_id=rex", "", ""},
				{http.MethodGet, segment + "/rex", "", ""},
				{http.MethodHead, segment + "/rex", "", ""},
				{http.MethodGet, segment + "/_history", "", ""},
				{http.MethodGet, segment + "/rex/_history", "", ""},
				{http.MethodGet, segment + "/rex/_history/1", "", ""},
				{http.MethodPost, segment + "/_search", "application/x-www-form-urlencoded", "_id=rex"},
				{http.MethodPost, segment, "application/json", body},
				{http.MethodPost, segment + "/$validate", "application/json", body},
				{http.MethodPut, segment + "/rex", "application/json", body},
				{http.MethodPut, segment + "?_id=rex", "application/json", body},
				{http.MethodPatch, segment + "/rex", "application/json-patch+json", `[{"op":"add","path":"/active","value":true}]`},
				{http.MethodDelete, segment + "/rex", "", ""},
				{http.MethodDelete, segment + "?_id=rex", "", ""},
			} {
				for _, user := range users {
					answer := visit(ctx, user, try.method, facade+try.path, try.contentType, try.body)
					Expect(answer.status).To(Equal(http.StatusForbidden), "%s %s %s: %s", user, try.method, try.path, answer.body)
					Expect(string(answer.body)).NotTo(Or(ContainSubstring("Oak"), ContainSubstring(`"entry"`)))
				}
			}
			Expect(history(ctx)).To(Equal(before))
		})
	}

	It("does not open anything by bundles or searches across types", func(ctx SpecContext) {
		before := history(ctx)
		batch := `{"resourceType":"Bundle","type":"batch","entry":[{"request":{"method":"GET","url":"Patient/rex"}},{"request":{"method":"DELETE","url":"Patient/rex"}}]}`
		for _, user := range []string{"visitor", "gardener"} {
			for _, answer := range []response{
				visit(ctx, user, http.MethodPost, facade+"/fhir", "application/fhir+json", batch),
				visit(ctx, user, http.MethodGet, facade+"/fhir?_type=Patient", "", ""),
				visit(ctx, user, http.MethodGet, facade+"/fhir/_history", "", ""),
			} {
				Expect(string(answer.body)).NotTo(ContainSubstring("Oak"))
			}
		}
		Expect(history(ctx)).To(Equal(before))
	})
})

// history is that of the site demo as far as it can be told apart: how long it is.
func history(ctx context.Context) any {
	GinkgoHelper()
	answer := send(ctx, http.MethodGet, strings.TrimSuffix(siteURL("demo"), "/patient")+"/_history?_count=1", token, "")
	Expect(answer.status).To(Equal(http.StatusOK), "%s", answer.body)
	return decoded(answer.body)["total"]
}

var _ = Describe("The AHDS API behind kube-apiserver", Ordered, func() {
	BeforeAll(func(ctx SpecContext) { apply(ctx, visitorRoles) })

	It("is served to who has rights there", func(ctx SpecContext) {
		answer := sendTo(ctx, http.MethodGet, facade+"/ahds/v1/eventgroup", "", "")
		Expect(answer.status).To(Equal(http.StatusOK), "%s", answer.body)
		Expect(json.Valid(answer.body)).To(BeTrue())
	})

	It("opens nothing by the way there", func(ctx SpecContext) {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			for _, path := range []string{"/ahds/v1/eventgroup", "/ahds/v1/availability-slot", "/ahds/v1/webhook"} {
				answer := visit(ctx, "visitor", method, facade+path, "application/json", "{}")
				Expect(answer.status).To(BeElementOf(http.StatusNotFound, http.StatusForbidden), "%s %s: %s", method, path, answer.body)
			}
		}
	})
})
