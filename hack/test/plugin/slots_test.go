package plugin

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const vet = "0198c4f2-7d1e-7c3a-9b5f-000000000002"

var _ = Describe("slots", Ordered, func() {
	// as are the flags of requests by the editor.
	as := []string{"-n", "demo", "--as-service-account", "editor"}
	week := func(args ...string) []string { return append(append([]string{"slots", "demo"}, as...), args...) }

	BeforeAll(func(ctx SpecContext) {
		for _, slot := range []string{
			`"startAt": "2031-03-03T09:00:00Z", "endAt": "2031-03-03T09:30:00Z"`,
			`"startAt": "2031-03-05T09:00:00Z", "endAt": "2031-03-05T09:30:00Z", "isBooked": true`,
			`"startAt": "2031-03-09T23:45:00Z", "endAt": "2031-03-10T00:15:00Z", "isActive": false`,
			`"startAt": "2031-03-10T09:00:00Z", "endAt": "2031-03-10T09:30:00Z"`, // the week after
		} {
			body := `{"locationId": "0198c4f2-7d1e-7c3a-9b5f-000000000001", "resourceId": "` + vet + `", ` + slot + `}`
			Expect(request(ctx, http.MethodPost, "/ahds/v1/availability-slot", editor, body).StatusCode).To(Equal(http.StatusCreated))
		}
	})

	It("shows a week as a table", func(ctx SpecContext) {
		// Any day of the week selects it.
		for _, day := range []string{"2031-03-03", "2031-03-09"} {
			Expect(strings.Split(strings.TrimSpace(ok(ctx, week("--week", day)...)), "\n")).To(HaveExactElements(
				MatchRegexp(`^RESOURCE +TIME +MON 03 +TUE 04 +WED 05 +THU 06 +FRI 07 +SAT 08 +SUN 09$`),
				MatchRegexp(`^`+vet+` +09:00-09:30 +free +- +booked +- +- +- +-$`),
				MatchRegexp(`^`+vet+` +23:45-2031-03-10 00:15 +- +- +- +- +- +- +inactive$`),
			))
		}
		Expect(run(ctx, week("--week", "2031-04-01")...)).To(Equal(result{0, "", "There are no slots in the week of 2031-03-31.\n"}))
		Expect(run(ctx, week("--week", "2031-03-03", "--resource", "0198c4f2-7d1e-7c3a-9b5f-00000000ffff")...).stdout).To(BeEmpty())
	})

	It("returns the slots of the API as JSON", func(ctx SpecContext) {
		got := decode[struct{ Items []map[string]any }](ok(ctx, week("--week", "2031-03-03", "-o", "json")...))
		Expect(got.Items).To(HaveLen(3))
		Expect(got.Items[1]).To(And(HaveKeyWithValue("isBooked", true), HaveKeyWithValue("startAt", "2031-03-05T09:00:00Z"), HaveKey("availabilitySlotId")))
	})

	It("uses the address and the token that are given", func(ctx SpecContext) {
		file := filepath.Join(GinkgoT().TempDir(), "token")
		Expect(os.WriteFile(file, []byte(editor+"\n"), 0o600)).To(Succeed())
		Expect(ok(ctx, "slots", "demo", "-n", "demo", "--server", paddock.PublicURL()+"/", "--token-file", file, "--week", "2031-03-03")).To(ContainSubstring("booked"))
		Expect(fails(ctx, "slots", "demo", "-n", "demo", "--server", "http://127.0.0.1:1", "--token-file", file)).To(ContainSubstring("connection refused"))
		invalid := command("slots", "demo", "-n", "demo")
		invalid.Env = append(invalid.Env, "PADDOCK_TOKEN=invalid")
		got := finish(ctx, invalid)
		Expect(got.code).To(Equal(1))
		Expect(got.stderr).To(ContainSubstring("401 Unauthorized (login_required)"))
		Expect(fails(ctx, "slots", "waiting", "-n", "waiting", "--token-file", file)).To(Or(ContainSubstring("no status.url yet"), ContainSubstring("the site responded with")))
	})

	It("says what the site says about invalid parameters and missing rights", func(ctx SpecContext) {
		Expect(fails(ctx, week("--resource", "rex")...)).To(ContainSubstring("(invalid_request): resourceId: "))
		Expect(fails(ctx, "slots", "demo", "-n", "demo", "--as-service-account", "stranger")).To(ContainSubstring("403 Forbidden (permission_denied)"))
	})
})
