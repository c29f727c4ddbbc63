package ahds_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/ahds"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
)

// newDeliverySite opens a site whose storage has a delivery log.
func newDeliverySite(ctx context.Context, engine string) (site, *deliveryLog) {
	GinkgoHelper()
	log := &deliveryLog{}
	s := newSite(ctx, engine, func(_ int, behind store.Store) store.Store { return outbox{behind, log} })
	resources := newResourceSite(ctx) // a namespace for its custom resources
	for i := range replicas {
		known, _ := openSites[i].Load(s.id)
		opened := known.(ahds.DataStore)
		found, _ := openSites[i].Load(resources.id)
		with := found.(ahds.DataStore)
		opened.Deliveries = log
		opened.WebhookEvents, opened.Webhooks, opened.Privileged = with.WebhookEvents, with.Webhooks, with.Privileged
		openSites[i].Store(s.id, opened)
	}
	return s, log
}

// newDelivery is a delivery that failed once.
func newDelivery(webhook string, event string, status delivery.Status, accepted time.Time) delivery.Delivery {
	d := delivery.Delivery{
		ID: delivery.DeliveryID(event, webhook), Webhook: webhook, Status: status,
		Event: store.AcceptedEvent{ID: event, Type: "user.created", Subject: "Practitioner/1", Accepted: accepted, Envelope: []byte(`{"data":{"secret":true}}`)},
		Attempts: []delivery.Attempt{{
			At: accepted.Add(time.Second), Duration: 1234567 * time.Microsecond, StatusCode: 500, Reason: delivery.ReasonStatus, Message: "the receiver answered with status 500",
			Response: []byte("oops \xff <\x00>"),
		}},
	}
	if status == delivery.Pending {
		d.NextAttempt = accepted.Add(time.Minute)
	} else {
		d.Finished = accepted.Add(2 * time.Second)
	}
	return d
}

var _ = Describe("Deliveries", func() {
	var (
		s      site
		log    *deliveryLog
		hook   string
		path   string
		at     = time.Date(2031, 3, 1, 9, 0, 0, 0, time.UTC)
		events []string
	)
	BeforeEach(func(ctx SpecContext) {
		s, log = newDeliverySite(ctx, "Cluster")
		hook = s.do("POST", hookPath, hookBody()).created(hookID)
		path = hookPath + "/" + hook
		events = nil
		for i, status := range []delivery.Status{delivery.Delivered, delivery.Pending, delivery.Failed, delivery.Undelivered, delivery.Delivered} {
			events = append(events, fmt.Sprintf("e%d", i))
			log.add(newDelivery(hook, events[i], status, at.Add(time.Duration(i)*time.Hour)))
		}
		log.add(newDelivery(uuid.NewString(), "e0", delivery.Failed, at))
	})

	It("are listed with their attempts, the newest first", func() {
		all := s.do("GET", path+"/delivery?pageSize=2&page=1", "")
		Expect(all.status).To(Equal(http.StatusOK), all.body)
		Expect(all.json()["meta"]).To(Equal(map[string]any{"page": 1.0, "pageSize": 2.0, "total": 5.0, "totalPages": 3.0}))
		first := all.json()["data"].([]any)[0]
		Expect(first).To(Equal(map[string]any{
			"deliveryId": delivery.DeliveryID("e2", hook), "webhookId": hook, "eventId": "e2", "eventType": "user.created", "subject": "Practitioner/1",
			"status": "failed", "acceptedAt": "2031-03-01T11:00:00.000Z", "finishedAt": "2031-03-01T11:00:02.000Z",
			"attempts": []any{map[string]any{
				"at": "2031-03-01T11:00:01.000Z", "reason": "status", "message": "the receiver answered with status 500", "latencyMs": 1234.0, "status": 500.0, "response": "oops \ufffd <\x00>",
			}},
		}))
		for query, want := range map[string][]string{
			"": {"e4", "e3", "e2", "e1", "e0"}, "status=failed": {"e2"}, "status=failed,undelivered": {"e3", "e2"}, "status=pending,pending": {"e1"},
			"from=2031-03-01T11:00:00Z": {"e4", "e3", "e2"}, "to=2031-03-01T11:00:00Z": {"e1", "e0"},
			"from=2031-03-01T12:00:00%2B02:00&to=2031-03-01T12:00:00Z": {"e2", "e1"}, "from=2031-03-01T11:00:00Z&status=delivered": {"e4"}, "from=2032-01-01T00:00:00Z": {},
		} {
			Expect(s.do("GET", path+"/delivery?"+query, "").ids("eventId")).To(Equal(want), query)
		}
		for query, want := range map[string]string{
			"status=lost": "status invalid_value", "status=": "status invalid_value", "status=failed,": "status invalid_value", "from=yesterday": "from invalid_value",
			"sortBy=acceptedAt": "sortBy unknown_parameter", "sortOrder=asc": "sortOrder unknown_parameter", "pageSize=101": "pageSize out_of_range", "until=x": "until unknown_parameter",
		} {
			Expect(s.do("GET", path+"/delivery?"+query, "").errs()).To(Equal([]string{"parameter " + want}), query)
		}
	})

	It("are read one by one, without what was sent", func() {
		one := s.do("GET", path+"/delivery/"+strings.ToUpper(delivery.DeliveryID("e1", hook)), "")
		Expect(one.status).To(Equal(http.StatusOK), one.body)
		Expect(one.json()).To(And(HaveKeyWithValue("status", "pending"), HaveKeyWithValue("nextAttemptAt", "2031-03-01T10:01:00.000Z"), Not(HaveKey("finishedAt"))))
		Expect(one.body).NotTo(ContainSubstring("secret"))
		Expect(s.do("GET", path+"/delivery/"+uuid.NewString(), "").status).To(Equal(http.StatusNotFound))
		Expect(s.do("GET", path+"/delivery/e1", "").errs()).To(Equal([]string{"parameter deliveryId invalid_value"}))
		Expect(s.do("GET", hookPath+"/"+uuid.NewString()+"/delivery", "").status).To(Equal(http.StatusNotFound))
	})

	It("show a record that privacy rules hide to privileged callers only", func() {
		hidden := newDelivery(hook, "e5", delivery.Failed, at.Add(5*time.Hour))
		hidden.Event.Restricted, hidden.Event.Subject = true, "Patient/vip"
		echo := `{"subject":"Patient/vip"}` // of the event
		hidden.Attempts[0].Response = []byte(echo)
		hidden.Attempts = append(hidden.Attempts, delivery.Attempt{
			At: at.Add(6 * time.Hour), Reason: delivery.ReasonConnection, Message: "the connection failed: malformed HTTP response " + strconv.Quote(echo),
		})
		log.add(hidden)
		one := path + "/delivery/" + hidden.ID
		read := func() []string {
			return []string{s.do("GET", path+"/delivery", "").ok().body, s.do("GET", one, "").ok().body, s.do("POST", one+"/redeliver", "").body, s.do("POST", "/delivery/"+hidden.ID+"/redeliver", "").body}
		}
		for _, body := range read() {
			Expect(body).To(And(ContainSubstring(`"eventId":"e5"`), Not(ContainSubstring("vip"))))
		}
		Expect(s.do("GET", one, "").json()["attempts"]).To(Equal([]any{
			map[string]any{"at": "2031-03-01T14:00:01.000Z", "reason": "status", "message": "the receiver answered with status 500", "latencyMs": 1234.0, "status": 500.0},
			map[string]any{"at": "2031-03-01T15:00:00.000Z", "reason": "connection", "message": "the connection failed", "latencyMs": 0.0},
		}))
		Expect(s.do("GET", path+"/delivery", "").body).To(And(ContainSubstring("Practitioner/1"), ContainSubstring("oops")), "other records")
		cleared.Store(true)
		DeferCleanup(func() { cleared.Store(false) })
		for _, body := range read() {
			Expect(body).To(ContainSubstring(`"subject":"Patient/vip"`))
			Expect(strings.Count(body, "vip")).To(Equal(3), "also what the receiver sent")
		}
	})

	It("are sent again, alone", func() {
		for event, base := range map[string]string{"e2": path, "e3": ""} {
			again := s.do("POST", base+"/delivery/"+delivery.DeliveryID(event, hook)+"/redeliver", "")
			Expect(again.status).To(Equal(http.StatusAccepted), again.body)
			Expect(again.json()).To(And(HaveKeyWithValue("eventId", event), HaveKeyWithValue("status", "pending"), HaveKey("nextAttemptAt")))
		}
		Expect(s.do("GET", path+"/delivery?status=pending", "").ids("eventId")).To(Equal([]string{"e3", "e2", "e1"}))
		Expect(s.do("POST", "/delivery/"+uuid.NewString()+"/redeliver", "").status).To(Equal(http.StatusNotFound))
		Expect(s.do("POST", path+"/delivery/"+delivery.DeliveryID("e2", hook)+"/redeliver", `{"now":true}`).errs()).To(Equal([]string{"pointer /now unknown_field"}))
	})

	It("are replayed by range and status", func() {
		for body, want := range map[string]struct {
			count   float64
			pending []string
		}{
			`{"from":"2031-03-01T09:00:00Z"}`:                                                    {2, []string{"e3", "e2", "e1"}},
			`{"from":"2031-03-01T10:00:00Z","to":"2031-03-01T12:00:00Z"}`:                        {1, []string{"e2", "e1"}},
			`{"from":"2031-03-01T09:00:00Z","to":null,"status":"delivered"}`:                     {2, []string{"e4", "e1", "e0"}},
			`{"from":"2031-03-01T11:00:00Z","status":["delivered","undelivered","undelivered"]}`: {2, []string{"e4", "e3", "e1"}},
			`{"from":"2041-03-01T09:00:00Z"}`:                                                    {0, []string{"e1"}},
		} {
			log.mu.Lock()
			before := append([]delivery.Delivery(nil), log.all...)
			log.mu.Unlock()
			replayed := s.do("POST", path+"/replay", body)
			Expect(replayed.status).To(Equal(http.StatusAccepted), replayed.body)
			Expect(replayed.json()).To(Equal(document{"count": want.count, "skipped": 0.0}), body)
			Expect(s.do("GET", path+"/delivery?status=pending", "").ids("eventId")).To(Equal(want.pending), body)
			log.mu.Lock()
			log.all = before
			log.mu.Unlock()
		}
		for body, want := range map[string]string{
			`{}`: "/from missing_field", `{"from":"2031-03-01"}`: "/from invalid_value", `{"from":1}`: "/from wrong_type",
			`{"from":"2031-03-01T09:00:00Z","to":"2031-03-01T09:00:00Z"}`: "/to out_of_range", `{"from":"2031-03-01T09:00:00Z","status":"pending"}`: "/status invalid_value",
			`{"from":"2031-03-01T09:00:00Z","status":[]}`: "/status invalid_value", `{"from":"2031-03-01T09:00:00Z","status":[1]}`: "/status wrong_type",
			`{"from":"2031-03-01T09:00:00Z","all":true}`: "/all unknown_field",
		} {
			Expect(s.do("POST", path+"/replay", body).errs()).To(Equal([]string{"pointer " + want}), body)
		}
	})

	It("are not sent again without their content", func() {
		gone := newDelivery(hook, "e5", delivery.Delivered, at.Add(5*time.Hour))
		gone.Event.Envelope = nil
		log.add(gone)
		Expect(s.do("GET", path+"/delivery/"+gone.ID, "").json()).To(HaveKeyWithValue("status", "delivered"))
		for _, base := range []string{path, ""} {
			again := s.do("POST", base+"/delivery/"+gone.ID+"/redeliver", "")
			Expect(again.status).To(Equal(http.StatusGone), again.body)
			Expect(again.text("code")).To(Equal("content_gone"))
			Expect(again.text("detail")).To(HavePrefix("the content of the delivery is no longer stored"))
		}
		Expect(s.do("POST", path+"/replay", `{"from":"2031-03-01T11:00:00Z","status":"delivered"}`).json()).To(Equal(document{"count": 1.0, "skipped": 1.0}))
		Expect(s.do("GET", path+"/delivery?status=pending", "").ids("eventId")).To(Equal([]string{"e4", "e1"}))
	})

	It("are not sent under an Idempotency-Key", func() {
		one := delivery.DeliveryID("e2", hook)
		for to, body := range map[string]string{
			path + "/test": "", path + "/replay": `{"from":"2031-03-01T09:00:00Z"}`, path + "/delivery/" + one + "/redeliver": "", "/delivery/" + one + "/redeliver": "",
		} {
			Expect(s.do("POST", to, body, key("k")).errs()).To(Equal([]string{"header Idempotency-Key invalid_header"}), to)
		}
		Expect(s.do("GET", path+"/delivery?status=pending", "").ids("eventId")).To(Equal([]string{"e1"}))
	})

	It("need rights of their own", func() {
		id := delivery.DeliveryID("e2", hook)
		for verb, ask := range map[string][]func(option) answer{
			"list": {func(o option) answer { return s.do("GET", path+"/delivery", "", o) }},
			"get":  {func(o option) answer { return s.do("GET", path+"/delivery/"+id, "", o) }},
			"create": {
				func(o option) answer { return s.do("POST", path+"/delivery/"+id+"/redeliver", "", o) },
				func(o option) answer { return s.do("POST", "/delivery/"+id+"/redeliver", "", o) },
				func(o option) answer { return s.do("POST", path+"/replay", `{"from":"2031-03-01T09:00:00Z"}`, o) },
				func(o option) answer { return s.do("POST", path+"/test", "", o) },
			},
		} {
			for _, send := range ask {
				forbidden := send(with("X-Caller", "no-"+verb))
				Expect(forbidden.status).To(Equal(http.StatusForbidden), verb)
				Expect(forbidden.text("detail")).To(ContainSubstring(verb + " webhooks/deliveries.paddock.health"))
				Expect(send(with("X-Caller", "nobody")).status).To(Equal(http.StatusUnauthorized))
			}
		}
		Expect(s.do("GET", path+"/replay", "").header.Get("Allow")).To(Equal("POST"))
	})

	It("are away with the storage", func() {
		known, _ := openSites[0].Load(s.id)
		closed := known.(ahds.DataStore)
		closed.Deliveries = nil
		openSites[0].Store(s.id, closed)
		for _, a := range []answer{
			s.do("GET", path+"/delivery", ""), s.do("POST", path+"/test", ""), s.do("POST", "/delivery/"+uuid.NewString()+"/redeliver", ""),
		} {
			Expect(a.status).To(Equal(http.StatusServiceUnavailable), a.body)
		}
	})
})

var _ = Describe("A test of a webhook", func() {
	for _, engine := range engines {
		It("sends an event of its type to it alone (storage: "+engine+")", func(ctx SpecContext) {
			s, log := newDeliverySite(ctx, engine)
			other := s.do("POST", hookPath, hookBody(fields{"eventType": "consult.updated"})).created(hookID)
			hook := s.do("POST", hookPath, hookBody(fields{"eventType": "consult.updated"})).created(hookID)
			tested := s.do("POST", hookPath+"/"+hook+"/test", "")
			Expect(tested.status).To(Equal(http.StatusAccepted), tested.body)
			Expect(tested.header.Get("Location")).To(HaveSuffix(hookPath + "/" + hook + "/delivery/" + tested.text("deliveryId")))
			queued := s.do("GET", tested.header.Get("Location"), "")
			Expect(queued.json()).To(And(
				HaveKeyWithValue("deliveryId", tested.text("deliveryId")), HaveKeyWithValue("eventId", tested.text("eventId")),
				HaveKeyWithValue("eventType", "consult.updated"), HaveKeyWithValue("status", "pending"),
			))
			Expect(s.do("GET", hookPath+"/"+other+"/delivery", "").ids("eventId")).To(BeEmpty())
			d, err := log.Delivery(ctx, hook, tested.text("deliveryId"))
			Expect(err).NotTo(HaveOccurred())
			sent := answer{body: string(d.Event.Envelope)}.json()
			Expect(sent).To(And(
				HaveKeyWithValue("id", tested.text("eventId")), HaveKeyWithValue("type", "consult.updated"), HaveKeyWithValue("siteId", s.id),
				HaveKeyWithValue("timestamp", d.Event.Accepted.Format(store.EnvelopeTime)), HaveKeyWithValue("sequence", 1.0), HaveKeyWithValue("subject", BeNil()),
				HaveKeyWithValue("changedFields", BeNil()), HaveKeyWithValue("data", HaveKey("practitioner")),
			))
			Expect(s.do("POST", hookPath+"/"+hook+"/test", "").text("eventId")).NotTo(Equal(tested.text("eventId")))
			Expect(s.do("POST", hookPath+"/"+hook+"/test", `{"data":{}}`).status).To(Equal(http.StatusBadRequest))
			Expect(s.do("POST", hookPath+"/"+uuid.NewString()+"/test", "").status).To(Equal(http.StatusNotFound))
		})
	}
})

var _ = Describe("A webhook that the server disabled", func() {
	It("says so, and is enabled by isActive", func(ctx SpecContext) {
		s := newResourceSite(ctx)
		scheme := runtime.NewScheme()
		Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
		objects, err := kube.New(controlPlane, kube.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		for name, enable := range map[string]func(path string, created answer) answer{
			"PATCH": func(path string, _ answer) answer { return s.do("PATCH", path, `{"isActive":true}`) },
			"PUT":   func(path string, created answer) answer { return s.do("PUT", path, created.body) },
			"what is changed, whatever it is": func(path string, _ answer) answer {
				return s.do("PATCH", path, `{"webhookUrl":"https://example.org/other"}`)
			},
		} {
			created := s.do("POST", hookPath, hookBody(fields{"fields": []string{"id"}}))
			path := hookPath + "/" + created.created(hookID)
			object := &v1alpha1.Webhook{}
			Expect(objects.Get(ctx, kube.ObjectKey{Namespace: s.id, Name: created.text(hookID)}, object)).To(Succeed())
			meta.SetStatusCondition(&object.Status.Conditions, metav1.Condition{
				Type: v1alpha1.ConditionDisabled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonGone, Message: "the receiver is gone", ObservedGeneration: 1,
			})
			Expect(objects.Status().Update(ctx, object)).To(Succeed())
			disabled := s.do("GET", path, "")
			Expect(disabled.json()).To(And(HaveKeyWithValue("isActive", true), HaveKeyWithValue("disabledReason", "the receiver is gone"), HaveKey("disabledAt")), name)
			Expect(disabled.header.Get("ETag")).To(Equal(created.header.Get("ETag")))
			Expect(s.do("PATCH", path, `{}`).json()).To(HaveKey("disabledAt"), "nothing was asked for")

			enabled := enable(path, created)
			Expect(enabled.status).To(Equal(http.StatusOK), enabled.body)
			Expect(enabled.json()).NotTo(Or(HaveKey("disabledAt"), HaveKey("disabledReason")), name)
			Expect(s.do("GET", path, "").body).To(Equal(enabled.body), name)
		}
	})
})
