package kubectl_test

import (
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// rendered is the sample under GitOps, object by object.
func rendered(ctx SpecContext, s *script, sample string) []string {
	GinkgoHelper()
	objects := strings.Split(s.ok(ctx, "kustomize "+sample), "\n---\n")
	Expect(objects).To(HaveLen(1 + 3 + 5 + 5))
	return objects
}

var _ = Describe("A clinic under GitOps", func() {
	for _, engine := range engines {
		for _, mode := range []string{"client-side", "server-side"} {
			flags := map[string]string{"server-side": " --server-side --field-manager=gitops"}[mode]
			Context(mode+", records in "+engine, Ordered, func() {
				site := "gitops-" + mode + "-" + engine
				s := &script{namespace: site}
				var sample string

				BeforeAll(func(ctx SpecContext) {
					sample = filepath.Join(root, "config", "samples", "gitops")
					startSite(ctx, site, engine)
				})

				It("is applied in any order", func(ctx SpecContext) {
					objects := rendered(ctx, s, sample)
					rand.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
					said := s.feed(ctx, strings.Join(objects, "\n---\n"), "apply -f -"+flags)
					Expect(strings.Count(said, "\n")).To(Equal(len(objects)))
				})

				It("is applied again, and nothing changes", func(ctx SpecContext) {
					before := s.ok(ctx, "get fhir", "-o", "jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.generation} {.metadata.resourceVersion} {.metadata.uid}{\"\\n\"}{end}")
					Expect(strings.Count(before, "\n")).To(Equal(14))
					code, shown := s.code(ctx, "", "diff -k "+sample+flags)
					Expect(code).To(Equal(0), shown)
					said := s.ok(ctx, "apply -k "+sample+flags)
					if mode == "client-side" {
						Expect(strings.Count(said, " unchanged\n")).To(Equal(14), said)
					}
					code, shown = s.code(ctx, "", "diff -k "+sample+flags)
					Expect(code).To(Equal(0), shown)
					Expect(shown).To(BeEmpty())
					after := s.ok(ctx, "get fhir", "-o", "jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.generation} {.metadata.resourceVersion} {.metadata.uid}{\"\\n\"}{end}")
					Expect(after).To(Equal(before))
				})

				It("is what REST serves", func(ctx SpecContext) {
					token := editor(ctx, site)
					found := rest(ctx, http.MethodGet, site, token, "/practitioner-role?location=Location/theatre&_include=PractitionerRole:practitioner&_elements=name", "")
					Expect(found.status).To(Equal(http.StatusOK), found.body)
					Expect(found.body).To(And(ContainSubstring("Silva"), ContainSubstring("Haddad"), Not(ContainSubstring("Okoro"))))
				})

				It("is put right again where REST changed it", func(ctx SpecContext) {
					token := editor(ctx, site)
					Expect(rest(ctx, http.MethodPut, site, token, "/location/theatre", `{"resourceType":"Location","id":"theatre","status":"inactive","name":"Operating theatre"}`).status).To(Equal(http.StatusOK))
					code, shown := s.code(ctx, "", "diff -k "+sample+strings.Replace(flags, "--server-side", "--server-side --force-conflicts", 1))
					Expect(code).To(Equal(1))
					Expect(shown).To(MatchRegexp(`-\s+status: inactive\n`))
					s.ok(ctx, "apply -k "+sample+strings.Replace(flags, "--server-side", "--server-side --force-conflicts", 1))
					Expect(s.ok(ctx, "get loc theatre -o jsonpath={.spec.status}/{.spec.mode}")).To(Equal("active/instance"))
					code, shown = s.code(ctx, "", "diff -k "+sample+flags)
					Expect(code).To(Equal(0), shown)
				})

				It("goes as a whole", func(ctx SpecContext) {
					Expect(strings.Count(s.ok(ctx, "delete -k "+sample), "deleted")).To(Equal(14))
					Expect(s.ok(ctx, "get fhir -o name")).To(BeEmpty())
				})
			})
		}
	}
})
