package acceptance

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// privacyManifest has accounts beside the editor, each with the editor's rights and one more:
// chiefs are a group that a rule names, vets are privileged, guards may break the glass. Two
// others have rights on one type alone.
const privacyManifest = `
apiVersion: v1
kind: Namespace
metadata: {name: clinic-chiefs}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: chief, namespace: clinic-chiefs}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: vet, namespace: clinic-privacy}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: guard, namespace: clinic-privacy}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: fitter, namespace: clinic-privacy}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: patcher, namespace: clinic-privacy}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editors, namespace: clinic-privacy}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-editor}
subjects:
- {kind: ServiceAccount, name: chief, namespace: clinic-chiefs}
- {kind: ServiceAccount, name: vet, namespace: clinic-privacy}
- {kind: ServiceAccount, name: guard, namespace: clinic-privacy}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: privileged, namespace: clinic-privacy}
rules: [{apiGroups: [r4.fhir.paddock.health], resources: ["*"], verbs: [privileged]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: privileged, namespace: clinic-privacy}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: privileged}
subjects: [{kind: ServiceAccount, name: vet, namespace: clinic-privacy}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: breakglass, namespace: clinic-privacy}
rules: [{apiGroups: [r4.fhir.paddock.health], resources: [patients], verbs: [breakglass]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: breakglass, namespace: clinic-privacy}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: breakglass}
subjects: [{kind: ServiceAccount, name: guard, namespace: clinic-privacy}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: devices, namespace: clinic-privacy}
rules: [{apiGroups: [r4.fhir.paddock.health], resources: [devices], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: devices, namespace: clinic-privacy}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: devices}
subjects: [{kind: ServiceAccount, name: fitter, namespace: clinic-privacy}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: patch, namespace: clinic-privacy}
rules: [{apiGroups: [r4.fhir.paddock.health], resources: [patients], verbs: [patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: patch, namespace: clinic-privacy}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: patch}
subjects: [{kind: ServiceAccount, name: patcher, namespace: clinic-privacy}]
`

const privacyRules = `{"spec":{"privacy":{"rules":[
	{"name":"very-restricted","match":{"security":[{"system":"http://terminology.hl7.org/CodeSystem/v3-Confidentiality","code":"V"}]},
		"allow":{"groups":["kubernetes:system:serviceaccounts:clinic-chiefs"]}},
	{"name":"recalls","match":{"tag":[{"system":"urn:tags","code":"recall"}]},
		"deny":{"groups":["kubernetes:system:serviceaccounts:clinic-chiefs"]}}]}}}`

const (
	veryRestricted = `"meta":{"security":[{"system":"http://terminology.hl7.org/CodeSystem/v3-Confidentiality","code":"V"}]}`
	restricted     = `"meta":{"security":[{"system":"http://terminology.hl7.org/CodeSystem/v3-Confidentiality","code":"R"}]}`
	recalled       = `"meta":{"tag":[{"system":"urn:tags","code":"recall"}]}`
)

var _ = Describe("Privacy rules of a Site", Ordered, func() {
	const base = "/site/privacy/fhir"
	var editor, chief, vet, guard, fitter, patcher string

	ask := func(token, method, path, body string, header ...string) response {
		GinkgoHelper()
		r := request{method: method, url: paddock.URLs[0] + base + path, body: body, token: token, header: map[string]string{}}
		for i := 0; i+1 < len(header); i += 2 {
			r.header[header[i]] = header[i+1]
		}
		return send(r)
	}
	statusOf := func(token, path string, header ...string) int {
		GinkgoHelper()
		return ask(token, http.MethodGet, path, "", header...).status
	}
	put := func(token, path, body string) response {
		GinkgoHelper()
		answer := ask(token, http.MethodPut, path, body)
		Expect(answer.status).To(BeElementOf(http.StatusOK, http.StatusCreated), string(answer.body))
		return answer
	}

	BeforeAll(func(ctx SpecContext) {
		apply(ctx, siteManifest, "clinic-privacy", "privacy", "privacy", "Delete")
		apply(ctx, privacyManifest)
		kubectl(ctx, "patch", "site", "privacy", "-n", "clinic-privacy", "--type=merge", "-p", privacyRules)
		waitReady(ctx, "clinic-privacy", "privacy")
		tokenOf := func(namespace, account string) string {
			made, err := paddock.Token(ctx, namespace, account, "paddock.health/clinic-privacy/privacy", time.Hour)
			Expect(err).NotTo(HaveOccurred())
			return made
		}
		editor, vet, guard = tokenOf("clinic-privacy", "editor"), tokenOf("clinic-privacy", "vet"), tokenOf("clinic-privacy", "guard")
		fitter, patcher, chief = tokenOf("clinic-privacy", "fitter"), tokenOf("clinic-privacy", "patcher"), tokenOf("clinic-chiefs", "chief")
		Eventually(func() int { return statusOf(chief, "/patient") }).Within(30 * time.Second).Should(Equal(http.StatusOK))
		put(chief, "/patient/vip", `{"resourceType":"Patient","id":"vip",`+veryRestricted+`,"name":[{"family":"Secretive"}]}`)
		put(vet, "/patient/bitten", `{"resourceType":"Patient","id":"bitten",`+restricted+`}`)
		put(editor, "/patient/recalled", `{"resourceType":"Patient","id":"recalled",`+recalled+`}`)
		put(editor, "/patient/open", `{"resourceType":"Patient","id":"open"}`)
		put(chief, "/device/collar", `{"resourceType":"Device","id":"collar","patient":{"reference":"Patient/vip"}}`)
		put(editor, "/device/scale", `{"resourceType":"Device","id":"scale"}`)
		put(chief, "/group/all", `{"resourceType":"Group","id":"all","type":"animal","actual":true,"member":[{"entity":{"reference":"Patient/vip"}},{"entity":{"reference":"Patient/open"}}]}`)
	})

	It("decide who reads what by id", func() {
		for path, readers := range map[string]map[string]bool{
			"/patient/vip":      {"chief": true},
			"/patient/bitten":   {"chief": true, "vet": true}, // who may see V may see R
			"/patient/recalled": {"editor": true, "vet": true, "guard": true},
			"/patient/open":     {"editor": true, "chief": true, "vet": true, "guard": true},
			"/device/collar":    {"chief": true},
			"/device/scale":     {"editor": true, "chief": true, "vet": true, "guard": true},
		} {
			for name, token := range map[string]string{"editor": editor, "chief": chief, "vet": vet, "guard": guard} {
				want := http.StatusNotFound
				if readers[name] {
					want = http.StatusOK
				}
				Expect(statusOf(token, path)).To(Equal(want), "%s reads %s", name, path)
			}
		}
	})

	It("hide records from searches, includes, chains and histories", func() {
		for _, path := range []string{
			"/patient?_total=accurate", "/patient?family=Secretive", "/group?_include=Group:member", "/group?member.family=Secretive",
			"/patient?_has:Device:patient:_id=collar", "/device", "/patient/_history", "/_history?_count=100",
		} {
			answer := ask(editor, http.MethodGet, path, "", "Accept", "application/fhir+json")
			Expect(answer.status).To(Equal(http.StatusOK), "%s: %s", path, answer.body)
			Expect(string(answer.body)).NotTo(Or(ContainSubstring(`"id":"vip"`), ContainSubstring(`"family":"Secretive"`), ContainSubstring(`"id":"collar"`)), path)
		}
		Expect(ask(editor, http.MethodGet, "/patient?_total=accurate", "").field("total")).To(BeEquivalentTo(2))
		Expect(ask(chief, http.MethodGet, "/patient?_total=accurate", "").field("total")).To(BeEquivalentTo(3))
		Expect(statusOf(editor, "/patient/vip/_history")).To(Equal(http.StatusNotFound))
		Expect(statusOf(editor, "/patient/vip/_history/1")).To(Equal(http.StatusNotFound))
	})

	It("let nobody change what is hidden, and say of an id no more than that it is taken", func(ctx SpecContext) {
		answer := ask(editor, http.MethodPut, "/patient/vip", `{"resourceType":"Patient","id":"vip"}`)
		Expect(answer.status).To(Equal(http.StatusConflict), string(answer.body))
		Expect(string(answer.body)).To(ContainSubstring("id_taken"))
		Expect(answer.header.Get("ETag")).To(BeEmpty())
		Expect(ask(editor, http.MethodDelete, "/patient/vip", "").status).To(Equal(http.StatusOK))
		Expect(ask(editor, http.MethodPatch, "/patient/vip", `[{"op":"add","path":"/active","value":true}]`, "Content-Type", "application/json-patch+json").status).To(Equal(http.StatusNotFound))
		Expect(ask(editor, http.MethodPut, "/patient/vip", `{"resourceType":"Patient","id":"vip"}`, "If-Match", `W/"1"`).status).To(Equal(http.StatusPreconditionFailed))
		Expect(ask(chief, http.MethodGet, "/patient/vip", "").header.Get("ETag")).To(Equal(`W/"1"`))
		By("and record the rule that hides it")
		auditor := auditorOf(ctx, "clinic-privacy", "privacy")
		for subtype, count := range map[string]int{"update": 2, "patch": 1, "delete": 1} {
			entries := auditEvents(paddock.URLs[0], "privacy", auditor, "entity=Patient/vip&agent=system:serviceaccount:clinic-privacy:editor&subtype="+subtype)
			Expect(entries).To(And(HaveLen(count), HaveEach(ContainSubstring(`"very-restricted"`))), subtype)
		}
	}, NodeTimeout(3*time.Minute))

	It("let only the privileged take a protecting label off", func() {
		plain := `{"resourceType":"Patient","id":"bitten"}`
		answer := ask(chief, http.MethodPut, "/patient/bitten", plain)
		Expect(answer.status).To(Equal(http.StatusForbidden), string(answer.body))
		Expect(string(answer.body)).To(ContainSubstring("privileged patients.r4.fhir.paddock.health"))
		Expect(ask(vet, http.MethodPut, "/patient/bitten", plain).status).To(Equal(http.StatusOK))
		By("and raised by whoever may update: the earlier versions are hidden with it")
		put(editor, "/patient/bitten", `{"resourceType":"Patient","id":"bitten",`+restricted+`}`)
		Expect(statusOf(editor, "/patient/bitten/_history/2")).To(Equal(http.StatusNotFound))
	})

	It("show a Device with a Patient to nobody without the right to Patients", func() {
		Eventually(func() int { return statusOf(fitter, "/device/scale") }).Should(Equal(http.StatusOK))
		put(editor, "/device/tag", `{"resourceType":"Device","id":"tag","patient":{"reference":"Patient/open"}}`)
		Expect(statusOf(editor, "/device/tag")).To(Equal(http.StatusOK))
		Expect(statusOf(fitter, "/device/tag")).To(Equal(http.StatusNotFound))
	})

	It("give way to a reason where the caller may break the glass, never against a denial", func(ctx SpecContext) {
		const header, reason = "Paddock-Break-Glass", "bleeding, owner not reachable"
		Eventually(func() int { return statusOf(guard, "/patient/vip", header, reason) }).Should(Equal(http.StatusOK))
		Expect(ask(guard, http.MethodGet, "/patient?_total=accurate", "", header, reason).field("total")).To(BeEquivalentTo(4))
		refused := ask(editor, http.MethodGet, "/patient/vip", "", header, reason)
		Expect(refused.status).To(Equal(http.StatusForbidden), string(refused.body))
		Expect(string(refused.body)).To(ContainSubstring("breakglass patients"))
		Expect(statusOf(guard, "/patient/vip", header, " ")).To(Equal(http.StatusBadRequest))
		Eventually(func() string {
			return kubectl(ctx, "get", "events", "-n", "clinic-privacy", "--field-selector=reason=BrokenGlass", "-o", "jsonpath={.items[*].message}")
		}).Should(And(ContainSubstring("system:serviceaccount:clinic-privacy:guard"), ContainSubstring(reason), ContainSubstring("patients")))
	})

	It("answer a patch of a caller who may not read without a body", func() {
		var answer response
		Eventually(func() int {
			answer = ask(patcher, http.MethodPatch, "/patient/open", `[{"op":"add","path":"/active","value":true}]`, "Content-Type", "application/json-patch+json")
			return answer.status
		}).Should(Equal(http.StatusOK))
		Expect(answer.body).To(BeEmpty())
		Expect(answer.header.Get("ETag")).NotTo(BeEmpty())
	})
})
