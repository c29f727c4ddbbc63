package ahds_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func key(value string) option { return with("Idempotency-Key", value) }

var _ = Describe("A request that is repeated", func() {
	onBoth("happens once", func(newSite func(context.Context, ...wrapper) site) {
		var s site
		BeforeEach(func(ctx SpecContext) { s = newSite(ctx) })

		It("by the id that the client chose", func() {
			id := uuid.NewString()
			body := slotBody(9, fields{slotID: id, "extensions": fields{"a": 1}})
			created := s.do("POST", slotPath, body)
			Expect(created.status).To(Equal(http.StatusCreated), created.body)
			again := s.do("POST", slotPath, body)
			Expect(again.status).To(Equal(http.StatusOK))
			Expect(again.body).To(Equal(created.body))
			Expect(again.header.Get("Location")).To(Equal(created.header.Get("Location")))

			By("as other JSON of the same value")
			spaced := strings.Replace(body, `{"a":1}`, `{ "\u0061": 1 }`, 1)
			Expect(spaced).NotTo(Equal(body))
			Expect(s.do("POST", slotPath, spaced).ok().body).To(Equal(created.body))
			Expect(s.do("POST", slotPath, strings.Replace(body, `{"a":1}`, `{"a":1.0}`, 1)).status).To(Equal(http.StatusConflict))

			By("as it was answered first, whatever became of the record")
			Expect(s.do("PATCH", slotPath+"/"+id, `{"notes":"changed"}`).status).To(Equal(http.StatusOK))
			again = s.do("POST", slotPath, body)
			Expect(again.status).To(Equal(http.StatusOK))
			Expect(again.body).To(Equal(created.body))

			By("with other content it is a conflict")
			other := s.do("POST", slotPath, slotBody(10, fields{slotID: id}))
			Expect(other.status).To(Equal(http.StatusConflict))
			Expect(other.json()).To(HaveKeyWithValue("code", "id_taken"))
		})

		It("by its Idempotency-Key: creations", func() {
			body := slotBody(9, fields{"isBooked": true})
			created := s.do("POST", slotPath, body, key("one"))
			Expect(created.status).To(Equal(http.StatusCreated), created.body)
			for range 3 {
				again := s.do("POST", slotPath, body, key("one"))
				Expect(again.status).To(Equal(http.StatusOK), again.body)
				Expect(again.body).To(Equal(created.body))
			}
			By("without it, it is another request, which loses")
			Expect(s.do("POST", slotPath, body).status).To(Equal(http.StatusConflict))
			By("the same key of somebody else is another key")
			Expect(s.do("POST", slotPath, slotBody(10), key("one"), with("X-Caller", "other")).status).To(Equal(http.StatusCreated))
			By("for another request it is refused")
			for _, other := range []answer{
				s.do("POST", slotPath, slotBody(11), key("one")), s.do("POST", slotPath, slotBody(9, fields{"isBooked": true, slotID: uuid.NewString()}), key("one")),
				s.do("POST", groupPath, `{"name":"a","status":"active"}`, key("one")),
			} {
				Expect(other.status).To(Equal(http.StatusUnprocessableEntity), other.body)
				Expect(other.json()).To(HaveKeyWithValue("code", "idempotency_key_reused"))
			}
			By("changes of the record do not free it")
			path := slotPath + "/" + created.text(slotID)
			Expect(s.do("PATCH", path, `{"isBooked":false}`).status).To(Equal(http.StatusOK))
			Expect(s.do("POST", slotPath, body, key("one")).body).To(Equal(created.body))
			By("deleting the record does")
			Expect(s.do("DELETE", path, "").status).To(Equal(http.StatusNoContent))
			Expect(s.do("POST", slotPath, body, key("one")).status).To(Equal(http.StatusCreated))
		})

		It("by its Idempotency-Key: changes", func() {
			path := slotPath + "/" + s.do("POST", slotPath, slotBody(9)).created(slotID)
			booked := s.do("PATCH", path, `{"isBooked":true}`, key("book"))
			Expect(booked.status).To(Equal(http.StatusOK), booked.body)
			for range 2 {
				again := s.do("PATCH", path, `{"isBooked":true}`, key("book"))
				Expect(again.status).To(Equal(http.StatusOK), again.body)
				Expect(again.body).To(Equal(booked.body))
				Expect(again.header.Get("ETag")).To(Equal(booked.header.Get("ETag")))
				Expect(s.do("PATCH", path, `{"notes":"later"}`).status).To(Equal(http.StatusOK))
			}
			Expect(s.do("GET", path, "").text("notes")).To(Equal("later"))
			Expect(s.do("PATCH", path, `{"isBooked":false}`, key("book")).status).To(Equal(http.StatusUnprocessableEntity))
			Expect(s.do("PATCH", path, `{"isBooked":true}`, key("other")).status).To(Equal(http.StatusConflict))

			By("a replacement")
			whole := s.do("GET", path, "").body
			first, second := strings.Replace(whole, `"later"`, `"first"`, 1), strings.Replace(whole, `"later"`, `"second"`, 1)
			replaced := s.do("PUT", path, first, key("put"))
			Expect(replaced.status).To(Equal(http.StatusOK), replaced.body)
			s.do("PATCH", path, `{"notes":"later"}`).ok()
			Expect(s.do("PUT", path, first, key("put")).body).To(Equal(replaced.body))
			Expect(s.do("GET", path, "").text("notes")).To(Equal("later"))
			Expect(s.do("PUT", path, second, key("put")).status).To(Equal(http.StatusUnprocessableEntity))

			By("not with the key of the creation")
			path = slotPath + "/" + s.do("POST", slotPath, slotBody(15), key("create")).created(slotID)
			for _, method := range []string{"PATCH", "PUT"} {
				Expect(s.do(method, path, s.do("GET", path, "").body, key("create")).status).To(Equal(http.StatusUnprocessableEntity), method)
			}
			s.do("PATCH", path, `{"notes":"changed"}`, key("change")).ok()
			Expect(s.do("POST", path+"/book", "", key("create")).status).To(Equal(http.StatusUnprocessableEntity))
			s.do("POST", slotPath, slotBody(15), key("create")).ok()

			By("a hold, with its token")
			path = slotPath + "/" + s.do("POST", slotPath, slotBody(12)).created(slotID)
			held := s.do("POST", path+"/hold", `{"ttlSeconds":60}`, key("hold"))
			Expect(held.status).To(Equal(http.StatusOK), held.body)
			Expect(s.do("POST", path+"/hold", `{"ttlSeconds":60}`, key("hold")).body).To(Equal(held.body))
			Expect(s.do("POST", path+"/book", `{"ttlSeconds":60}`, key("hold")).status).To(Equal(http.StatusBadRequest))
			Expect(s.do("POST", path+"/book", `{}`, key("hold")).status).To(Equal(http.StatusUnprocessableEntity))
		})

		It("for a day, and as long as a record remembers", func() {
			DeferCleanup(func() { clockOffset.Store(0) })
			path := slotPath + "/" + s.do("POST", slotPath, slotBody(9)).created(slotID)
			first := s.do("PATCH", path, `{"notes":"first"}`, key("first"))
			for i := range 7 {
				Expect(s.do("PATCH", path, fmt.Sprintf(`{"notes":"%d"}`, i), key(fmt.Sprint(i))).status).To(Equal(http.StatusOK))
			}
			Expect(s.do("PATCH", path, `{"notes":"first"}`, key("first")).body).To(Equal(first.body))
			clockOffset.Store(int64(25 * time.Hour))
			Expect(s.do("PATCH", path, `{"notes":"next"}`, key("next")).status).To(Equal(http.StatusOK))
			Expect(s.do("PATCH", path, `{"notes":"first"}`, key("first")).text("notes")).To(Equal("first"))
			Expect(s.do("GET", path, "").text("notes")).To(Equal("first"))
		})

		It("when it is raced with itself", func() {
			var group sync.WaitGroup
			answers := make([]answer, 32)
			for i := range answers {
				group.Go(func() {
					defer GinkgoRecover()
					var err error
					answers[i], err = s.send(i%replicas, "POST", slotPath, slotBody(9, fields{"isBooked": true}), key("raced"))
					Expect(err).NotTo(HaveOccurred())
				})
			}
			group.Wait()
			statuses := map[int]int{}
			for _, a := range answers {
				statuses[a.status]++
				Expect(a.text(slotID)).To(Equal(answers[0].text(slotID)), a.body)
			}
			Expect(statuses).To(Equal(map[int]int{http.StatusCreated: 1, http.StatusOK: len(answers) - 1}))
		})

		It("is refused with a key that is none", func() {
			for _, bad := range []string{"", "a b", "é", string(make([]byte, 256))} {
				r := func(r *http.Request) { r.Header["Idempotency-Key"] = []string{bad} }
				if bad != "" && bad[0] == 0 {
					r = func(r *http.Request) { r.Header["Idempotency-Key"] = []string{fmt.Sprintf("%0256d", 0)} }
				}
				Expect(s.do("POST", slotPath, slotBody(9), r).errs()).To(Equal([]string{"header Idempotency-Key invalid_header"}))
			}
			twice := func(r *http.Request) { r.Header["Idempotency-Key"] = []string{"a", "b"} }
			Expect(s.do("POST", slotPath, slotBody(9), twice).errs()).To(Equal([]string{"header Idempotency-Key invalid_header"}))
		})
	})
})
