package kubectl_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// manifest is an object of ours, as YAML.
func manifest(kind, name, spec string) string {
	return fmt.Sprintf("apiVersion: r4.fhir.paddock.health/v1alpha1\nkind: %s\nmetadata: {name: %s}\nspec: %s\n", kind, name, spec)
}

var _ = Describe("A script of writes", func() {
	for _, engine := range engines {
		Context("of records in "+engine, Ordered, func() {
			site := "write-" + engine
			s := &script{namespace: site}
			ok := func(ctx SpecContext, line string, more ...string) string {
				GinkgoHelper()
				return s.ok(ctx, line, more...)
			}
			feed := func(ctx SpecContext, input, line string, more ...string) string {
				GinkgoHelper()
				return s.feed(ctx, input, line, more...)
			}
			no := func(ctx SpecContext, line string, more ...string) string {
				GinkgoHelper()
				return s.no(ctx, line, more...)
			}
			refuse := func(ctx SpecContext, input, line string, more ...string) string {
				GinkgoHelper()
				return s.noFeed(ctx, input, line, more...)
			}
			// field is a value of an object.
			field := func(ctx SpecContext, object, path string) string {
				GinkgoHelper()
				return s.ok(ctx, "get "+object+" -o", "jsonpath={"+path+"}")
			}
			var token string

			BeforeAll(func(ctx SpecContext) {
				startSite(ctx, site, engine)
				token = editor(ctx, site)
			})
			AfterAll(func() { GinkgoWriter.Printf("%d invocations of kubectl\n", s.calls) })

			It("creates from standard input and from files", func(ctx SpecContext) {
				Expect(feed(ctx, manifest("Patient", "rex", `{active: true, birthDate: "2019-04-01", name: [{family: Oak, given: [Rex]}]}`), "create -f -")).
					To(Equal("patient.r4.fhir.paddock.health/rex created\n"))
				read := rest(ctx, http.MethodGet, site, token, "/patient/rex", "")
				Expect(read.status).To(Equal(http.StatusOK))
				Expect(read.header.Get("ETag")).To(Equal(`W/"1"`))
				Expect(read.body).To(ContainSubstring(`"birthDate":"2019-04-01"`))
				path := file("ana.json", `{"apiVersion":"r4.fhir.paddock.health/v1alpha1","kind":"Practitioner","metadata":{"name":"ana"},"spec":{"active":true,"name":[{"family":"Silva"}]}}`)
				Expect(ok(ctx, "create -o name -f "+path)).To(Equal("practitioner.r4.fhir.paddock.health/ana\n"))
				Expect(no(ctx, "create -f "+path)).To(ContainSubstring(`(AlreadyExists)`))
				generated := feed(ctx, "apiVersion: r4.fhir.paddock.health/v1alpha1\nkind: Patient\nmetadata: {generateName: walk-in-}\nspec: {}\n", "create -o name -f -")
				Expect(generated).To(HavePrefix("patient.r4.fhir.paddock.health/walk-in-"))
				Expect(ok(ctx, "delete "+strings.TrimSpace(generated))).To(ContainSubstring("deleted"))
			})

			It("tries without writing", func(ctx SpecContext) {
				Expect(feed(ctx, manifest("Patient", "ghost", `{}`), "create --dry-run=server -f -")).To(Equal("patient.r4.fhir.paddock.health/ghost created (server dry run)\n"))
				Expect(feed(ctx, manifest("Patient", "ghost", `{}`), "create --dry-run=client -f -")).To(ContainSubstring("created (dry run)"))
				Expect(refuse(ctx, manifest("Patient", "ghost", `{birthDate: yesterday}`), "create --dry-run=server -f -")).To(ContainSubstring("spec.birthDate"))
				Expect(ok(ctx, "patch patient rex --type=merge --dry-run=server -o jsonpath={.spec.active} -p", `{"spec":{"active":false}}`)).To(Equal("false"))
				Expect(ok(ctx, "delete patient rex --dry-run=server")).To(And(ContainSubstring(`"rex" deleted`), ContainSubstring("(server dry run)")))
				Expect(ok(ctx, "get patient ghost --ignore-not-found")).To(BeEmpty())
				Expect(field(ctx, "patient/rex", ".spec.active")).To(Equal("true"))
				Expect(field(ctx, "patient/rex", ".metadata.generation")).To(Equal("1"))
			})

			It("names the field of what is wrong", func(ctx SpecContext) {
				for spec, path := range map[string]string{
					`{birthDate: yesterday}`:                            "spec.birthDate",
					`{name: [{use: sometimes}]}`:                        "spec.name[0].use",
					`{name: [{}, {family: 1}]}`:                         "spec.name[1].family",
					`{nickname: Rexy}`:                                  "nickname",
					`{link: [{type: seealso}]}`:                         "spec.link[0].other",
					`{deceasedBoolean: true, deceasedDateTime: "2024"}`: "deceased",
				} {
					said := refuse(ctx, manifest("Patient", "wrong", spec), "create -f -")
					Expect(said).To(ContainSubstring(path), spec)
					Expect(refuse(ctx, manifest("Patient", "wrong", spec), "apply --server-side -f -")).To(ContainSubstring(path), spec)
				}
				Expect(refuse(ctx, manifest("Patient", "wrong", `{nickname: Rexy}`), "apply --validate=strict -f -")).To(ContainSubstring("nickname"))
				Expect(refuse(ctx, manifest("Patient", "wrong", `{nickname: Rexy}`), "create --validate=false -f -")).To(ContainSubstring("nickname"))
				Expect(refuse(ctx, manifest("Patient", "Wrong", `{}`), "create -f -")).To(ContainSubstring("metadata.name"))
				Expect(ok(ctx, "get patient wrong --ignore-not-found")).To(BeEmpty())
			})

			It("applies, client-side, and shows the difference before", func(ctx SpecContext) {
				first := file("org.yaml", manifest("Organization", "oak", `{active: true, name: Oak Street, telecom: [{system: phone, value: "1"}]}`))
				second := file("org.yaml", manifest("Organization", "oak", `{name: Oak Street Animal Hospital, telecom: [{system: phone, value: "2"}]}`))
				code, _ := s.code(ctx, "", "diff -f "+first)
				Expect(code).To(Equal(1))
				Expect(ok(ctx, "apply -f "+first)).To(Equal("organization.r4.fhir.paddock.health/oak created\n"))
				Expect(ok(ctx, "apply -f "+first)).To(Equal("organization.r4.fhir.paddock.health/oak unchanged\n"))
				code, shown := s.code(ctx, "", "diff -f "+first)
				Expect(code).To(Equal(0), shown)
				code, shown = s.code(ctx, "", "diff -f "+second)
				Expect(code).To(Equal(1))
				Expect(shown).To(MatchRegexp(`\+\s+name: Oak Street Animal Hospital`))
				Expect(ok(ctx, "apply -f "+second)).To(Equal("organization.r4.fhir.paddock.health/oak configured\n"))
				Expect(ok(ctx, "apply view-last-applied organization/oak")).To(ContainSubstring("Oak Street Animal Hospital"))
				Expect(field(ctx, "org/oak", ".spec.active")).To(BeEmpty(), "what is no longer applied goes")
				Expect(field(ctx, "org/oak", ".spec.telecom[*].value")).To(Equal("2"))
				read := rest(ctx, http.MethodGet, site, token, "/organization/oak", "")
				Expect(read.header.Get("ETag")).To(Equal(`W/"2"`))
				Expect(read.body).NotTo(ContainSubstring("annotations"))
			})

			It("applies server-side, and guards the fields of others", func(ctx SpecContext) {
				mine := manifest("Location", "room-1", `{status: active, name: Consulting room 1}`)
				Expect(feed(ctx, mine, "apply --server-side --field-manager=gitops -f -")).To(Equal("location.r4.fhir.paddock.health/room-1 serverside-applied\n"))
				Expect(feed(ctx, mine, "apply --server-side --field-manager=gitops -f -")).To(ContainSubstring("serverside-applied"))
				Expect(field(ctx, "loc/room-1", ".metadata.generation")).To(Equal("1"))
				Expect(rest(ctx, http.MethodPut, site, token, "/location/room-1", `{"resourceType":"Location","id":"room-1","status":"suspended","name":"Consulting room 1"}`).status).To(Equal(http.StatusOK))
				Expect(ok(ctx, "get loc room-1 -o yaml --show-managed-fields")).To(And(ContainSubstring("manager: gitops"), ContainSubstring("manager: paddock-rest")))
				said := refuse(ctx, mine, "apply --server-side --field-manager=gitops -f -")
				Expect(said).To(And(ContainSubstring("conflict with \"paddock-rest\""), ContainSubstring(".spec.status")))
				Expect(feed(ctx, mine, "apply --server-side --field-manager=gitops --force-conflicts -f -")).To(ContainSubstring("serverside-applied"))
				Expect(field(ctx, "loc/room-1", ".spec.status")).To(Equal("active"))
				code, shown := s.code(ctx, mine, "diff --server-side --field-manager=gitops -f -")
				Expect(code).To(Equal(0), shown)
			})

			It("patches three kinds in each way that is served", func(ctx SpecContext) {
				Expect(ok(ctx, "patch patient rex --type=merge -p", `{"spec":{"gender":"male"}}`)).To(Equal("patient.r4.fhir.paddock.health/rex patched\n"))
				Expect(ok(ctx, "patch patient rex --type=merge -p", `{"spec":{"gender":"male"}}`)).To(Equal("patient.r4.fhir.paddock.health/rex patched (no change)\n"))
				Expect(ok(ctx, "patch prac ana --type=json -p", `[{"op":"test","path":"/spec/active","value":true},{"op":"replace","path":"/spec/active","value":false}]`)).To(ContainSubstring("patched"))
				Expect(no(ctx, "patch prac ana --type=json -p", `[{"op":"test","path":"/spec/active","value":true}]`)).NotTo(BeEmpty())
				Expect(ok(ctx, "patch org oak --type=merge -p", `{"spec":{"telecom":null}}`)).To(ContainSubstring("patched"))
				Expect(no(ctx, "patch org oak --type=merge -p", `{"spec":{"name":null}}`)).To(ContainSubstring("an organization must have a name or an identifier"))
				Expect(no(ctx, "patch patient rex -p", `{"spec":{"active":false}}`)).To(ContainSubstring("application/strategic-merge-patch+json is not supported"))
				Expect(no(ctx, "patch patient rex --type=merge -p", `{"spec":{"gender":"dog"}}`)).To(ContainSubstring("spec.gender"))
				Expect(field(ctx, "patient/rex", ".metadata.generation")).To(Equal("2"))
				Expect(field(ctx, "prac/ana", ".spec.active")).To(Equal("false"))
				Expect(field(ctx, "org/oak", ".spec.telecom")).To(BeEmpty())
			})

			It("edits", func(ctx SpecContext) {
				s.environment = []string{"KUBE_EDITOR=sed -i s/2019-04-01/2019-04-02/"}
				defer func() { s.environment = nil }()
				Expect(ok(ctx, "edit patient rex")).To(Equal("patient.r4.fhir.paddock.health/rex edited\n"))
				Expect(field(ctx, "patient/rex", ".spec.birthDate")).To(Equal("2019-04-02"))
				_, said, err := s.run(ctx, "", "edit patient rex")
				Expect(err).NotTo(HaveOccurred())
				Expect(said).To(ContainSubstring("Edit cancelled, no changes made"))
			})

			It("replaces what has not changed meanwhile", func(ctx SpecContext) {
				stale := ok(ctx, "get patient rex -o yaml")
				Expect(feed(ctx, strings.Replace(stale, "2019-04-02", "2019-04-03", 1), "replace -f -")).To(Equal("patient.r4.fhir.paddock.health/rex replaced\n"))
				Expect(refuse(ctx, stale, "replace -f -")).To(ContainSubstring("(Conflict)"))
				Expect(field(ctx, "patient/rex", ".spec.birthDate")).To(Equal("2019-04-03"))
				Expect(rest(ctx, http.MethodPut, site, token, "/patient/rex", `{"resourceType":"Patient","id":"rex","birthDate":"2019-04-04","active":true,"gender":"male"}`).status).To(Equal(http.StatusOK))
				fresh := ok(ctx, "get patient rex -o yaml")
				Expect(rest(ctx, http.MethodPut, site, token, "/patient/rex", `{"resourceType":"Patient","id":"rex","birthDate":"2019-04-05","active":true,"gender":"male"}`).status).To(Equal(http.StatusOK))
				Expect(refuse(ctx, fresh, "replace -f -")).To(ContainSubstring("(Conflict)"))
				Expect(field(ctx, "patient/rex", ".metadata.generation")).To(Equal("6"))
				history := rest(ctx, http.MethodGet, site, token, "/patient/rex/_history", "")
				Expect(strings.Count(history.body, `"fullUrl"`)).To(Equal(6))
			})

			It("labels, annotates and selects, without a version", func(ctx SpecContext) {
				before := field(ctx, "patient/rex", ".metadata.generation")
				Expect(ok(ctx, "label patient rex team=surgery")).To(Equal("patient.r4.fhir.paddock.health/rex labeled\n"))
				Expect(no(ctx, "label patient rex team=dental")).To(ContainSubstring("--overwrite is false"))
				Expect(ok(ctx, "label patient rex team=dental --overwrite")).To(ContainSubstring("labeled"))
				Expect(ok(ctx, "annotate patient rex example.org/note=shy")).To(Equal("patient.r4.fhir.paddock.health/rex annotated\n"))
				Expect(ok(ctx, "get patients -l team=dental -o name")).To(Equal("patient.r4.fhir.paddock.health/rex\n"))
				Expect(ok(ctx, "get patients -l team=surgery -o name")).To(BeEmpty())
				Expect(ok(ctx, "get patients -l", "team in (dental, surgery)", "-o", "name")).To(ContainSubstring("rex"))
				Expect(rows(ok(ctx, "get patient rex -L team"))[1]).To(ContainElement("dental"))
				Expect(field(ctx, "patient/rex", ".metadata.annotations.example\\.org/note")).To(Equal("shy"))
				Expect(field(ctx, "patient/rex", ".metadata.generation")).To(Equal(before))
				Expect(ok(ctx, "label patient rex team-")).To(Equal("patient.r4.fhir.paddock.health/rex unlabeled\n"))
				Expect(ok(ctx, "get patients -l team -o name")).To(BeEmpty())
			})

			It("keeps the bytes of what does not change", func(ctx SpecContext) {
				const gate = `{"resourceType":"Location","id":"gate", "name":"Gate","position":{"longitude":144.350,"latitude":-38.10}}`
				Expect(rest(ctx, http.MethodPut, site, token, "/location/gate", gate).status).To(Equal(http.StatusCreated))
				stored := func() string { return rest(ctx, http.MethodGet, site, token, "/location/gate", "").body }
				before := stored()
				Expect(before).To(ContainSubstring("144.350"))
				ok(ctx, "label loc gate team=yard")
				feed(ctx, ok(ctx, "get loc gate -o yaml"), "replace -f -")
				feed(ctx, manifest("Location", "gate", `{name: Gate}`), "apply --server-side -f -")
				Expect(stored()).To(Equal(before))
				ok(ctx, "patch loc gate --type=merge -p", `{"spec":{"mode":"instance"}}`)
				Expect(stored()).To(And(ContainSubstring(`144.350,`), ContainSubstring(`"versionId":"2"`)), "decimals keep their digits")
				ok(ctx, "delete loc gate")
			})

			It("keeps out whoever has no right", func(ctx SpecContext) {
				viewer := " --as=viewer"
				ok(ctx, "create role viewer --verb=get,list --resource=patients.r4.fhir.paddock.health")
				ok(ctx, "create rolebinding viewer --role=viewer --user=viewer")
				Eventually(func() error { _, _, err := s.run(ctx, "", "get patient rex"+viewer); return err }).WithContext(ctx).WithTimeout(lag).Should(Succeed())
				Expect(no(ctx, "patch patient rex --type=merge -p {}"+viewer)).To(ContainSubstring(`cannot patch resource "patients"`))
				Expect(no(ctx, "delete patient rex"+viewer)).To(ContainSubstring(`cannot delete resource "patients"`))
				Expect(refuse(ctx, manifest("Patient", "other", `{}`), "create -f -"+viewer)).To(ContainSubstring(`cannot create resource "patients"`))
				Expect(refuse(ctx, manifest("Patient", "rex", `{}`), "apply --server-side -f -"+viewer)).To(ContainSubstring(`cannot patch resource "patients"`))
				Expect(ok(ctx, "auth can-i list patients"+viewer)).To(Equal("yes\n"))
				Expect(no(ctx, "auth can-i delete patients"+viewer)).To(Equal(""))
			})

			It("deletes by name, by file, by selector and all, and waits", func(ctx SpecContext) {
				for _, name := range []string{"a", "b", "c", "d"} {
					feed(ctx, manifest("Patient", name, `{}`), "create -f -")
				}
				ok(ctx, "label patients a b team=gone")
				Expect(ok(ctx, "delete patients -l team=gone")).To(And(ContainSubstring(`"a" deleted`), ContainSubstring(`"b" deleted`)))
				Expect(ok(ctx, "get patients -o name")).To(Equal("patient.r4.fhir.paddock.health/c\npatient.r4.fhir.paddock.health/d\npatient.r4.fhir.paddock.health/rex\n"))
				Expect(feed(ctx, manifest("Patient", "c", `{}`), "delete -f -")).To(ContainSubstring(`"c" deleted`))
				Expect(ok(ctx, "delete patient d --wait=false --now")).To(ContainSubstring(`"d" deleted`))
				ok(ctx, "wait --for=delete patient/d --timeout=10s")
				Expect(no(ctx, "delete patient d")).To(ContainSubstring("(NotFound)"))
				Expect(ok(ctx, "delete patient d --ignore-not-found")).To(BeEmpty())
				Expect(rest(ctx, http.MethodGet, site, token, "/patient/d", "").status).To(Equal(http.StatusGone))
				Expect(ok(ctx, "delete loc --all")).To(ContainSubstring(`"room-1" deleted`))
				Expect(ok(ctx, "get loc -o name")).To(BeEmpty())
			})

			It("creates again what was deleted, as another object", func(ctx SpecContext) {
				feed(ctx, manifest("Patient", "again", `{}`), "create -f -")
				first := field(ctx, "patient/again", ".metadata.uid")
				ok(ctx, "delete patient again")
				feed(ctx, manifest("Patient", "again", `{}`), "create -f -")
				Expect(field(ctx, "patient/again", ".metadata.uid")).NotTo(Equal(first))
				Expect(no(ctx, "delete --raw "+group+"/namespaces/"+site+"/patients/again -f "+
					file("options.json", `{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"`+first+`"}}`))).To(ContainSubstring("Conflict"))
				Expect(ok(ctx, "get patient again -o name")).NotTo(BeEmpty())
			})

			It("writes raw paths", func(ctx SpecContext) {
				path := group + "/namespaces/" + site + "/persons"
				body := file("person.json", `{"apiVersion":"r4.fhir.paddock.health/v1alpha1","kind":"Person","metadata":{"name":"raw"},"spec":{"active":true}}`)
				var created object
				Expect(json.Unmarshal([]byte(ok(ctx, "create --raw "+path+" -f "+body)), &created)).To(Succeed())
				Expect(created.Metadata.Generation).To(Equal(1))
				Expect(ok(ctx, "replace --raw "+path+"/raw -f "+body)).To(ContainSubstring(`"generation":1`), "nothing has changed")
				Expect(ok(ctx, "delete --raw "+path+"/raw")).To(ContainSubstring(created.Metadata.UID))
				Expect(no(ctx, "get person raw")).To(ContainSubstring("(NotFound)"))
			})
		})
	}
})
