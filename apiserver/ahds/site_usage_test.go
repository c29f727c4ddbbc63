package ahds_test

import (
	"net/http"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/paddock-health/paddock/apiserver/ahds"
	"github.com/paddock-health/paddock/apiserver/delivery"
)

var _ = Describe("The usage of a site", func() {
	for _, engine := range engines {
		It("has what is stored, and the requests and deliveries of the last hour (storage: "+engine+")", func(ctx SpecContext) {
			s, log := newDeliverySite(ctx, engine)
			s.do("POST", slotPath, slotBody(8)).created(slotID)
			hook, accepted := uuid.NewString(), now().UTC()
			log.add(newDelivery(hook, "e0", delivery.Delivered, accepted.Add(-2*time.Hour)))
			log.add(newDelivery(hook, "e1", delivery.Failed, accepted.Add(-10*time.Minute)))
			log.add(newDelivery(hook, "e2", delivery.Pending, accepted.Add(-10*time.Minute)))
			requests.Record(s.id, http.StatusOK, 30*time.Millisecond)
			requests.Record(s.id, http.StatusServiceUnavailable, time.Minute)

			var usage document
			Eventually(func() any { // the etcd-backed engine counts what it has watched
				usage = s.do("GET", "/site-usage", "").json()
				return usage["storage"].(map[string]any)["records"]
			}).Should(Equal(1.0))
			Expect(usage["siteId"]).To(Equal(s.id))
			stored := usage["storage"].(map[string]any)
			Expect(stored["bytes"]).To(BeNumerically(">", 0))
			Expect(stored["countedAt"]).To(BeInstantNear(now()))
			if engine == "Cluster" {
				Expect(stored).To(And(HaveKeyWithValue("maxRecords", BeNumerically(">", 1)), HaveKeyWithValue("maxBytes", BeNumerically(">", 1))))
			} else {
				Expect(stored).NotTo(Or(HaveKey("maxRecords"), HaveKey("maxBytes")))
			}

			sent := usage["requests"].(map[string]any)
			Expect(sent).To(And(HaveKeyWithValue("server", "server-1"), HaveKeyWithValue("stepSeconds", 60.0), HaveKey("since"),
				HaveKeyWithValue("boundsMs", []any{5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 10000.0})))
			total, failed, durations := 0.0, 0.0, make([]float64, 11)
			for _, sample := range sent["samples"].([]any) {
				one := sample.(map[string]any)
				total, failed = total+one["requests"].(float64), failed+one["serverErrors"].(float64)
				for i, n := range one["durations"].([]any) {
					durations[i] += n.(float64)
				}
			}
			Expect([]float64{total, failed}).To(Equal([]float64{2, 1}))
			Expect(durations).To(Equal([]float64{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1}))

			delivered := usage["deliveries"].(map[string]any)
			Expect(delivered["samples"]).To(Equal([]any{map[string]any{
				"at": accepted.Add(-10 * time.Minute).Truncate(time.Minute).Format("2006-01-02T15:04:05.000Z"), "pending": 1.0, "delivered": 0.0, "failed": 1.0,
			}}))
			Expect(delivered["from"]).To(BeInstantNear(now().Add(-time.Hour).Truncate(time.Minute)))
		})
	}

	It("needs the right to get the Site, and answers while the storage is not open", func(ctx SpecContext) {
		s := newResourceSite(ctx)
		usage := s.do("GET", "/site-usage", "").json()
		Expect(usage).NotTo(Or(HaveKey("storage"), HaveKey("deliveries")))
		Expect(usage).To(HaveKey("requests"))
		Expect(s.do("GET", "/site-usage", "", with("X-Caller", "no-get")).status).To(Equal(http.StatusForbidden))
		Expect(s.do("GET", "/site-usage", "", with("X-Caller", "nobody")).status).To(Equal(http.StatusUnauthorized))
		Expect(s.do("GET", "/site-usage?a=b", "").status).To(Equal(http.StatusBadRequest))
	})
})

var _ = Describe("The rights of a caller", func() {
	It("are those to all operations that the caller may use", func(ctx SpecContext) {
		s := newResourceSite(ctx)
		rights := func(caller string) map[string]any {
			a := s.do("GET", "/rights", "", with("X-Caller", caller))
			Expect(a.status).To(Equal(http.StatusOK), a.body)
			Expect(a.json()["siteId"]).To(Equal(s.id))
			all := map[string]any{}
			for _, r := range a.json()["rights"].([]any) {
				one := r.(map[string]any)
				all[one["resource"].(string)+"."+one["group"].(string)] = one["verbs"]
			}
			return all
		}
		all := rights("alice")
		Expect(all).To(HaveKeyWithValue("sites.paddock.health", []any{"get"}))
		Expect(all).To(HaveKeyWithValue("availabilityslots."+ahds.Group, []any{"create", "delete", "get", "list", "patch", "update"}))
		Expect(all).To(HaveKeyWithValue("webhooks/deliveries.paddock.health", []any{"create", "get", "list"}))
		Expect(rights("no-get")).To(And(Not(HaveKey("sites.paddock.health")), HaveKeyWithValue("webhooks/deliveries.paddock.health", []any{"create", "list"})))
		Expect(rights("stranger")).To(BeEmpty())
		Expect(s.do("GET", "/rights", "", with("X-Caller", "nobody")).status).To(Equal(http.StatusUnauthorized))
		Expect(s.do("GET", "/rights?a=b", "").status).To(Equal(http.StatusBadRequest))
	})
})

// BeInstantNear matches the text of an instant within a minute of another one.
func BeInstantNear(want time.Time) types.GomegaMatcher {
	return WithTransform(func(text any) (time.Time, error) { return time.Parse(time.RFC3339, text.(string)) }, BeTemporally("~", want, time.Minute))
}
