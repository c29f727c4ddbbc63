package ahds_test

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/delivery"
)

// writer may do everything except get objects.
var writer = caller("no-get")

// expectNoBody expects success with the version of the object, and no body.
func expectNoBody(a answer) {
	GinkgoHelper()
	Expect(a.ok().body).To(BeEmpty())
	Expect(a.header.Get("ETag")).NotTo(BeEmpty())
	Expect(a.header.Get("Content-Type")).To(BeEmpty())
}

var _ = Describe("A write without the right to get", func() {
	var s site

	Describe("of records", func() {
		BeforeEach(func(ctx SpecContext) { s = newSite(ctx, "Postgres") })

		It("shows only what it created", func() {
			for _, test := range []struct{ segment, idField, body, patch, whole string }{
				{slotPath, slotID, slotBody(9, fields{"notes": "hidden"}), `{"isActive":true}`, ""},
				{
					groupPath, groupID, `{"name":"hidden","status":"active"}`, `{"category":"c"}`,
					`{"name":"n","status":"active","category":"","description":"","locationId":"","organizationId":"","extensions":{}}`,
				},
				{feedPath, feedID, `{"resourceId":"` + vet + `","description":"hidden"}`, `{"resourceId":"` + vet + `"}`, `{"resourceId":"` + vet + `","description":""}`},
			} {
				created := s.do("POST", test.segment, test.body, key(test.segment), writer)
				path := test.segment + "/" + created.created(test.idField)
				Expect(created.body).To(ContainSubstring("hidden"))
				Expect(s.do("GET", path, "", writer).status).To(Equal(http.StatusForbidden))

				repeated := s.do("POST", test.segment, test.body, key(test.segment), writer)
				expectNoBody(repeated)
				Expect(repeated.header.Get("Location")).To(HaveSuffix(path))
				expectNoBody(s.do("PATCH", path, `{}`, writer))
				patched := s.do("PATCH", path, test.patch, writer)
				expectNoBody(patched)
				read := s.do("GET", path, "").ok()
				Expect(read.header.Get("ETag")).To(Equal(patched.header.Get("ETag")))
				if test.whole == "" {
					test.whole = read.body
				}
				expectNoBody(s.do("PUT", path, test.whole, writer))
			}
		})

		It("holds, books and releases slots", func() {
			path := slotPath + "/" + s.do("POST", slotPath, slotBody(9, fields{"notes": "hidden"})).created(slotID)
			held := s.do("POST", path+"/hold", "", writer).ok()
			Expect(held.json()).To(And(HaveLen(2), HaveKey("holdToken"), HaveKeyWithValue("heldUntil", s.do("GET", path, "").text("heldUntil"))))
			token := bodyOf(fields{"holdToken": held.text("holdToken")})
			expectNoBody(s.do("POST", path+"/book", token, writer))
			Expect(s.do("GET", path, "").json()).To(HaveKeyWithValue("isBooked", true))
			expectNoBody(s.do("POST", path+"/release", "", writer))
			Expect(s.do("POST", path+"/hold", "").ok().json()).To(HaveKeyWithValue("notes", "hidden"), "callers who may get it see it")
		})

		It("names the slots of a batch that it did not create", func() {
			id := s.do("POST", slotPath, slotBody(9, fields{"notes": "hidden"})).created(slotID)
			whole := s.do("GET", slotPath+"/"+id, "").body
			batch := `[{"action":"create","slot":` + slotBody(10) + `},{"action":"replace","availabilitySlotId":"` + id + `","slot":` + whole + `}]`
			first := s.do("POST", batchPath, batch, key("k"), writer).ok()
			Expect(first.body).NotTo(ContainSubstring("hidden"))
			data := func(a answer) (entries []document) {
				var all struct{ Data []document }
				a.decode(&all)
				return all.Data
			}
			Expect(data(first)).To(HaveExactElements(
				And(HaveKeyWithValue("status", 201.0), HaveKey("slot"), HaveKey("etag"), Not(HaveKey(slotID))),
				And(HaveKeyWithValue("status", 200.0), HaveKeyWithValue(slotID, id), HaveKey("etag"), Not(HaveKey("slot"))),
			))
			made := data(first)[0]["slot"].(map[string]any)[slotID]
			Expect(data(s.do("POST", batchPath, batch, key("k"), writer).ok())[0]).To(And(HaveKeyWithValue("status", 200.0), HaveKeyWithValue(slotID, made), Not(HaveKey("slot"))))
		})
	})

	Describe("of webhooks", func() {
		BeforeEach(func(ctx SpecContext) { s = newResourceSite(ctx) })

		It("shows only what it made", func() {
			const secretURL = "https://example.org/hook?key=hidden"
			created := s.do("POST", hookPath, hookBody(fields{"webhookUrl": secretURL}), key("k"), writer)
			id := created.created(hookID)
			path := hookPath + "/" + id
			Expect(created.json()).To(HaveKey("secret"))
			expectNoBody(s.do("POST", hookPath, hookBody(fields{"webhookUrl": secretURL}), key("k"), writer))
			expectNoBody(s.do("PATCH", path, `{}`, writer))
			expectNoBody(s.do("PATCH", path, `{"description":"x"}`, writer))
			expectNoBody(s.do("PUT", path, hookBody(fields{"webhookUrl": secretURL, "fields": []string{}, "description": "", "extensions": fields{}}), writer))
			rotated := s.do("POST", path+"/rotate-secret", "", writer).ok()
			Expect(rotated.json()).To(And(HaveLen(2), HaveKey("secret"), HaveKey("previousSecretUntil")))

			event := eventPath + "/" + s.do("POST", eventPath, eventBody(fields{"description": "hidden"})).created(eventID)
			expectNoBody(s.do("PATCH", event, `{"isEnabled":false}`, writer))
			Expect(s.do("GET", event, "").json()).To(HaveKeyWithValue("isEnabled", false))
		})
	})

	It("repeats a delivery and does not show its attempts", func(ctx SpecContext) {
		s, log := newDeliverySite(ctx, "Cluster")
		hook := s.do("POST", hookPath, hookBody()).created(hookID)
		d := newDelivery(hook, "e1", delivery.Failed, time.Date(2031, 3, 1, 9, 0, 0, 0, time.UTC))
		log.add(d)
		for _, path := range []string{hookPath + "/" + hook + "/delivery/" + d.ID + "/redeliver", "/delivery/" + d.ID + "/redeliver"} {
			sent := s.do("POST", path, "", writer)
			Expect(sent.status).To(Equal(http.StatusAccepted), sent.body)
			Expect(sent.json()).To(And(HaveKeyWithValue("deliveryId", d.ID), HaveKeyWithValue("status", "pending"), HaveKeyWithValue("attempts", BeEmpty()), Not(HaveKey("subject"))))
			Expect(s.do("POST", path, "").json()).To(And(HaveKeyWithValue("attempts", HaveLen(1)), HaveKey("subject")))
		}
	})
})

var _ = Describe("A patch without fields", func() {
	onBoth("changes nothing", func(newSite func(context.Context, ...wrapper) site) {
		It("of any record", func(ctx SpecContext) {
			s := newSite(ctx)
			for segment, body := range map[string]string{
				slotPath: slotBody(9), groupPath: `{"name":"n","status":"active"}`, feedPath: `{"resourceId":"` + vet + `"}`,
			} {
				created := s.do("POST", segment, body, caller("maker"))
				Expect(created.status).To(Equal(http.StatusCreated), created.body)
				path := created.header.Get("Location")
				for _, patch := range []string{`{}`, `{"updatedAt":"2001-01-01T00:00:00Z","createdAt":null}`} {
					patched := s.do("PATCH", path, patch, caller("other"), key(uuid.NewString())).ok()
					Expect(patched.body).To(Equal(created.body), segment)
					Expect(patched.header.Get("ETag")).To(Equal(created.header.Get("ETag")))
				}
				Expect(s.do("PATCH", path, `{}`, ifMatch(`"7-x"`)).status).To(Equal(http.StatusPreconditionFailed))
				Expect(s.do("PATCH", path, `{"x":1}`).errs()).To(Equal([]string{"pointer /x unknown_field"}))
			}
		})

		It("also not the owner of a feed", func(ctx SpecContext) {
			s := newSite(ctx)
			feed := s.do("POST", feedPath, `{"resourceId":"`+vet+`"}`, caller("leaver"))
			path := feedPath + "/" + feed.created(feedID)
			calendar := func() int {
				return s.do("GET", feed.text("url"), "", caller("nobody"), with("Accept", "text/calendar")).status
			}
			s.do("PATCH", path, `{}`, caller("no-list")).ok()
			Expect(calendar()).To(Equal(http.StatusOK), "with the rights of the owner")
			ended.Store("leaver", true)
			DeferCleanup(func() { ended.Delete("leaver") })
			s.do("PATCH", path, `{}`, caller("stayer")).ok()
			Expect(calendar()).To(Equal(http.StatusNotFound))
			s.do("PATCH", path, `{"description":""}`, caller("stayer")).ok()
			Expect(calendar()).To(Equal(http.StatusOK))
		})
	})
})
