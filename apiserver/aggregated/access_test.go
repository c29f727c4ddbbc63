package aggregated_test

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// readerRole lets the user reader get single patients, and the account clerk of
// the namespace demo list them.
const readerRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: demo}
rules: [{apiGroups: [r4.fhir.paddock.health], resources: [patients], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: demo}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: reader}, {kind: ServiceAccount, name: clerk, namespace: demo}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: rex-only, namespace: demo}
rules: [{apiGroups: [r4.fhir.paddock.health], resources: [patients], resourceNames: [rex], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: rex-only, namespace: demo}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: rex-only}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: friends-of-rex}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: clerk, namespace: demo}
`

var _ = Describe("RBAC", Ordered, func() {
	BeforeAll(func(ctx SpecContext) { apply(ctx, readerRole) })

	It("keeps out whoever has no right", func(ctx SpecContext) {
		for _, args := range [][]string{{"get", "patients"}, {"get", "patient", "rex"}, {"get", "patient", "never"}} {
			message := refused(ctx, append(args, "-n", "demo", "--as", "nobody")...)
			Expect(message).To(And(ContainSubstring("(Forbidden)"), ContainSubstring(`User "nobody" cannot`)))
		}
	})

	It("lets a user with get do just that", func(ctx SpecContext) {
		Eventually(kubectl).WithContext(ctx).WithArguments("get", "patient", "rex", "-n", "demo", "-o", "name", "--as", "reader").
			Should(Equal("patient.r4.fhir.paddock.health/rex\n"))
		Expect(refused(ctx, "get", "patients", "-n", "demo", "--as", "reader")).To(ContainSubstring(`cannot list resource "patients"`))
		Expect(refused(ctx, "get", "patient", "rex", "-n", "default", "--as", "reader")).To(ContainSubstring("(Forbidden)"))
		Expect(refused(ctx, "get", "patients", "-A", "--as", "reader")).To(ContainSubstring("(Forbidden)"))
		Expect(must(ctx, "auth", "can-i", "get", "patients", "-n", "demo", "--as", "reader")).To(Equal("yes\n"))
	})

	It("goes by groups and by names", func(ctx SpecContext) {
		friend := []string{"-n", "demo", "--as", "fred", "--as-group", "friends-of-rex", "-o", "name"}
		Eventually(kubectl).WithContext(ctx).WithArguments(append([]any{"get", "patient", "rex"}, anys(friend)...)...).
			Should(Equal("patient.r4.fhir.paddock.health/rex\n"))
		Expect(must(ctx, append([]string{"get", "patients", "--field-selector", "metadata.name=rex"}, friend...)...)).To(Equal("patient.r4.fhir.paddock.health/rex\n"))
		Expect(refused(ctx, append([]string{"get", "patient", "p1"}, friend...)...)).To(ContainSubstring("(Forbidden)"))
		Expect(refused(ctx, append([]string{"get", "patients"}, friend...)...)).To(ContainSubstring("(Forbidden)"))
	})

	It("opens both doors to one identity", func(ctx SpecContext) {
		clerk, err := paddock.Token(ctx, "demo", "clerk", "paddock.health/demo/demo", tokenLife)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() int { return send(ctx, http.MethodGet, siteURL("demo")+"/rex", clerk, "").status }).
			WithContext(ctx).Should(Equal(http.StatusOK))
		Expect(send(ctx, http.MethodGet, siteURL("demo"), clerk, "").status).To(Equal(http.StatusForbidden))
		as := []string{"-n", "demo", "--as", "system:serviceaccount:demo:clerk"}
		Expect(must(ctx, append([]string{"get", "patient", "rex", "-o", "name"}, as...)...)).NotTo(BeEmpty())
		Expect(refused(ctx, append([]string{"get", "patients"}, as...)...)).To(ContainSubstring("(Forbidden)"))
	})
})

func anys(values []string) []any {
	all := make([]any, len(values))
	for i, value := range values {
		all[i] = value
	}
	return all
}
