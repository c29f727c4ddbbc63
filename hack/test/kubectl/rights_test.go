package kubectl_test

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const readerManifest = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [r4.fhir.paddock.health], resources: [patients], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: reader}]
`

// Whoever may get patients may do that by every door, and nothing else by any.
var _ = Describe("A user with get patients only", func() {
	for _, engine := range engines {
		Context("of records in "+engine, Ordered, func() {
			site := "rights-" + engine
			s := &script{namespace: site}
			as := " --as=system:serviceaccount:" + site + ":reader"
			var token string

			BeforeAll(func(ctx SpecContext) {
				startSite(ctx, site, engine)
				s.feed(ctx, readerManifest, "apply -f -")
				putAll(ctx, site, editor(ctx, site), map[string]string{
					"/patient/rex":      `{"resourceType":"Patient","id":"rex"}`,
					"/practitioner/ana": `{"resourceType":"Practitioner","id":"ana"}`,
				})
				var err error
				token, err = paddock.Token(ctx, site, "reader", "paddock.health/"+site+"/"+site, time.Hour)
				Expect(err).NotTo(HaveOccurred())
				Eventually(func() int { return rest(ctx, http.MethodGet, site, token, "/patient/rex", "").status }).
					WithContext(ctx).WithTimeout(lag).Should(Equal(http.StatusOK))
				Eventually(func() error { _, _, err := s.run(ctx, "", "get patient rex"+as); return err }).
					WithContext(ctx).WithTimeout(lag).Should(Succeed())
			})

			It("gets a patient by kubectl, by a raw path and by REST", func(ctx SpecContext) {
				Expect(s.ok(ctx, "get patient rex -o name"+as)).To(Equal("patient.r4.fhir.paddock.health/rex\n"))
				Expect(s.ok(ctx, "get --raw "+group+"/namespaces/"+site+"/patients/rex"+as)).To(ContainSubstring(`"name":"rex"`))
				Expect(rest(ctx, http.MethodGet, site, token, "/patient/rex", "").status).To(Equal(http.StatusOK))
			})

			It("does nothing else by kubectl", func(ctx SpecContext) {
				for _, line := range []string{
					"get patients", "get practitioner ana", "get practitioners", "get patient rex -n etcd", "describe patients",
					"delete patient rex", "label patient rex a=b", "patch patient rex --type=merge -p {}", "delete practitioner ana",
					"get --raw " + group + "/namespaces/" + site + "/patients", "get --raw " + group + "/patients",
				} {
					Expect(s.no(ctx, line+as)).To(ContainSubstring("(Forbidden)"), line)
				}
				for _, line := range []string{"create -f -", "apply -f -", "apply --server-side -f -", "replace -f -"} {
					Expect(s.noFeed(ctx, manifest("Patient", "rex", "{active: true}"), line+as)).To(ContainSubstring("orbidden"), line)
				}
				Expect(s.no(ctx, "get --raw "+group+"/namespaces/"+site+"/facades/"+site+"/fhir/patient/rex"+as)).To(ContainSubstring("facades/fhir"))
				Expect(s.ok(ctx, "auth can-i get patients"+as)).To(Equal("yes\n"))
				for _, right := range []string{"list patients", "create patients", "update patients", "patch patients", "delete patients", "get practitioners", "get patients -n etcd"} {
					Expect(s.no(ctx, "auth can-i "+right+as)).To(BeEmpty(), right)
				}
			})

			It("does nothing else by the FHIR API behind kube-apiserver, once that is open", func(ctx SpecContext) {
				s.ok(ctx, "create role visitor --verb=get,create,update,patch,delete --resource=facades.r4.fhir.paddock.health/fhir")
				s.ok(ctx, "create rolebinding visitor --role=visitor --serviceaccount="+site+":reader")
				fhir := group + "/namespaces/" + site + "/facades/" + site + "/fhir"
				Eventually(func() string { output, _, _ := s.run(ctx, "", "get --raw "+fhir+"/patient/rex"+as); return output }).
					WithContext(ctx).WithTimeout(lag).Should(ContainSubstring(`"resourceType":"Patient"`))
				for _, path := range []string{"/patient", "/patient?_id=rex", "/practitioner/ana", "/patient/rex/_history"} {
					output, said, err := s.run(ctx, "", "get --raw "+fhir+path+as)
					Expect(err).To(HaveOccurred(), path)
					Expect(output+said).NotTo(ContainSubstring(`"resourceType":"Patient"`), path)
				}
				body := file("patient.json", `{"resourceType":"Patient","id":"rex","active":true}`)
				for _, line := range []string{"create --raw " + fhir + "/patient", "replace --raw " + fhir + "/patient/rex"} {
					Expect(s.no(ctx, line+" -f "+body+as)).NotTo(BeEmpty(), line)
				}
				Expect(s.no(ctx, "delete --raw "+fhir+"/patient/rex"+as)).NotTo(BeEmpty())
			})

			It("does nothing else by REST", func(ctx SpecContext) {
				for _, r := range []struct{ method, path, body string }{
					{http.MethodGet, "/patient", ""},
					{http.MethodGet, "/practitioner/ana", ""},
					{http.MethodPost, "/patient", `{"resourceType":"Patient"}`},
					{http.MethodPut, "/patient/rex", `{"resourceType":"Patient","id":"rex"}`},
					{http.MethodDelete, "/patient/rex", ""},
				} {
					Expect(rest(ctx, r.method, site, token, r.path, r.body).status).To(Equal(http.StatusForbidden), r.method+" "+r.path)
				}
				Expect(s.ok(ctx, "get patient rex -o jsonpath={.metadata.generation}")).To(Equal("1"), "nothing was written")
			})
		})
	}
})
