package aggregated_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// file is a file with a manifest in it.
func file(manifest string) string {
	GinkgoHelper()
	name := filepath.Join(GinkgoT().TempDir(), "manifest.yaml")
	Expect(os.WriteFile(name, []byte(manifest), 0o600)).To(Succeed())
	return name
}

// tenant is a site that specs write to.
type tenant struct {
	namespace, token string
}

// rest reads a path of the tenant's patients by REST.
func (t *tenant) rest(ctx context.Context, method, path, body string) response {
	GinkgoHelper()
	return send(ctx, method, siteURL(t.namespace)+path, t.token, body)
}

// resource reads a patient by REST.
func (t *tenant) resource(ctx context.Context, id string) map[string]any {
	GinkgoHelper()
	answer := t.rest(ctx, http.MethodGet, "/"+id, "")
	Expect(answer.status).To(Equal(http.StatusOK), "%s", answer.body)
	return decoded(answer.body)
}

func decodeInto(text string, value any) error { return json.Unmarshal([]byte(text), value) }

func decoded(text []byte) map[string]any {
	GinkgoHelper()
	var value map[string]any
	Expect(json.Unmarshal(text, &value)).To(Succeed(), "%s", text)
	return value
}

// methods are those of a patient's history, newest first, as FHIR tells them.
func (t *tenant) methods(ctx context.Context, id string) []string {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, siteURL(t.namespace)+"/"+id+"/_history", nil)
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer "+t.token)
	request.Header.Set("Accept", "application/fhir+json")
	answer := do(http.DefaultClient, request)
	Expect(answer.status).To(Equal(http.StatusOK), "%s", answer.body)
	methods := []string{}
	for _, entry := range decoded(answer.body)["entry"].([]any) {
		methods = append(methods, entry.(map[string]any)["request"].(map[string]any)["method"].(string))
	}
	return methods
}

// kubectl runs a kubectl in the namespace that has to succeed.
func (t *tenant) kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return must(ctx, append([]string{"-n", t.namespace}, args...)...)
}

// refused runs a kubectl in the namespace that has to fail.
func (t *tenant) refused(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return refused(ctx, append([]string{"-n", t.namespace}, args...)...)
}

func (t *tenant) object(ctx context.Context, name string) patient {
	GinkgoHelper()
	var object patient
	Expect(json.Unmarshal([]byte(t.kubectl(ctx, "get", "patient", name, "-o", "json", "--show-managed-fields")), &object)).To(Succeed())
	return object
}

// manifest is a patient's.
func manifest(metadata, spec string) string {
	return "apiVersion: r4.fhir.paddock.health/v1alpha1\nkind: Patient\nmetadata: {" + metadata + "}\nspec: " + spec + "\n"
}

// path asks kube-apiserver for one of the tenant's patients, past kubectl.
func (t *tenant) path(name string) string {
	return group + "/namespaces/" + t.namespace + "/patients" + name
}

const writesSite = `
apiVersion: v1
kind: Namespace
metadata: {name: writes}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: editor, namespace: writes}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editor, namespace: writes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-editor}
subjects: [{kind: ServiceAccount, name: editor, namespace: writes}]
---
apiVersion: paddock.health/v1alpha1
kind: Site
metadata: {name: writes, namespace: writes}
spec: {deletionPolicy: Delete}
`

var _ = Describe("A write in the cluster's own storage", Ordered, func() {
	at := &tenant{namespace: "writes"}
	BeforeAll(func(ctx SpecContext) {
		apply(ctx, writesSite)
		at.token = startSite(ctx, "writes", "writes")
	})
	writeSpecs(at)
	ownerSpecs(at)
})

// fullSite has room for ten records, the smallest limit.
const fullSite = `
apiVersion: v1
kind: Namespace
metadata: {name: full}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: editor, namespace: full}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editor, namespace: full}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-editor}
subjects: [{kind: ServiceAccount, name: editor, namespace: full}]
---
apiVersion: paddock.health/v1alpha1
kind: Site
metadata: {name: full, namespace: full}
spec: {storage: {type: Cluster, cluster: {maxRecords: 10}}}
`

var _ = Describe("A write beyond storage.cluster", func() {
	It("gets 507 and writes nothing, and deletions make room", func(ctx SpecContext) {
		apply(ctx, fullSite)
		at := &tenant{namespace: "full", token: startSite(ctx, "full", "full")}
		for n := range 10 {
			put(ctx, "full", at.token, fmt.Sprintf("p%d", n), fmt.Sprintf(`{"resourceType":"Patient","id":"p%d"}`, n))
		}
		beyond := sendTo(ctx, http.MethodPost, at.path(""), "application/yaml", manifest("name: beyond", "{}"))
		Expect(beyond.status).To(Equal(http.StatusInsufficientStorage), "%s", beyond.body)
		var status metav1.Status
		Expect(json.Unmarshal(beyond.body, &status)).To(Succeed())
		Expect(status.Reason).To(BeEquivalentTo("InsufficientStorage"))
		Expect(at.refused(ctx, "create", "-f", file(manifest("name: beyond", "{}")))).To(ContainSubstring("(InsufficientStorage)"))
		Expect(at.rest(ctx, http.MethodGet, "/beyond", "").status).To(Equal(http.StatusNotFound))
		Expect(at.object(ctx, "p1").Name).To(Equal("p1"))
		at.kubectl(ctx, "delete", "patient", "p1", "p2")
		Eventually(func() int {
			return sendTo(ctx, http.MethodPost, at.path(""), "application/yaml", manifest("name: after", "{}")).status
		}).WithContext(ctx).Should(Equal(http.StatusCreated))
	})
})

var _ = Describe("A write in Postgres", Ordered, func() {
	at := &tenant{namespace: "demo-postgres"}
	BeforeAll(func(ctx SpecContext) { at.token = startPostgresSite(ctx) })
	writeSpecs(at)
	ownerSpecs(at)
	referenceSpecs(at)
	manySpecs(at)

	It("has one entry in the audit log", func(ctx SpecContext) {
		at.kubectl(ctx, "create", "-f", file(manifest("name: audited", "{active: true}")))
		at.kubectl(ctx, "patch", "patient", "audited", "--type=merge", "-p", `{"spec":{"gender":"male"}}`)
		at.kubectl(ctx, "label", "patient", "audited", "ward=b")
		at.kubectl(ctx, "delete", "patient", "audited")
		Expect(accesses(ctx, group+"/namespaces/demo-postgres/facades/demo-postgres", "entity=Patient/audited&subtype=create,patch,delete")).To(Equal([]string{
			"kubernetes create C 0", "kubernetes patch U 0", "kubernetes patch U 0", "kubernetes delete D 0",
		}))
	})
})

func writeSpecs(at *tenant) {
	It("creates what REST shows at once", func(ctx SpecContext) {
		created := at.kubectl(ctx, "create", "-f", file(manifest(`name: rex, labels: {ward: a}, annotations: {note: x}`, `{active: true, birthDate: "2019-04-01", meta: {tag: [{code: vip}]}}`)))
		Expect(created).To(Equal("patient.r4.fhir.paddock.health/rex created\n"))
		read := at.resource(ctx, "rex")
		Expect(read).To(HaveKeyWithValue("birthDate", "2019-04-01"))
		Expect(read["meta"]).To(And(HaveKeyWithValue("versionId", "1"), HaveKey("tag")))
		Expect(read).NotTo(HaveKey("metadata"))
		object := at.object(ctx, "rex")
		Expect(object.Labels).To(Equal(map[string]string{"ward": "a"}))
		Expect(object.Annotations).To(HaveKeyWithValue("note", "x"))
		Expect(object.Generation).To(BeEquivalentTo(1))
		Expect(at.methods(ctx, "rex")).To(Equal([]string{"POST"}))
		Expect(at.refused(ctx, "create", "-f", file(manifest(`name: rex`, `{active: true}`)))).To(ContainSubstring(`(AlreadyExists)`))
	})

	It("takes patches of three kinds, and none that is strategic", func(ctx SpecContext) {
		at.kubectl(ctx, "patch", "patient", "rex", "--type=merge", "-p", `{"spec":{"gender":"male"}}`)
		at.kubectl(ctx, "patch", "patient", "rex", "--type=json", "-p", `[{"op":"test","path":"/spec/gender","value":"male"},{"op":"remove","path":"/spec/gender"}]`)
		Expect(at.resource(ctx, "rex")).To(And(Not(HaveKey("gender")), HaveKeyWithValue("birthDate", "2019-04-01")))
		Expect(at.object(ctx, "rex").Generation).To(BeEquivalentTo(3))
		Expect(at.methods(ctx, "rex")).To(Equal([]string{"PATCH", "PATCH", "POST"}))
		answer := sendTo(ctx, http.MethodPatch, at.path("/rex"), "application/strategic-merge-patch+json", `{"spec":{"gender":"male"}}`)
		Expect(answer.status).To(Equal(http.StatusUnsupportedMediaType))
	})

	It("replaces and edits", func(ctx SpecContext) {
		read := at.kubectl(ctx, "get", "patient", "rex", "-o", "json")
		at.kubectl(ctx, "replace", "-f", file(strings.Replace(read, `"active": true`, `"active": false`, 1)))
		Expect(at.resource(ctx, "rex")).To(HaveKeyWithValue("active", false))
		Expect(at.methods(ctx, "rex")[0]).To(Equal("PUT"))
		Expect(at.refused(ctx, "replace", "-f", file(read))).To(ContainSubstring("(Conflict)"), "its resourceVersion is an old one")
		Expect(at.refused(ctx, "replace", "-f", file(manifest("name: never", "{}")))).To(ContainSubstring("(NotFound)"))
	})

	It("keeps labels and annotations beside the record, at its version", func(ctx SpecContext) {
		before, beforeREST := at.object(ctx, "rex"), at.resource(ctx, "rex")
		at.kubectl(ctx, "label", "patient", "rex", "ward=b", "--overwrite")
		at.kubectl(ctx, "annotate", "patient", "rex", "note-")
		after := at.object(ctx, "rex")
		Expect(after.Labels).To(Equal(map[string]string{"ward": "b"}))
		Expect(after.Annotations).To(BeEmpty())
		Expect(after.Generation).To(Equal(before.Generation))
		Expect(after.ResourceVersion).NotTo(Equal(before.ResourceVersion))
		Expect(at.resource(ctx, "rex")).To(Equal(beforeREST))
		Expect(at.rest(ctx, http.MethodPut, "/rex", `{"resourceType":"Patient","id":"rex","active":true,"birthDate":"2019-04-01"}`).status).To(Equal(http.StatusOK))
		Expect(at.object(ctx, "rex").Labels).To(Equal(map[string]string{"ward": "b"}), "REST leaves them")
	})

	It("keeps bytes and version where the values are the same", func(ctx SpecContext) {
		const text = `{ "resourceType":"Patient", "id":"exact", "active":true,
			"extension":[{"url":"http://example.org/w","valueDecimal":18.50},{"url":"http://example.org/x","valueDecimal":0.12345678901234567890}] }`
		Expect(at.rest(ctx, http.MethodPut, "/exact", text).status).To(Equal(http.StatusCreated))
		before := at.rest(ctx, http.MethodGet, "/exact", "")
		same := manifest("name: exact", `{active: true, extension: [{url: "http://example.org/w", valueDecimal: 18.5},{url: "http://example.org/x", valueDecimal: 0.12345678901234568}]}`)
		at.kubectl(ctx, "apply", "-f", file(same))
		at.kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-f", file(same))
		at.kubectl(ctx, "label", "patient", "exact", "a=b")
		Expect(string(at.rest(ctx, http.MethodGet, "/exact", "").body)).To(Equal(string(before.body)))
		at.kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-f", file(strings.Replace(same, "active: true", "active: false", 1)))
		Expect(string(at.rest(ctx, http.MethodGet, "/exact", "").body)).To(And(
			ContainSubstring(`"active":false`), ContainSubstring(`18.50`), ContainSubstring(`0.12345678901234567890`)), "digits of what has not changed stay")
	})

	It("applies twice without a difference", func(ctx SpecContext) {
		text := file(manifest("name: bella, labels: {a: b}", `{name: [{use: official, family: Oak, given: [Bella]}], active: true}`))
		for _, how := range [][]string{{"apply", "-f", text}, {"apply", "--server-side", "--force-conflicts", "-f", text}} {
			at.kubectl(ctx, how...)
			version := at.object(ctx, "bella").ResourceVersion
			at.kubectl(ctx, how...)
			Expect(at.object(ctx, "bella").ResourceVersion).To(Equal(version))
			Expect(at.kubectl(ctx, append([]string{"diff"}, how[1:]...)...)).To(BeEmpty())
		}
		Expect(at.object(ctx, "bella").Generation).To(BeEquivalentTo(1))
		at.kubectl(ctx, "apply", "-f", file(manifest("name: bella", `{name: [{use: official, family: Oak, given: [Bella]}]}`)))
		Expect(at.resource(ctx, "bella")).NotTo(HaveKey("active"))
	})

	It("generates names", func(ctx SpecContext) {
		name := strings.TrimSpace(at.kubectl(ctx, "create", "-f", file(manifest("generateName: stray-", "{}")), "-o", "jsonpath={.metadata.name}"))
		Expect(name).To(MatchRegexp(`^stray-[a-z0-9]{5}$`))
		Expect(at.resource(ctx, name)).To(HaveKeyWithValue("id", name))
		Expect(at.object(ctx, name).GenerateName).To(Equal("stray-"))
	})

	It("does nothing in a dry run", func(ctx SpecContext) {
		before := at.object(ctx, "bella")
		at.kubectl(ctx, "create", "--dry-run=server", "-f", file(manifest("name: dry", "{}")))
		Expect(at.rest(ctx, http.MethodGet, "/dry", "").status).To(Equal(http.StatusNotFound))
		Expect(at.refused(ctx, "create", "--dry-run=server", "-f", file(manifest("name: bella", "{}")))).To(ContainSubstring("(AlreadyExists)"))
		Expect(at.kubectl(ctx, "patch", "patient", "bella", "--dry-run=server", "--type=merge", "-p", `{"spec":{"gender":"female"}}`, "-o", "jsonpath={.spec.gender}")).To(Equal("female"))
		at.kubectl(ctx, "delete", "patient", "bella", "--dry-run=server")
		Expect(at.object(ctx, "bella")).To(Equal(before))
		Expect(at.refused(ctx, "apply", "--server-side", "--dry-run=server", "-f", file(manifest("name: dry", "{gender: x}")))).To(ContainSubstring("spec.gender"))
	})

	It("refuses in a dry run what it refuses to the caller", func(ctx SpecContext) {
		rules := func(ctx context.Context, value string) {
			must(ctx, "patch", "site", at.namespace, "-n", at.namespace, "--type=merge", "-p", `{"spec":{"privacy":`+value+`}}`)
		}
		rules(ctx, `{"rules":[{"name":"secret","match":{"tag":[{"system":"urn:tags","code":"secret"}]},"deny":{"groups":["kubernetes:nurses"]}}]}`)
		DeferCleanup(func(ctx SpecContext) { rules(ctx, "null") })
		at.kubectl(ctx, "create", "-f", file(manifest("name: protected", `{meta: {tag: [{system: "urn:tags", code: secret}]}}`)))
		lower := func(ctx context.Context, dryRun string) error {
			_, err := kubectl(ctx, "patch", "patient", "protected", "-n", at.namespace, "--as", "system:serviceaccount:"+at.namespace+":editor", "--dry-run="+dryRun, "--type=merge", "-p", `{"spec":{"meta":null}}`)
			return err
		}
		refused := MatchError(And(ContainSubstring("(Forbidden)"), ContainSubstring("privileged")))
		Eventually(lower).WithContext(ctx).WithArguments("server").Should(refused)
		Expect(lower(ctx, "none")).To(refused)
	})

	It("limits the metadata beside a record", func(ctx SpecContext) {
		var labels strings.Builder
		for n := range 4000 {
			fmt.Fprintf(&labels, "l%04d: a,", n)
		}
		applied := func(manager int) int {
			return sendTo(ctx, http.MethodPatch, at.path(fmt.Sprintf("/hoarder?force=true&fieldManager=m%d", manager)), "application/apply-patch+yaml",
				manifest("name: hoarder, labels: {"+labels.String()+"}", "{}")).status
		}
		Expect(applied(0)).To(Equal(http.StatusCreated))
		statuses := []int{}
		for manager := 1; manager < 12; manager++ {
			statuses = append(statuses, applied(manager))
		}
		Expect(statuses).To(And(HaveEach(BeElementOf(http.StatusOK, http.StatusRequestEntityTooLarge)), ContainElement(http.StatusRequestEntityTooLarge)))
		Expect(at.object(ctx, "hoarder").Labels).To(HaveLen(4000))
	})

	It("needs the right to get an object to patch it", func(ctx SpecContext) {
		at.kubectl(ctx, "create", "-f", file(manifest("name: unread", `{name: [{family: Hush}]}`)))
		const patcherRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: patcher}
rules: [{apiGroups: [r4.fhir.paddock.health], resources: [patients], verbs: [create, patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: patcher}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: patcher}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: patcher}]
`
		at.kubectl(ctx, "apply", "-f", file(patcherRole))
		patch := func(ctx context.Context, name, kind, body string) response {
			return visit(ctx, "patcher", http.MethodPatch, at.path("/"+name+"?dryRun=All&fieldManager=x"), kind, body)
		}
		const apply = "application/apply-patch+yaml"
		Eventually(func() int { return patch(ctx, "unwritten", apply, manifest("name: unwritten", "{}")).status }).
			WithContext(ctx).Should(Equal(http.StatusCreated))
		for kind, body := range map[string]string{
			"application/json-patch+json":  `[{"op":"copy","from":"/spec/name/0/family","path":"/metadata/uid"}]`,
			"application/merge-patch+json": `{"metadata":{"labels":5}}`,
			apply:                          manifest("name: unread", "{}"),
		} {
			answer := patch(ctx, "unread", kind, body)
			Expect(answer.status).To(Equal(http.StatusForbidden), "%s: %s", kind, answer.body)
			Expect(string(answer.body)).To(And(ContainSubstring("get patients"), Not(ContainSubstring("Hush"))))
		}
	})

	DescribeTable("names the field of what is wrong", func(ctx SpecContext, metadata, spec, field, problem string) {
		answer := sendTo(ctx, http.MethodPost, at.path(""), "application/yaml", manifest(metadata, spec))
		Expect(answer.status).To(Equal(http.StatusUnprocessableEntity), "%s", answer.body)
		var status metav1.Status
		Expect(json.Unmarshal(answer.body, &status)).To(Succeed())
		Expect(status.Reason).To(Equal(metav1.StatusReasonInvalid))
		Expect(status.Details.Causes).To(ContainElement(And(
			HaveField("Field", field), HaveField("Message", ContainSubstring(problem)))), "%s", answer.body)
	},
		Entry("a code", "name: bad", `{name: [{use: nickel}]}`, "spec.name[0].use", "nickel"),
		Entry("an element that is none", "name: bad", `{colour: red}`, "spec.colour", "colour"),
		Entry("a choice", "name: bad", `{deceasedDateTime: yesterday}`, "spec.deceasedDateTime", "yesterday"),
		Entry("the shape of an element", "name: bad", `{name: {use: usual}}`, "spec.name", ""),
		Entry("no resource", "name: bad", `null`, "spec", "Required"),
		Entry("a list", "name: bad", `[]`, "spec", "object"),
		Entry("the type", "name: bad", `{resourceType: Patient}`, "spec.resourceType", "kind"),
		Entry("the id", "name: bad", `{id: bad}`, "spec.id", "metadata.name"),
		Entry("the version", "name: bad", `{meta: {versionId: "1"}}`, "spec.meta.versionId", "generation"),
		Entry("a name in capitals", "name: Bad", `{}`, "metadata.name", "lower case"),
		Entry("a name with a character that ids have not", "name: a_b", `{}`, "metadata.name", "lower case"),
		Entry("a name that is too long", "name: "+strings.Repeat("a", 65), `{}`, "metadata.name", "1 to 64"),
		Entry("no name", "labels: {a: b}", `{}`, "metadata.name", "generateName"),
		Entry("a label", "name: bad, labels: {a: \"b c\"}", `{}`, "metadata.labels", "b c"),
		Entry("a finalizer", "name: bad, finalizers: [example.org/x]", `{}`, "metadata.finalizers", "immediately"),
		Entry("an owner", "name: bad, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: x, uid: u}]", `{}`, "metadata.ownerReferences", "no owners"),
	)

	It("says of an update what it says of a creation", func(ctx SpecContext) {
		for patch, field := range map[string]string{
			`{"spec":{"name":[{"use":"nickel"}]}}`:              "spec.name[0].use",
			`{"metadata":{"finalizers":["example.org/x"]}}`:     "metadata.finalizers",
			`{"spec":{"id":"bella"}}`:                           "spec.id",
			`{"spec":null}`:                                     "spec",
			`{"metadata":{"labels":{"a":"-"}}}`:                 "metadata.labels",
			`{"spec":{"birthDate":"2019-02-30","gender":"no"}}`: "spec.birthDate",
		} {
			message := at.refused(ctx, "patch", "patient", "bella", "--type=merge", "-p", patch)
			Expect(message).To(ContainSubstring(field), patch)
		}
	})

	It("refuses an update that is no valid JSON, and one with a name twice", func(ctx SpecContext) {
		const stored = `{"resourceType":"Patient","id":"garbled","name":[{"text":"x"}],"active":true,"birthDate":"2019-04-01"}`
		Expect(at.rest(ctx, http.MethodPut, "/garbled", stored).status).To(Equal(http.StatusCreated))
		before := at.resource(ctx, "garbled")
		const head = `{"apiVersion":"r4.fhir.paddock.health/v1alpha1","kind":"Patient","metadata":{"name":"garbled"},`
		for what, name := range map[string]string{
			"a lone surrogate": `"name":[{"text":"\ud83d"}]`, "invalid UTF-8": "\"name\":[{\"text\":\"\xff\"}]",
		} {
			spec := `"spec":{` + name + `,"active":true,"birthDate":"2019-04-01"}}`
			put := sendTo(ctx, http.MethodPut, at.path("/garbled"), "application/json", head+spec)
			Expect(put.status).To(Equal(http.StatusUnprocessableEntity), "%s: %s", what, put.body)
			patched := sendTo(ctx, http.MethodPatch, at.path("/garbled"), "application/merge-patch+json", "{"+spec)
			Expect(patched.status).To(Equal(http.StatusUnprocessableEntity), "%s: %s", what, patched.body)
			Expect(at.resource(ctx, "garbled")).To(Equal(before), what)
		}
		twice := sendTo(ctx, http.MethodPut, at.path("/garbled"), "application/json", head+`"spec":{"name":[{"text":"x"}],"active":true,"active":true}}`)
		Expect(twice.status).To(Equal(http.StatusUnprocessableEntity), "%s", twice.body)
	})

	It("heeds preconditions", func(ctx SpecContext) {
		at.kubectl(ctx, "create", "-f", file(manifest("name: guarded", "{}")))
		object := at.object(ctx, "guarded")
		for _, precondition := range []string{`{"uid":"another"}`, `{"resourceVersion":"1"}`} {
			answer := sendTo(ctx, http.MethodDelete, at.path("/guarded"), "application/json", `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":`+precondition+`}`)
			Expect(answer.status).To(Equal(http.StatusConflict), "%s", answer.body)
		}
		for _, patch := range []string{`{"metadata":{"uid":"another"}}`, `{"metadata":{"resourceVersion":"1"}}`} {
			answer := sendTo(ctx, http.MethodPatch, at.path("/guarded"), "application/merge-patch+json", patch)
			Expect(answer.status).To(Or(Equal(http.StatusConflict), Equal(http.StatusUnprocessableEntity)), "%s: %s", patch, answer.body)
		}
		Expect(at.rest(ctx, http.MethodPut, "/guarded", `{"resourceType":"Patient","id":"guarded","active":true}`).status).To(Equal(http.StatusOK))
		stale := `{"metadata":{"resourceVersion":"` + object.ResourceVersion + `"},"spec":{"active":false}}`
		answer := sendTo(ctx, http.MethodPatch, at.path("/guarded"), "application/merge-patch+json", stale)
		Expect(answer.status).To(Equal(http.StatusConflict), "what REST wrote counts: %s", answer.body)
		answer = sendTo(ctx, http.MethodDelete, at.path("/guarded"), "application/json", `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"`+string(object.UID)+`"}}`)
		Expect(answer.status).To(Equal(http.StatusOK), "%s", answer.body)
		Expect(at.rest(ctx, http.MethodPut, "/guarded", `{"resourceType":"Patient","id":"guarded"}`).status).To(Equal(http.StatusCreated))
		again := at.object(ctx, "guarded")
		Expect(again.UID).NotTo(Equal(object.UID))
		Expect(again.Labels).To(BeEmpty())
		Expect(again.ManagedFields).To(BeEmpty())
	})

	It("answers a deletion with a Status: the right to delete is none to read", func(ctx SpecContext) {
		at.kubectl(ctx, "create", "-f", file(manifest("name: secretive", "{gender: female}")))
		uid := string(at.object(ctx, "secretive").UID)
		for _, query := range []string{"?dryRun=All", ""} {
			answer := sendTo(ctx, http.MethodDelete, at.path("/secretive"+query), "application/json", "")
			Expect(answer.status).To(Equal(http.StatusOK))
			Expect(answer.body).To(MatchJSON(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":200,"details":{"name":"secretive","group":"r4.fhir.paddock.health","kind":"patients","uid":"` + uid + `"}}`))
		}
		Expect(at.rest(ctx, http.MethodGet, "/secretive", "").status).To(Equal(http.StatusGone))
	})

	It("deletes, and waits for it", func(ctx SpecContext) {
		at.kubectl(ctx, "create", "-f", file(manifest("name: leaving", "{}")))
		Expect(at.kubectl(ctx, "delete", "patient", "leaving")).To(ContainSubstring("deleted"))
		at.kubectl(ctx, "wait", "--for=delete", "patient/leaving", "--timeout=5s")
		Expect(at.rest(ctx, http.MethodGet, "/leaving", "").status).To(Equal(http.StatusGone))
		Expect(at.methods(ctx, "leaving")).To(Equal([]string{"DELETE", "POST"}))
		Expect(at.refused(ctx, "delete", "patient", "leaving")).To(ContainSubstring("(NotFound)"))
		Expect(at.kubectl(ctx, "create", "-f", file(manifest("name: leaving", "{}")), "-o", "jsonpath={.metadata.generation}")).To(Equal("3"))
	})

	It("selects by labels, page by page", func(ctx SpecContext) {
		const all = 12
		for n := range all {
			name := "sel" + string(rune('a'+n))
			if n%3 == 0 {
				Expect(at.rest(ctx, http.MethodPut, "/"+name, `{"resourceType":"Patient","id":"`+name+`"}`).status).To(Equal(http.StatusCreated))
				continue
			}
			at.kubectl(ctx, "create", "-f", file(manifest("name: "+name+", labels: {pick: \"yes\", odd: \""+[]string{"even", "odd"}[n%2]+"\"}", "{}")))
		}
		names := func(args ...string) []string {
			return strings.Fields(at.kubectl(ctx, append([]string{"get", "patients", "-o", "custom-columns=N:.metadata.name", "--no-headers"}, args...)...))
		}
		want := []string{"selb", "selc", "sele", "self", "selh", "seli", "selk", "sell"}
		for _, chunk := range []string{"0", "1", "3", "7", "8", "500"} {
			Eventually(names).WithArguments("-l", "pick=yes", "--chunk-size="+chunk).Should(Equal(want), "chunks of %s", chunk)
		}
		Expect(names("-l", "pick,odd=odd", "--chunk-size=2")).To(Equal([]string{"selb", "self", "selh", "sell"}))
		Expect(names("-l", "pick notin (yes)", "--chunk-size=2")).To(And(ContainElements("sela", "seld"), Not(ContainElement("selb"))))
		at.kubectl(ctx, "delete", "patients", "-l", "odd=odd")
		Expect(names("-l", "pick")).To(Equal([]string{"selc", "sele", "seli", "selk"}))
	})

	It("loses nothing to writers that meet", func(ctx SpecContext) {
		at.kubectl(ctx, "create", "-f", file(manifest("name: busy", "{}")))
		done := make(chan error, 8)
		for n := range 8 {
			go func() {
				label := string(rune('a' + n))
				_, err := kubectl(ctx, "-n", at.namespace, "label", "patient", "busy", label+"="+label)
				done <- err
			}()
		}
		for range 8 {
			Expect(<-done).NotTo(HaveOccurred())
		}
		Expect(at.object(ctx, "busy").Labels).To(HaveLen(8))
	})
}

func referenceSpecs(at *tenant) {
	It("chooses names where the site chooses ids, and heeds its limits", func(ctx SpecContext) {
		settings := func(ctx context.Context, patch string) {
			must(ctx, "patch", "site", at.namespace, "-n", at.namespace, "--type=merge", "-p", patch)
		}
		settings(ctx, `{"spec":{"fhir":{"updateCreate":false},"limits":{"maxBodySize":"2Ki"}}}`)
		DeferCleanup(func(ctx SpecContext) {
			settings(ctx, `{"spec":{"fhir":{"updateCreate":true},"limits":{"maxBodySize":null}}}`)
		})
		create := func(metadata, spec string) response {
			return sendTo(ctx, http.MethodPost, at.path("?dryRun=All"), "application/yaml", manifest(metadata, spec))
		}
		Eventually(func() int { return create("name: chosen", "{}").status }).WithContext(ctx).Should(Equal(http.StatusUnprocessableEntity))
		Expect(string(create("name: chosen", "{}").body)).To(And(ContainSubstring("metadata.name"), ContainSubstring("generateName")))
		Expect(create("generateName: chosen-", "{}").status).To(Equal(http.StatusCreated))
		Expect(create("name: chosen, generateName: chosen-", "{}").status).To(Equal(http.StatusUnprocessableEntity))
		applied := sendTo(ctx, http.MethodPatch, at.path("/chosen?dryRun=All&fieldManager=x"), "application/apply-patch+yaml", manifest("name: chosen, generateName: chosen-", "{}"))
		Expect(applied.status).To(Equal(http.StatusUnprocessableEntity), "%s", applied.body)
		large := `{name: [{text: "` + strings.Repeat("x", 3000) + `"}]}`
		Expect(create("generateName: large-", large).status).To(Equal(http.StatusRequestEntityTooLarge))
		Expect(sendTo(ctx, http.MethodPatch, at.path("/bella"), "application/merge-patch+json", `{"spec":{"name":[{"text":"`+strings.Repeat("x", 3000)+`"}]}}`).status).
			To(Equal(http.StatusRequestEntityTooLarge))
	})

	It("keeps references in step, as REST does", func(ctx SpecContext) {
		must(ctx, "patch", "site", at.namespace, "-n", at.namespace, "--type=merge", "-p", `{"spec":{"fhir":{"referentialIntegrity":"Enforce"}}}`)
		DeferCleanup(func(ctx SpecContext) {
			must(ctx, "patch", "site", at.namespace, "-n", at.namespace, "--type=merge", "-p", `{"spec":{"fhir":{"referentialIntegrity":"Ignore"}}}`)
		})
		dangling := manifest("name: refers", `{link: [{type: seealso, other: {reference: Patient/target}}]}`)
		var message string
		Eventually(func() string {
			_, err := kubectl(ctx, "-n", at.namespace, "create", "-f", file(dangling), "--dry-run=server")
			if err != nil {
				message = err.Error()
			}
			return message
		}).WithContext(ctx).Should(ContainSubstring("spec.link[0].other.reference"))
		Expect(at.refused(ctx, "create", "-f", file(dangling))).To(And(ContainSubstring("spec.link[0].other.reference"), ContainSubstring("does not exist, or the caller may not read it")))
		at.kubectl(ctx, "create", "-f", file(manifest("name: target", "{}")))
		at.kubectl(ctx, "create", "-f", file(dangling))
		Expect(at.refused(ctx, "delete", "patient", "target")).To(And(ContainSubstring("(Conflict)"), ContainSubstring("Patient/refers")))
		at.kubectl(ctx, "delete", "patient", "refers")
		at.kubectl(ctx, "delete", "patient", "target")
	})
}
