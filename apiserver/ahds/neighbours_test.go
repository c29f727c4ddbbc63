package ahds_test

import (
	"context"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("What one site was given", func() {
	onBoth("in the storage of another one", func(newSite func(context.Context, ...wrapper) site) {
		var own, other site
		BeforeEach(func(ctx SpecContext) { own, other = newSite(ctx), newSite(ctx) })

		It("is worthless in the other: tokens of holds", func() {
			id := own.do("POST", slotPath, slotBody(9)).created(slotID)
			Expect(other.do("POST", slotPath, slotBody(9, fields{slotID: id})).created(slotID)).To(Equal(id), "the sites have slots of one id")
			path := slotPath + "/" + id
			token := `{"holdToken":"` + own.do("POST", path+"/hold", "").ok().text("holdToken") + `"}`
			other.do("POST", path+"/hold", "").ok()
			for _, verb := range []string{"/hold", "/book", "/release"} {
				Expect(other.do("POST", path+verb, token).status).To(Equal(http.StatusConflict), verb)
			}
			own.do("POST", path+"/book", token).ok()
		})

		It("is worthless in the other: idempotency keys", func() {
			body := slotBody(9)
			created := own.do("POST", slotPath, body, key("one"))
			Expect(created.status).To(Equal(http.StatusCreated), created.body)
			again := other.do("POST", slotPath, body, key("one"))
			Expect(again.status).To(Equal(http.StatusCreated), again.body)
			Expect(again.text(slotID)).NotTo(Equal(created.text(slotID)))
			Expect(own.do("POST", slotPath, body, key("one")).body).To(Equal(created.body))
		})

		It("is worthless in the other: addresses of calendars", func() {
			feed := own.do("POST", feedPath, `{"resourceId":"`+vet+`"}`)
			feed.created(feedID)
			address := feed.text("url")
			other.do("POST", feedPath, `{"resourceId":"`+vet+`"}`).created(feedID)
			read := func(url string) int {
				return own.do("GET", url, "", caller("nobody"), with("Accept", "text/calendar")).status
			}
			Expect(read(address)).To(Equal(http.StatusOK))
			Expect(read(strings.Replace(address, own.id, other.id, 1))).To(Equal(http.StatusNotFound))
		})
	})
})
