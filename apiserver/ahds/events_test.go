package ahds_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/access/gate/gatetest"
	"github.com/paddock-health/paddock/apiserver/ahds"
	"github.com/paddock-health/paddock/apiserver/ahds/slot"
	"github.com/paddock-health/paddock/apiserver/events"
	"github.com/paddock-health/paddock/apiserver/events/eventstest"
	"github.com/paddock-health/paddock/apiserver/settings"
	"github.com/paddock-health/paddock/apiserver/store"
)

// newSource makes the events of a site. Webhooks get some types of events.
func newSource(siteID string, eventTypes ...string) *events.Source {
	return &events.Source{
		SiteID:   siteID,
		Mappings: map[string]events.Mapping{slot.Type: {Created: "appointment.created", Updated: "appointment.updated"}},
		KindOf:   func(string) *events.Kind { return ahds.AppointmentKind },
		Targets: func(eventType string) ([]string, error) {
			for _, wanted := range eventTypes {
				if wanted == eventType {
					return []string{"hook-of-" + eventType}, nil
				}
			}
			return nil, nil
		},
		Restricts: func(recordType string, body store.Body) bool {
			return recordType == "Practitioner" && body.MetaOffset > 0 && strings.HasPrefix(string(body.JSON[body.MetaOffset:]), `"security"`)
		},
	}
}

// eventSite is a site whose events are recorded, those of both servers by one recorder each.
type eventSite struct {
	site
	recorders [replicas]*eventstest.Recorder
}

func newEventSite(ctx context.Context, newSite func(context.Context, ...wrapper) site, eventTypes ...string) eventSite {
	GinkgoHelper()
	s := eventSite{site: newSite(ctx)}
	source := newSource(s.id, eventTypes...)
	for i := range replicas {
		s.recorders[i] = eventstest.Record(s.stores[i])
		openSites[i].Store(s.id, ahds.DataStore{
			Settings: settings.Settings{ID: s.id}, BaseURL: s.bases[i], Store: gatetest.WithEvents(noRecords{s.recorders[i]}, source), Events: source,
		})
	}
	return s
}

// made returns the envelopes of the events that writes made.
func (s eventSite) made() []document {
	GinkgoHelper()
	var all []document
	for _, recorder := range s.recorders {
		for _, made := range recorder.Made() {
			var envelope document
			Expect(json.Unmarshal([]byte(made.Text), &envelope)).To(Succeed(), made.Text)
			all = append(all, envelope)
		}
	}
	return all
}

const acceptPath = "/event"

func eventIDs(a answer) []string {
	GinkgoHelper()
	Expect(a.status).To(Equal(http.StatusAccepted), a.body)
	var said struct {
		EventID string
		Data    []struct{ EventID string }
	}
	a.decode(&said)
	if said.EventID != "" {
		return []string{said.EventID}
	}
	var ids []string
	for _, each := range said.Data {
		ids = append(ids, each.EventID)
	}
	return ids
}

var _ = Describe("Events in", func() {
	onBoth("POST …/event", func(newSite func(ctx context.Context, wrap ...wrapper) site) {
		It("accepts an event once, whoever repeats it", func(ctx SpecContext) {
			s := newEventSite(ctx, newSite, "consult.created")
			body := `{"eventId":"Case 1"}`
			Expect(s.do("POST", acceptPath, body).errs()).To(ConsistOf("pointer /eventId invalid_value", "pointer /type missing_field", "pointer /data missing_field"))

			body = `{"eventId":"case/1","type":"consult.created","subject":"Consult/1","occurredAt":"2026-03-01T09:30:00+10:00","changedFields":["a"],"data":{"b":1.50,"a":{"x":"é"}}}`
			Expect(eventIDs(s.do("POST", acceptPath, body))).To(Equal([]string{"case/1"}))
			Expect(s.made()).To(Equal([]document{{
				"id": "case/1", "type": "consult.created", "timestamp": "2026-03-01T09:30:00+10:00", "siteId": s.id, "subject": "Consult/1", "sequence": 1.0,
				"changedFields": []any{"a"}, "data": map[string]any{"b": 1.5, "a": map[string]any{"x": "é"}},
			}}))
			Expect(s.recorders[0].Made()[0].Event.Targets).To(Equal([]string{"hook-of-consult.created"}))

			same := `{"data": {"a":{"x":"\u00e9"}, "b":1.50}, "occurredAt":"2026-03-01T09:30:00+10:00","changedFields":["a"],"type":"consult.created","subject":"Consult/1","eventId":"case/1"}`
			again, err := s.send(1, "POST", acceptPath, same)
			Expect(err).NotTo(HaveOccurred())
			Expect(eventIDs(again)).To(Equal([]string{"case/1"}))
			for _, other := range []string{
				strings.Replace(body, "1.50", "1.5", 1), strings.Replace(body, "Consult/1", "Consult/2", 1),
				strings.Replace(body, "consult.created", "consult.updated", 1), strings.Replace(body, `["a"]`, `["b"]`, 1), strings.Replace(body, "+10:00", "Z", 1),
			} {
				refused := s.do("POST", acceptPath, other)
				Expect(refused.status).To(Equal(http.StatusConflict), other)
				Expect(refused.text("code")).To(Equal("id_taken"))
				Expect(refused.text("detail")).To(ContainSubstring("case/1"))
			}
			Expect(eventIDs(s.do("POST", acceptPath, strings.Replace(body, "case/1", "CASE/1", 1)))).To(Equal([]string{"CASE/1"}), "ids differ by case")
			Expect(s.made()).To(HaveLen(2))
		})

		It("accepts batches, of new and known events", func(ctx SpecContext) {
			s := newEventSite(ctx, newSite, "product.created")
			one := func(id string) string {
				return fmt.Sprintf(`{"eventId":%q,"type":"product.created","data":{"id":%q}}`, id, id)
			}
			Expect(eventIDs(s.do("POST", acceptPath, "["+one("b")+"]"))).To(Equal([]string{"b"}))
			ids := eventIDs(s.do("POST", acceptPath, "["+one("a")+","+one("b")+`,{"type":"product.created","data":{}},`+one("c")+","+one("a")+"]"))
			Expect(ids).To(HaveLen(5))
			Expect([]string{ids[0], ids[1], ids[3], ids[4]}).To(Equal([]string{"a", "b", "c", "a"}))
			Expect(uuid.Validate(ids[2])).To(Succeed())
			var order []any
			for _, envelope := range s.made() {
				order = append(order, envelope["id"])
			}
			Expect(order).To(Equal([]any{"b", "a", ids[2], "c"}))

			refused := s.do("POST", acceptPath, "["+one("d")+`,{"eventId":"a","type":"product.created","data":{"id":"other"}},{"eventId":"b","type":"product.created","data":{}}]`)
			Expect(refused.status).To(Equal(http.StatusConflict))
			if s.stores[0].Atomic() {
				Expect(refused.text("detail")).To(And(ContainSubstring(`"a", "b"`), Not(ContainSubstring(`"d"`))))
				Expect(s.made()).To(HaveLen(4), "all or none")
			} else {
				Expect(s.made()).To(HaveLen(5), "one after the other")
			}
			Expect(eventIDs(s.do("POST", acceptPath, "["+one("d")+"]"))).To(Equal([]string{"d"}))
			Expect(s.made()).To(HaveLen(5))

			var many []string
			for i := range 500 {
				many = append(many, one(fmt.Sprint("many-", i)))
			}
			batch := "[" + strings.Join(many, ",") + "]"
			Expect(eventIDs(s.do("POST", acceptPath, batch))).To(HaveLen(500))
			Expect(eventIDs(s.do("POST", acceptPath, batch))).To(HaveLen(500))
			Expect(s.made()).To(HaveLen(505))
		})

		It("accepts as many events in a request as the site allows", func(ctx SpecContext) {
			s := newEventSite(ctx, newSite, "user.created")
			s.setLimits(v1alpha1.Limits{MaxEventsPerRequest: new(int32(2))})
			for contentType, one := range map[string]string{
				"application/json":                   `{"type":"user.created","data":{}}`,
				"application/cloudevents-batch+json": `{"specversion":"1.0","id":"ID","source":"/clinic","type":"user.created","data":{}}`,
			} {
				made := len(s.made())
				batch := func(n int) string {
					var many []string
					for range n {
						many = append(many, strings.Replace(one, "ID", uuid.NewString(), 1))
					}
					return "[" + strings.Join(many, ",") + "]"
				}
				refused := s.do("POST", acceptPath, batch(3), with("Content-Type", contentType))
				Expect(refused.status).To(Equal(http.StatusBadRequest), contentType)
				Expect(refused.errs()).To(ConsistOf("pointer  out_of_range"), contentType)
				Expect(refused.body).To(ContainSubstring("the array has 3 items; send 1 to 2"), contentType)
				Expect(s.made()).To(HaveLen(made), contentType)
				Expect(eventIDs(s.do("POST", acceptPath, batch(2), with("Content-Type", contentType)))).To(HaveLen(2), contentType)
				Expect(s.made()).To(HaveLen(made+2), contentType)
			}
		})

		It("finds all faults at once", func(ctx SpecContext) {
			s := newEventSite(ctx, newSite)
			for body, errs := range map[string][]string{
				`[]`:   {"pointer  out_of_range"},
				`null`: {"pointer  wrong_type"},
				`[{"type":"user.created","data":{}},{"type":"user.deleted","data":[],"x":1,"subject":""},7]`: {"pointer /2 wrong_type"},
				`[{"type":"user.created","data":{}},{"type":"user.deleted","data":[],"x":1,"subject":""}]`: {
					"pointer /1/type invalid_value", "pointer /1/data wrong_type", "pointer /1/x unknown_field", "pointer /1/subject invalid_value",
				},
				`{"type":"user.created","data":{"a":1,"a":2}}`:                                                           {"pointer /data/a unparseable_json"},
				`[{"type":"user.created","data":{"a":1,"a":2}}]`:                                                         {"pointer /0/data/a unparseable_json"},
				`{"type":"user.created","data":{},"occurredAt":"2026-03-01T09:30:00","changedFields":[1,""]}`:            {"pointer /occurredAt invalid_value", "pointer /changedFields/0 wrong_type", "pointer /changedFields/1 invalid_value"},
				`[{"eventId":"x","type":"user.created","data":{}},{"eventId":"x","type":"user.created","data":{"a":1}}]`: {"pointer /1/eventId invalid_value"},
				`{"type":"user.created","data":{"a":"` + strings.Repeat("x", 256<<10) + `"}}`:                            {"pointer /data too_long"},
				`{"eventId":"` + strings.Repeat("x", 129) + `","type":"user.created","data":{}}`:                         {"pointer /eventId invalid_value"},
				"[" + strings.Repeat(`{"type":"user.created","data":{}},`, 500) + `{"type":"user.created","data":{}}]`:   {"pointer  out_of_range"},
				`[{"type":"user.created","data":` + strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70) + `}]`:   {"pointer /0/data too_deep"},
			} {
				refused := s.do("POST", acceptPath, body)
				Expect(refused.status).To(Equal(http.StatusBadRequest), body)
				Expect(refused.errs()).To(ConsistOf(errs), "%.200s", body)
			}
			Expect(s.do("POST", acceptPath, strings.Repeat(" ", 5<<20)).status).To(Equal(http.StatusRequestEntityTooLarge))
			Expect(s.do("POST", acceptPath, `{}`, with("Content-Type", "text/plain")).status).To(Equal(http.StatusUnsupportedMediaType))
			Expect(s.do("POST", acceptPath, `{}`, with("X-Caller", "no-create")).status).To(Equal(http.StatusForbidden))
			Expect(s.do("GET", acceptPath, "").status).To(Equal(http.StatusMethodNotAllowed))
			Expect(s.do("POST", acceptPath+"?x=1", `{}`).errs()).To(ConsistOf("parameter x unknown_parameter"))
		})

		It("repeats a request with an Idempotency-Key", func(ctx SpecContext) {
			s := newEventSite(ctx, newSite, "user.created")
			key := with("Idempotency-Key", "k1")
			body := `[{"type":"user.created","data":{"n":1}},{"type":"user.created","data":{"n":2}}]`
			first := eventIDs(s.do("POST", acceptPath, body, key))
			Expect(first[0]).NotTo(Equal(first[1]))
			Expect(eventIDs(s.do("POST", acceptPath, body, key))).To(Equal(first))
			for _, other := range []string{`{"type":"user.created","data":{"n":1}}`, `[{"type":"user.created","data":{"n":1}}]`, `{"eventId":"e","type":"user.created","data":{"n":1}}`} {
				refused := s.do("POST", acceptPath, other, key)
				Expect(refused.status).To(Equal(http.StatusUnprocessableEntity), other)
			}
			named := `[{"eventId":"n1","type":"user.created","data":{}},{"eventId":"n2","type":"user.created","data":{}}]`
			Expect(eventIDs(s.do("POST", acceptPath, named, with("Idempotency-Key", "k2")))).To(Equal([]string{"n1", "n2"}))
			Expect(s.do("POST", acceptPath, strings.Replace(named, "n2", "n3", 1), with("Idempotency-Key", "k2")).status).To(Equal(http.StatusUnprocessableEntity))
			Expect(eventIDs(s.do("POST", acceptPath, body, key, with("X-Caller", "another")))).NotTo(Equal(first), "keys are the caller's own")
			Expect(s.made()).To(HaveLen(6))
		})

		It("accepts an event that many send at once as one", func(ctx SpecContext) {
			s := newEventSite(ctx, newSite, "user.created")
			var clients sync.WaitGroup
			for i := range 16 {
				clients.Go(func() {
					defer GinkgoRecover()
					a, err := s.send(i%replicas, "POST", acceptPath, `[{"eventId":"a","type":"user.created","data":{}},{"eventId":"b","type":"user.created","data":{}}]`)
					Expect(err).NotTo(HaveOccurred())
					Expect(a.status).To(Equal(http.StatusAccepted), a.body)
				})
			}
			clients.Wait()
			Expect(s.made()).To(HaveLen(2))
		})

		It("remembers events until they are purged, and shows them nowhere", func(ctx SpecContext) {
			s := newEventSite(ctx, newSite, "user.created")
			body := `{"eventId":"once","type":"user.created","data":{"name":"a name"}}`
			Expect(s.do("POST", acceptPath, body).status).To(Equal(http.StatusAccepted))
			for _, path := range []string{"/availability-slot", "/eventgroup"} {
				Expect(s.do("GET", path, "").ids("")).To(BeEmpty())
			}
			page, err := s.stores[0].Search(ctx, store.Query{Types: []string{"Event"}, Access: store.Access{"Event": store.All{}}, Count: 10})
			Expect(err).NotTo(HaveOccurred())
			Expect(page.Records).To(HaveLen(1))
			Expect(string(page.Records[0].Body.JSON)).NotTo(ContainSubstring("a name"), "the data is with the deliveries")
			_, err = s.stores[0].Write(ctx, []store.Op{{Kind: store.Purge, Key: page.Records[0].Key}})
			Expect(err).NotTo(HaveOccurred())
			Expect(s.do("POST", acceptPath, body).status).To(Equal(http.StatusAccepted))
			Expect(s.made()).To(HaveLen(2))
		})

		It("makes events of bookings", func(ctx SpecContext) {
			s := newEventSite(ctx, newSite, "appointment.created", "appointment.updated")
			id := s.do("POST", slotPath, slotBody(9)).created(slotID)
			at := slotPath + "/" + id
			Expect(s.do("PATCH", at, `{"notes":"free"}`).status).To(Equal(http.StatusOK))
			Expect(s.do("POST", at+"/hold", "").status).To(Equal(http.StatusOK))
			Expect(s.made()).To(BeEmpty())
			other := s.do("POST", slotPath, slotBody(11)).created(slotID)
			at = slotPath + "/" + other
			booked := s.do("POST", at+"/book", "")
			Expect(booked.status).To(Equal(http.StatusOK), booked.body)
			Expect(s.made()).To(HaveLen(1))
			created := s.made()[0]
			Expect(created).To(HaveKeyWithValue("type", "appointment.created"))
			Expect(created).To(HaveKeyWithValue("subject", "AvailabilitySlot/"+other))
			Expect(created).To(HaveKeyWithValue("changedFields", BeNil()))
			Expect(created["data"]).To(BeEquivalentTo(map[string]any(s.do("GET", at, "").json())), "data is what a read answers")

			Expect(s.do("PATCH", at, `{"notes":"moved","startAt":"2031-03-01T14:00:00Z","endAt":"2031-03-01T14:45:00Z"}`).status).To(Equal(http.StatusOK))
			moved := s.made()[1]
			Expect(moved).To(HaveKeyWithValue("type", "appointment.updated"))
			Expect(moved).To(HaveKeyWithValue("changedFields", []any{"endAt", "notes", "startAt"}))
			Expect(moved["data"]).To(BeEquivalentTo(map[string]any(s.do("GET", at, "").json())))
			Expect(s.do("PATCH", at, `{"notes":"moved"}`).status).To(Equal(http.StatusOK))
			Expect(s.made()).To(HaveLen(2), "nothing changed")

			Expect(s.do("POST", at+"/release", "").status).To(Equal(http.StatusOK))
			Expect(s.made()[2]).To(And(HaveKeyWithValue("type", "appointment.updated"), HaveKeyWithValue("changedFields", []any{"isBooked"})))
			Expect(s.do("DELETE", at, "").status).To(Equal(http.StatusNoContent))
			Expect(s.made()).To(HaveLen(3))

			Expect(s.do("POST", slotPath, slotBody(13, fields{"isBooked": true})).status).To(Equal(http.StatusCreated))
			Expect(s.made()[3]).To(HaveKeyWithValue("type", "appointment.created"))
		})

		It("refuses what the storage cannot take at the moment", func(ctx SpecContext) {
			s := newEventSite(ctx, func(ctx context.Context, _ ...wrapper) site {
				return newSite(ctx, func(_ int, s store.Store) store.Store { return fullOfEvents{s} })
			}, "user.created")
			refused := s.do("POST", acceptPath, `{"type":"user.created","data":{}}`)
			Expect(refused.status).To(Equal(http.StatusTooManyRequests))
			Expect(refused.text("code")).To(Equal("events_full"))
			Expect(refused.header.Get("Retry-After")).To(Equal("5"))
		})
	})
})

// fullOfEvents is a store in which too many deliveries wait.
type fullOfEvents struct{ store.Store }

func (fullOfEvents) Write(context.Context, []store.Op) ([]store.Result, error) {
	return nil, &store.LimitError{Scope: store.LimitSite, What: store.PendingDeliveries, Max: 1000}
}

var _ = Describe("CloudEvents", func() {
	It("are taken in the structured, batched and binary form", func(ctx SpecContext) {
		s := newEventSite(ctx, func(ctx context.Context, wrap ...wrapper) site { return newSite(ctx, "Postgres", wrap...) }, "user.created")
		id := uuid.NewString()
		one := func(id string) string {
			return fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":"/clinic","type":"user.created","subject":"Practitioner/1","time":"2026-03-01T09:30:00Z","datacontenttype":"application/fhir+json","data":{"n":1}}`, id)
		}
		Expect(eventIDs(s.do("POST", acceptPath, one(id), with("Content-Type", "application/cloudevents+json; charset=utf-8")))).To(Equal([]string{id}))
		batch := eventIDs(s.do("POST", acceptPath, "["+one("1")+","+one(id)+"]", with("Content-Type", "application/cloudevents-batch+json")))
		Expect(batch).To(HaveLen(2))
		Expect(batch[1]).To(Equal(id))
		binary := []option{
			with("ce-specversion", "1.0"), with("ce-id", "1"), with("ce-source", "/clinic"), with("ce-type", "user.created"),
			with("ce-subject", "Practitioner%2F1"), with("ce-time", "2026-03-01T09:30:00Z"), with("Content-Type", "application/json"),
		}
		Expect(eventIDs(s.do("POST", acceptPath, `{"n":1}`, binary...))).To(Equal(batch[:1]), "the same event in another form")
		Expect(s.do("POST", acceptPath, `{"n":2}`, binary...).status).To(Equal(http.StatusConflict))
		Expect(s.made()).To(HaveLen(2))
		Expect(s.made()[1]).To(And(HaveKeyWithValue("subject", "Practitioner/1"), HaveKeyWithValue("timestamp", "2026-03-01T09:30:00Z"), HaveKeyWithValue("data", HaveKeyWithValue("n", 1.0))))
		refused := s.do("POST", acceptPath, `{"n":1}`, append(binary, with("ce-type", "user.removed"))...)
		Expect(refused.errs()).To(ConsistOf("header ce-type invalid_value"))
		refused = s.do("POST", acceptPath, "["+one("2")+`,{"specversion":"1.0","id":"3","source":"/x","type":"a","data":{}}]`, with("Content-Type", "application/cloudevents-batch+json"))
		Expect(refused.errs()).To(ConsistOf("pointer /1/type invalid_value"))
		Expect(s.made()).To(HaveLen(2))
	})
})

var _ = Describe("Event types", func() {
	It("are listed and read", func(ctx SpecContext) {
		s := newSite(ctx, "Postgres")
		list := s.do("GET", "/event-type", "")
		Expect(list.ids("eventType")).To(Equal(events.TypeNames()))
		Expect(list.json()["meta"]).To(BeEquivalentTo(map[string]any{"page": 0.0, "pageSize": 10.0, "total": 10.0, "totalPages": 1.0}))
		for _, name := range events.TypeNames() {
			Expect(s.do("GET", "/event-type/"+name, "").json()).To(And(
				HaveKeyWithValue("eventType", name), HaveKeyWithValue("description", Not(BeEmpty())), HaveKeyWithValue("schema", HaveKey("$schema")), HaveKeyWithValue("example", Not(BeEmpty()))))
		}
		Expect(s.do("GET", "/event-type?page=3&pageSize=3", "").ids("eventType")).To(Equal([]string{"therapeutic.updated"}))
		Expect(s.do("GET", "/event-type?page=9", "").ids("eventType")).To(BeEmpty())
		Expect(s.do("GET", "/event-type?x=1", "").errs()).To(ConsistOf("parameter x unknown_parameter"))
		Expect(s.do("GET", "/event-type?sortOrder=desc", "").errs()).To(ConsistOf("parameter sortOrder unknown_parameter"))
		unknown := s.do("GET", "/event-type/user.create", "")
		Expect(unknown.status).To(Equal(http.StatusNotFound))
		Expect(unknown.text("detail")).To(ContainSubstring("user.created"))
		Expect(s.do("GET", "/event-type", "", with("X-Caller", "no-list")).status).To(Equal(http.StatusForbidden))
		Expect(s.do("GET", "/event-type/user.created", "", with("X-Caller", "no-get")).status).To(Equal(http.StatusForbidden))
	})
})

var _ = Describe("The clearance of a webhook", Serial, func() {
	It("is given by callers who see all records themselves", func(ctx SpecContext) {
		s := newResourceSite(ctx)
		hook := fields{"eventType": "user.created", "webhookUrl": "https://example.org/hook", "isActive": true}
		refuse := func(a answer) {
			GinkgoHelper()
			Expect(a.status).To(Equal(http.StatusForbidden), a.body)
			Expect(a.text("detail")).To(ContainSubstring("privileged"))
		}
		refuse(s.do("POST", hookPath, bodyOf(hook, fields{"clearance": "privileged"})))
		plain := s.do("POST", hookPath, bodyOf(hook))
		id := plain.created(hookID)
		Expect(plain.json()).NotTo(HaveKey("clearance"))
		at := hookPath + "/" + id
		refuse(s.do("PATCH", at, `{"clearance":"privileged"}`))
		Expect(s.do("PATCH", at, `{"clearance":"secret"}`).errs()).To(ConsistOf("pointer /clearance invalid_value"))

		cleared.Store(true)
		DeferCleanup(func() { cleared.Store(false) })
		Expect(s.do("PATCH", at, `{"clearance":"privileged"}`).json()).To(HaveKeyWithValue("clearance", "privileged"))
		cleared.Store(false)
		refuse(s.do("PATCH", at, `{"webhookUrl":"https://example.org/elsewhere"}`))
		refuse(s.do("POST", at+"/rotate-secret", ""))
		Expect(s.do("PATCH", at, `{"clearance":"privileged"}`).status).To(Equal(http.StatusOK), "nothing changes")
		put := s.do("PUT", at, bodyOf(hook, fields{"webhookUrl": "https://example.org/elsewhere", "fields": []string{}, "description": "", "extensions": fields{}}))
		Expect(put.status).To(Equal(http.StatusOK), put.body)
		Expect(put.json()).To(Not(HaveKey("clearance")), "a PUT that leaves it out takes it away")
	})
})
