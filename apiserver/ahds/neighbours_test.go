package ahds_test

import (
	"context"
	"net/http"
	"net/url"
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

		It("is worthless in the other: ids of events", func(ctx SpecContext) {
			own, other := newEventSite(ctx, newSite, "consult.created"), newEventSite(ctx, newSite, "consult.created")
			event := func(word string) string {
				return `{"eventId":"case/1","type":"consult.created","subject":"Consult/1","data":{"word":"` + word + `"}}`
			}
			words := func(s eventSite) (all []string) {
				for _, made := range s.made() {
					all = append(all, made["data"].(map[string]any)["word"].(string))
				}
				return all
			}
			for range 2 {
				Expect(eventIDs(own.do("POST", acceptPath, event("xylo")))).To(Equal([]string{"case/1"}))
				Expect(eventIDs(other.do("POST", acceptPath, event("quartz")))).To(Equal([]string{"case/1"}))
			}
			Expect(own.do("POST", acceptPath, event("quartz")).status).To(Equal(http.StatusConflict))
			Expect(other.do("POST", acceptPath, event("xylo")).status).To(Equal(http.StatusConflict))
			Expect(words(own)).To(Equal([]string{"xylo"}))
			Expect(words(other)).To(Equal([]string{"quartz"}))

			unnamed := `{"type":"consult.created","subject":"Consult/2","data":{"word":"wolf"}}`
			derived := eventIDs(own.do("POST", acceptPath, unnamed, key("one")))
			Expect(eventIDs(other.do("POST", acceptPath, unnamed, key("one")))).NotTo(Equal(derived))
			Expect(words(other)).To(Equal([]string{"quartz", "wolf"}))
		})

		It("is worthless in the other: cursors of changes", func() {
			own.do("POST", slotPath, slotBody(9)).created(slotID)
			var page changes
			own.do("GET", changesPath, "").ok().decode(&page)
			path := changesPath + "?since=" + url.QueryEscape(page.Meta.Next)
			own.do("GET", path, "").ok()
			Expect(other.do("GET", path, "").errs()).To(ConsistOf("parameter since invalid_value"))
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
