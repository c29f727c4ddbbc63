package plugin

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("audit", func() {
	audit := func(args ...string) []string {
		return append([]string{"audit", "demo", "-n", "demo", "--as-service-account", "auditor"}, args...)
	}

	It("shows who accessed a record", func(ctx SpecContext) {
		Expect(request(ctx, http.MethodPut, "/fhir/patient/audited", editor, `{"resourceType":"Patient","id":"audited"}`).StatusCode).To(Equal(http.StatusCreated))
		Expect(request(ctx, http.MethodGet, "/fhir/patient/audited-not", editor, "").StatusCode).To(Equal(http.StatusNotFound))
		Expect(ok(ctx, audit("--entity", "Patient/audited")...)).To(And(
			MatchRegexp(`^RECORDED +CALLER +INTERACTION +OUTCOME +RECORDS +ADDRESS\n`),
			MatchRegexp(`\n\S+Z +system:serviceaccount:demo:editor +update +HTTP 201 +Patient/audited +127\.0\.0\.1\n$`),
		))
		type event struct{ ResourceType, Outcome string }
		got := decode[struct{ Items []event }](ok(ctx, audit("--entity", "Patient/audited-not", "--outcome", "4", "-o", "json")...))
		Expect(got.Items).To(Equal([]event{{"AuditEvent", "4"}}))
		later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		Expect(run(ctx, audit("--entity", "Patient/audited", "--from", later)...)).To(Equal(result{0, "", "No entries match.\n"}))
		Expect(ok(ctx, audit("--entity", "Patient/audited", "--to", later)...)).To(ContainSubstring("Patient/audited"))
		Expect(run(ctx, audit("--limit", "1")...).stderr).To(ContainSubstring("There may be more entries"))
	})

	It("says why it cannot", func(ctx SpecContext) {
		Expect(fails(ctx, "audit", "demo", "-n", "demo", "--as-service-account", "stranger")).To(ContainSubstring("403 Forbidden"))
		Expect(fails(ctx, audit("--outcome", "7")...)).To(And(ContainSubstring("400 Bad Request"), ContainSubstring("outcome")))
	})
})
