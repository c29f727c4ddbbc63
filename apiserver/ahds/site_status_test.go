package ahds_test

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/apiserver/ahds"
)

var _ = Describe("The status of a site", func() {
	It("has the conditions of the Site, for callers who may get it", func(ctx SpecContext) {
		s := newResourceSite(ctx)
		Expect(s.do("GET", "/site-status", "").json()).To(Equal(document{"siteId": s.id, "conditions": []any{}}))

		opened, _ := openSites[0].Load(s.id)
		changed := opened.(ahds.DataStore)
		changed.Conditions = []metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionFalse, Reason: "DatabaseUnreachable", Message: "no route",
			LastTransitionTime: metav1.NewTime(time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)),
		}}
		openSites[0].Store(s.id, changed)
		Expect(s.do("GET", "/site-status", "").json()["conditions"]).To(Equal([]any{map[string]any{
			"type": "Ready", "status": "False", "reason": "DatabaseUnreachable", "message": "no route", "changedAt": "2026-03-01T10:00:00.000Z",
		}}))
		Expect(s.do("GET", "/site-status", "", with("X-Caller", "no-get")).status).To(Equal(http.StatusForbidden))
		Expect(s.do("GET", "/site-status", "", with("X-Caller", "nobody")).status).To(Equal(http.StatusUnauthorized))
		Expect(s.do("GET", "/site-status?a=b", "").status).To(Equal(http.StatusBadRequest))
		Expect(s.do("POST", "/site-status", "{}").status).To(Equal(http.StatusMethodNotAllowed))
	})
	It("needs the right to get this Site, not all", func(ctx SpecContext) {
		s := newResourceSite(ctx)
		get := func(path string) int { return s.do("GET", path, "", with("X-Caller", "only-oak")).status }
		Expect(get("/site-status")).To(Equal(http.StatusForbidden))
		opened, _ := openSites[0].Load(s.id)
		oak := opened.(ahds.DataStore)
		oak.Access.Name = "oak"
		openSites[0].Store(s.id, oak)
		Expect(get("/site-status")).To(Equal(http.StatusOK))
		Expect(get("/site-usage")).To(Equal(http.StatusOK))
		Expect(s.do("GET", "/rights", "", with("X-Caller", "only-oak")).json()["rights"]).To(Equal([]any{
			map[string]any{"group": "paddock.health", "resource": "sites", "verbs": []any{"get"}},
		}))
	})
})
