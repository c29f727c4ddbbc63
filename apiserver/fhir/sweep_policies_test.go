package fhir_test

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/access/privacy"
)

// policy is what the sites of a sweep show to nurse.
type policy struct {
	rules []privacy.Rule
	// closed sites show what no rule matches to privileged callers only.
	closed bool
	// breaksGlass says that each request of nurse breaks the glass.
	breaksGlass bool
	// label returns the member of meta with which a record is written.
	label func(write sweepWrite) string
}

var (
	secretRule  = privacy.Rule{Name: "tagged", Tags: []privacy.Coding{{System: "urn:tag", Code: "secret"}}, Deny: &privacy.Callers{Groups: []string{"kubernetes:" + nurse}}}
	profileRule = privacy.Rule{Name: "profiled", Profiles: []string{"http://secret.example/p"}, Allow: &privacy.Callers{Groups: []string{"kubernetes:chiefs"}}}
	levelRule   = privacy.Rule{Name: "level", Security: []privacy.Coding{{System: privacy.ConfidentialitySystem, Code: "V"}}, Allow: &privacy.Callers{Groups: []string{"kubernetes:chiefs"}}}
	shownRule   = privacy.Rule{Name: "shown", Tags: []privacy.Coding{{System: "urn:tag", Code: "shown"}}, Allow: &privacy.Callers{Groups: []string{"kubernetes:" + nurse}}}
)

// labelShown is a member of meta that a Closed site needs to show a record.
const labelShown = `"tag":[{"system":"urn:tag","code":"shown"},{"system":"urn:t","code":"WORD","display":"WORD"}]`

// openPolicy hides what is labelled.
var openPolicy = policy{rules: []privacy.Rule{secretRule, profileRule}, label: func(write sweepWrite) string { return write.label }}

// closedPolicy hides what has no label: where the open one shows a record, it has one.
var closedPolicy = policy{closed: true, rules: []privacy.Rule{secretRule, profileRule, shownRule}, label: func(write sweepWrite) string {
	switch write.label {
	case "":
		return labelShown
	case labelR, labelV:
		return ""
	default:
		return write.label
	}
}}

// glassPolicy hides what is denied. The other records lack an allow: a rule or a level hides them
// until nurse breaks the glass.
var glassPolicy = policy{breaksGlass: true, rules: []privacy.Rule{secretRule, profileRule}, label: func(write sweepWrite) string {
	if write.label != "" {
		return labelTag
	}
	return map[string]string{"seen-a": labelR, "seen-b": labelV, "referred": labelProfile}[write.id]
}}

// levelPolicy has a rule that replaces the privilege for V. Records have that label without its system.
var levelPolicy = policy{rules: []privacy.Rule{secretRule, profileRule, levelRule}, label: openPolicy.label}

// sparsity chooses one of so many questions: the sweep of the open policy asks all of them.
const sparsity = 7

var _ = Describe("What a caller may not see, by another policy", func() {
	kinds := []string{"Device", "Group", "Patient"}
	for name, policy := range map[string]policy{
		"of a Closed site": closedPolicy, "that breaking the glass keeps": glassPolicy, "that a rule about a level hides": levelPolicy,
	} {
		for engine, open := range newSites {
			Describe(name+" in "+engine, Ordered, ContinueOnFailure, func() {
				var both *twins
				BeforeAll(func(ctx context.Context) { both = openTwins(ctx, open, kinds, policy, nil) })
				expectEqual := func(ctx context.Context, questions []question) {
					GinkgoHelper()
					before := len(both.differences)
					for i := 0; i < len(questions); i += sparsity {
						both.compareWrite(ctx, questions[i], "Patient")
					}
					both.expectNoneSince(before)
				}

				It("leaves what the caller may see", func() {
					for _, id := range visibleIDs[:4] {
						Expect(both.with.ask(question{method: "GET", path: "/Patient/" + id}).status).To(Equal(http.StatusOK), id)
					}
					for _, id := range hiddenIDs {
						Expect(both.with.ask(question{method: "GET", path: "/Patient/" + id}).status).To(Equal(http.StatusNotFound), id)
					}
				})
				It("is not told of by reads and histories", func(ctx context.Context) {
					expectEqual(ctx, readQuestions("Patient"))
					expectEqual(ctx, readQuestions("Device"))
				})
				It("is not told of by searches", func(ctx context.Context) {
					expectEqual(ctx, both.controlQuestions("Patient"))
					expectEqual(ctx, both.parameterQuestions("Device"))
					expectEqual(ctx, joinQuestions("Device"))
					expectEqual(ctx, siteQuestions())
				})
				It("is not told of by page tokens of others", func(ctx context.Context) { expectEqual(ctx, both.tokenQuestions()) })
				It("is not told of by writes", func(ctx context.Context) {
					for _, id := range []string{"hidden-r", "raised", "dead"} {
						expectEqual(ctx, writesOf("Patient", id, false))
					}
					expectEqual(ctx, writesOf("Device", "linked", false))
					expectEqual(ctx, referenceWrites())
				})
			})
		}
	}
})
