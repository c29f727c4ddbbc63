package ahds_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/ahds"
	"github.com/paddock-health/paddock/apiserver/events/signing"
	"github.com/paddock-health/paddock/apiserver/settings"
	"github.com/paddock-health/paddock/apiserver/webhookstore"
)

const (
	eventPath = "/webhook-event"
	eventID   = "webhookEventId"
	hookPath  = "/webhook"
	hookID    = "webhookId"
)

// cleared is set while callers are privileged.
var cleared atomic.Bool

// newResourceSite opens a site whose custom resources are in a namespace of its own. It
// has no storage of records: it needs none.
func newResourceSite(ctx context.Context) site {
	GinkgoHelper()
	s := site{id: "clinic-" + uuid.NewString()[:8]}
	_, err := clients.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.id}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	objects, err := webhookstore.New(controlPlane, now)
	Expect(err).NotTo(HaveOccurred())
	for i := range replicas {
		s.bases[i] = servers[i].URL + "/site/" + s.id + "/ahds/v1"
		openSites[i].Store(s.id, ahds.DataStore{
			Settings:      settings.Settings{ID: s.id},
			BaseURL:       s.bases[i],
			WebhookEvents: objects.WebhookEvents(s.id), Webhooks: objects.Webhooks(s.id),
			Privileged: func(context.Context) error {
				if cleared.Load() {
					return nil
				}
				return &access.ForbiddenError{Caller: "somebody", Action: access.Action{Verb: "privileged", Group: "r4.fhir.paddock.health", Resource: "patients"}}
			},
		})
		DeferCleanup(func() { openSites[i].Delete(s.id) })
	}
	return s
}

// bodyOf is an object with changes; nil takes a field out.
func bodyOf(all fields, changes ...fields) string {
	GinkgoHelper()
	all = maps.Clone(all)
	for _, change := range changes {
		maps.Copy(all, change)
	}
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	body, err := json.Marshal(all)
	Expect(err).NotTo(HaveOccurred())
	return string(body)
}

func eventBody(changes ...fields) string {
	return bodyOf(fields{"eventType": "user.created", "isEnabled": true}, changes...)
}

func hookBody(changes ...fields) string {
	return bodyOf(fields{"eventType": "user.created", "webhookUrl": "https://example.org/hook", "isActive": true}, changes...)
}

var _ = Describe("Webhook events", func() {
	var s site
	BeforeEach(func(ctx SpecContext) { s = newResourceSite(ctx) })

	It("are created, read, listed, changed, replaced and deleted (contract 4.2)", func() {
		id := uuid.NewString()
		created := s.do("POST", eventPath, eventBody(fields{eventID: id}))
		Expect(created.status).To(Equal(http.StatusCreated), created.body)
		Expect(created.json()).To(Equal(document{
			eventID: id, "eventType": "user.created", "isEnabled": true, "description": "", "extensions": map[string]any{},
			"createdAt": created.text("createdAt"), "updatedAt": created.text("createdAt"),
		}))
		Expect(time.Parse(time.RFC3339, created.text("createdAt"))).To(BeTemporally("~", time.Now(), time.Minute))
		path := eventPath + "/" + id
		Expect(created.header.Get("Location")).To(Equal(s.bases[0] + path))
		for replica := range replicas { // either knows at once
			Expect(s.do("GET", s.bases[replica]+path, "").body).To(Equal(created.body))
			Expect(s.do("GET", s.bases[replica]+eventPath, "").body).To(Equal(`{"data":[` + created.body + `],"meta":{"page":0,"pageSize":10,"total":1,"totalPages":1}}`))
		}
		read := s.do("GET", path, "")
		Expect(read.header.Get("ETag")).To(And(HavePrefix(`"1-`), Equal(created.header.Get("ETag"))))
		Expect(s.do("GET", path, "", with("If-None-Match", read.header.Get("ETag"))).status).To(Equal(http.StatusNotModified))

		By("PATCH: only fields that are given")
		patched := s.do("PATCH", path, `{"description":"<first> & \"only\"","extensions":{"a":{"b":1},"c":null}}`)
		Expect(patched.status).To(Equal(http.StatusOK), patched.body)
		Expect(patched.json()).To(And(HaveKeyWithValue("isEnabled", true), HaveKeyWithValue("description", `<first> & "only"`), HaveKeyWithValue("extensions", map[string]any{"a": map[string]any{"b": 1.0}})))
		Expect(patched.header.Get("ETag")).To(HavePrefix(`"2-`))
		Expect(patched.text("updatedAt") > created.text("updatedAt")).To(BeTrue())
		Expect(patched.text("createdAt")).To(Equal(created.text("createdAt")))
		Expect(s.do("GET", path, "").body).To(Equal(patched.body))

		By("what changes nothing keeps the version and the time")
		same := s.do("PATCH", path, `{"isEnabled":true}`, mergePatch)
		Expect(same.body).To(Equal(patched.body))
		Expect(same.header.Get("ETag")).To(Equal(patched.header.Get("ETag")))

		By("PUT: all fields, and what was read can be put back")
		Expect(s.do("PUT", path, `{"eventType":"user.updated"}`).errs()).To(ConsistOf(
			"pointer /isEnabled missing_field", "pointer /description missing_field", "pointer /extensions missing_field"))
		Expect(s.do("PUT", path, patched.body).body).To(Equal(patched.body))
		replaced := s.do("PUT", path, strings.Replace(patched.body, "user.created", "consult.updated", 1), ifMatch(patched.header.Get("ETag")))
		Expect(replaced.status).To(Equal(http.StatusOK), replaced.body)
		Expect(replaced.text("eventType")).To(Equal("consult.updated"))
		lost := s.do("PUT", path, patched.body, ifMatch(patched.header.Get("ETag")))
		Expect(lost.status).To(Equal(http.StatusPreconditionFailed))
		Expect(lost.header.Get("ETag")).To(Equal(replaced.header.Get("ETag")))
		Expect(s.do("DELETE", path, "", ifMatch(patched.header.Get("ETag"))).status).To(Equal(http.StatusPreconditionFailed))

		By("DELETE: for good")
		Expect(s.do("DELETE", path, "", ifMatch(replaced.header.Get("ETag"))).status).To(Equal(http.StatusNoContent))
		Expect(s.do("GET", path, "").status).To(Equal(http.StatusNotFound))
		Expect(s.do("DELETE", path, "").status).To(Equal(http.StatusNotFound))
		Expect(s.do("PATCH", path, `{}`).status).To(Equal(http.StatusNotFound))
		Expect(s.do("GET", eventPath, "").ids(eventID)).To(BeEmpty())
		again := s.do("POST", eventPath, eventBody(fields{eventID: id}))
		Expect(again.status).To(Equal(http.StatusCreated))
		Expect(again.header.Get("ETag")).NotTo(Equal(created.header.Get("ETag")), "another one had it")
	})

	DescribeTable("are refused with what is wrong where (contract 2.2)",
		func(change fields, want ...string) {
			a := s.do("POST", eventPath, eventBody(change))
			Expect(a.status).To(Equal(http.StatusBadRequest), a.body)
			Expect(a.errs()).To(ConsistOf(want))
		},
		Entry("webhookEventId: a UUID", fields{eventID: "x"}, "pointer /webhookEventId invalid_value"),
		Entry("webhookEventId: a string", fields{eventID: 1}, "pointer /webhookEventId wrong_type"),
		Entry("eventType: required", fields{"eventType": nil}, "pointer /eventType missing_field"),
		Entry("eventType: one of ten", fields{"eventType": "user.deleted"}, "pointer /eventType invalid_value"),
		Entry("eventType: a string", fields{"eventType": raw("{}")}, "pointer /eventType wrong_type"),
		Entry("isEnabled: required", fields{"isEnabled": nil}, "pointer /isEnabled missing_field"),
		Entry("isEnabled: not null", fields{"isEnabled": raw("null")}, "pointer /isEnabled missing_field"),
		Entry("isEnabled: a boolean", fields{"isEnabled": "true"}, "pointer /isEnabled wrong_type"),
		Entry("description: a string", fields{"description": 1}, "pointer /description wrong_type"),
		Entry("description: 10,000 characters at most", fields{"description": strings.Repeat("é", 10001)}, "pointer /description too_long"),
		Entry("extensions: an object", fields{"extensions": raw("[]")}, "pointer /extensions wrong_type"),
		Entry("extensions: 16 KiB at most", fields{"extensions": fields{"a": strings.Repeat("x", 16<<10)}}, "pointer /extensions too_long"),
		Entry("extensions: numbers that are kept", fields{"extensions": raw(`{"a":[12345678901234567890]}`)}, "pointer /extensions/a/0 out_of_range"),
		Entry("nothing else", fields{"enabled": true}, "pointer /enabled unknown_field"),
		Entry("all at once", fields{"eventType": "x", "isEnabled": raw("null"), "webhookUrl": "y"},
			"pointer /eventType invalid_value", "pointer /isEnabled missing_field", "pointer /webhookUrl unknown_field"),
	)

	It("are taken at their bounds", func() {
		for _, change := range []fields{
			{"isEnabled": false},
			{"description": strings.Repeat("é", 10000)},
			{"description": raw("null"), "extensions": raw("null")},
			{"extensions": fields{"a": strings.Repeat("x", 16<<10-len(`{"a":""}`))}},
			{"extensions": raw(`{"n":[0,-1,1.5,0.1,1e300,1.0],"null":null,"text":"<&>\u2028","":{"apiVersion":"v1","kind":"Secret"}}`)},
			{"createdAt": "2001-01-01T00:00:00Z", "updatedAt": 1}, // the service's own
		} {
			a := s.do("POST", eventPath, eventBody(change))
			Expect(a.status).To(Equal(http.StatusCreated), a.body)
			Expect(s.do("GET", a.header.Get("Location"), "").body).To(MatchJSON(a.body))
			if sent, ok := change["extensions"].(json.RawMessage); ok && string(sent) != "null" {
				Expect(json.Marshal(a.json()["extensions"])).To(MatchJSON(sent))
			}
		}
		large := s.do("POST", eventPath, eventBody(fields{"extensions": raw(`{"n":[9007199254740993,-9223372036854775808]}`)}))
		Expect(large.body).To(ContainSubstring("[9007199254740993,-9223372036854775808]"))
		for _, eventType := range []string{
			"appointment.created", "appointment.updated", "product.created", "product.updated", "user.created", "user.updated",
			"consult.created", "consult.updated", "therapeutic.created", "therapeutic.updated",
		} {
			Expect(s.do("POST", eventPath, eventBody(fields{"eventType": eventType})).created(eventID)).NotTo(BeEmpty())
		}
	})

	It("are listed by their parameters (contract 4.2)", func() {
		var ids []string
		for i, change := range []fields{
			{"description": "beta Straße"}, {"isEnabled": false, "description": "Alpha"}, {"eventType": "consult.created"}, {"isEnabled": false, "description": "gamma"},
		} {
			change[eventID] = fmt.Sprintf("0198c4f2-7d1e-7c3a-9b5f-%012d", i)
			ids = append(ids, s.do("POST", eventPath, eventBody(change)).created(eventID))
		}
		s.do("PATCH", eventPath+"/"+ids[1], `{"extensions":{"changed":true}}`).ok()
		for query, want := range map[string][]int{
			"": {0, 1, 2, 3}, "isEnabled=true": {0, 2}, "isEnabled=false": {1, 3}, "eventType=consult.created": {2}, "eventType=user.created": {0, 1, 3}, "eventType=user.updated": {},
			"description=": {0, 1, 2, 3}, "description=A": {0, 1, 3}, "description=STRASSE": {0}, "description=%25": {},
			"page=0&pageSize=10&sortOrder=asc": {0, 1, 2, 3}, "pageSize=1": {0}, "pageSize=100": {0, 1, 2, 3}, "page=1&pageSize=3": {3}, "page=2&pageSize=3": {},
			"page=9007199254740991&pageSize=100": {}, "sortOrder=desc": {3, 2, 1, 0}, "sortBy=createdAt&sortOrder=desc&pageSize=1": {3},
			"sortBy=description": {2, 1, 0, 3}, "sortBy=description&sortOrder=desc": {3, 0, 1, 2}, "sortBy=updatedAt&sortOrder=desc&pageSize=1": {1},
			"isEnabled=false&description=gam&eventType=user.created": {3},
		} {
			chosen := []string{}
			for _, at := range want {
				chosen = append(chosen, ids[at])
			}
			Expect(s.do("GET", eventPath+"?"+query, "").ids(eventID)).To(Equal(chosen), query)
		}
		Expect(s.do("GET", eventPath+"?pageSize=3&page=9", "").json()).To(Equal(document{"data": []any{}, "meta": map[string]any{"page": 9.0, "pageSize": 3.0, "total": 4.0, "totalPages": 2.0}}))
		for query, want := range map[string][]string{
			"page=-1": {"page out_of_range"}, "pageSize=0": {"pageSize out_of_range"}, "pageSize=101": {"pageSize out_of_range"}, "pageSize=ten&page=1.5": {"pageSize out_of_range", "page out_of_range"},
			"sortBy=eventType": {"sortBy invalid_value"}, "sortOrder=ASC": {"sortOrder invalid_value"}, "eventType=user": {"eventType invalid_value"}, "isEnabled=1": {"isEnabled invalid_value"},
			"isActive=true": {"isActive unknown_parameter"}, "page=1&page=1": {"page repeated_parameter"},
		} {
			refused := s.do("GET", eventPath+"?"+query, "")
			Expect(refused.status).To(Equal(http.StatusBadRequest))
			for i := range want {
				want[i] = "parameter " + want[i]
			}
			Expect(refused.errs()).To(ConsistOf(want), query)
		}
	})

	It("happen once when they are repeated", func() {
		id := uuid.NewString()
		first := s.do("POST", eventPath, eventBody(fields{eventID: id}))
		Expect(first.created(eventID)).To(Equal(id))
		again := s.do("POST", eventPath, eventBody(fields{eventID: strings.ToUpper(id)}))
		Expect(again.status).To(Equal(http.StatusOK))
		Expect(again.body).To(Equal(first.body))
		other := s.do("POST", eventPath, eventBody(fields{eventID: id, "isEnabled": false}))
		Expect(other.status).To(Equal(http.StatusConflict))
		Expect(other.text("code")).To(Equal("id_taken"))

		By("by a key")
		keyed := s.do("POST", eventPath, eventBody(), key("k1"))
		Expect(keyed.status).To(Equal(http.StatusCreated), keyed.body)
		repeated := s.do("POST", eventPath, eventBody(), key("k1"))
		Expect(repeated.status).To(Equal(http.StatusOK))
		Expect(repeated.body).To(Equal(keyed.body))
		for _, body := range []string{eventBody(fields{"isEnabled": false}), eventBody(fields{eventID: uuid.NewString()})} {
			Expect(s.do("POST", eventPath, body, key("k1")).status).To(Equal(http.StatusUnprocessableEntity))
		}
		Expect(s.do("POST", eventPath, eventBody(), key("k1"), with("X-Caller", "another")).status).To(Equal(http.StatusCreated), "keys are each caller's own")
		path := eventPath + "/" + keyed.text(eventID)
		patched := s.do("PATCH", path, `{"extensions":{"n":1}}`, key("k2"), ifMatch(keyed.header.Get("ETag")))
		Expect(patched.status).To(Equal(http.StatusOK), patched.body)
		Expect(s.do("PATCH", path, `{"extensions":{"n":1}}`, key("k2"), ifMatch(keyed.header.Get("ETag"))).body).To(Equal(patched.body))
		Expect(s.do("PATCH", path, `{"extensions":{"n":2}}`, key("k2")).status).To(Equal(http.StatusUnprocessableEntity))
		whole := eventBody(fields{"description": "whole", "extensions": fields{}})
		replaced := s.do("PUT", path, whole, key("k3"), ifMatch(patched.header.Get("ETag")))
		Expect(replaced.status).To(Equal(http.StatusOK), replaced.body)
		Expect(s.do("PUT", path, whole, key("k3"), ifMatch(patched.header.Get("ETag"))).body).To(Equal(replaced.body))
		Expect(s.do("PUT", path, eventBody(fields{"description": "other", "extensions": fields{}}), key("k3")).status).To(Equal(http.StatusUnprocessableEntity))
	})

	It("are created once as other JSON of the same value", func() {
		body := eventBody(fields{eventID: uuid.NewString(), "extensions": fields{"a": 1}})
		created := s.do("POST", eventPath, body)
		Expect(created.status).To(Equal(http.StatusCreated), created.body)
		Expect(s.do("POST", eventPath, strings.Replace(body, `{"a":1}`, `{ "\u0061": 1 }`, 1)).ok().body).To(Equal(created.body))
		Expect(s.do("POST", eventPath, strings.Replace(body, `{"a":1}`, `{"a":2}`, 1)).status).To(Equal(http.StatusConflict))

		By("not as what became of it")
		id := created.created(eventID)
		changed := s.do("PATCH", eventPath+"/"+id, `{"description":"changed"}`).ok().json()
		for _, own := range []string{"createdAt", "updatedAt"} {
			delete(changed, own)
		}
		again, err := json.Marshal(changed)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.do("POST", eventPath, string(again)).status).To(Equal(http.StatusConflict))
	})

	It("do not use the Idempotency-Key of a patch without fields", func() {
		path := eventPath + "/" + s.do("POST", eventPath, eventBody()).created(eventID)
		for _, patch := range []string{`{}`, `{"updatedAt":"2001-01-01T00:00:00Z"}`} {
			s.do("PATCH", path, patch, key("k")).ok()
		}
		changed := s.do("PATCH", path, `{"description":"x"}`, key("k")).ok()
		Expect(s.do("PATCH", path, `{"description":"x"}`, key("k")).ok().body).To(Equal(changed.body))
		Expect(s.do("PATCH", path, `{}`, key("k")).status).To(Equal(http.StatusUnprocessableEntity))
	})

	It("are created again with an Idempotency-Key of yesterday", func() {
		first := s.do("POST", eventPath, eventBody(), key("k")).created(eventID)
		DeferCleanup(func() { clockOffset.Store(0) })
		clockOffset.Store(int64(25 * time.Hour))
		other := eventBody(fields{"description": "today"})
		second := s.do("POST", eventPath, other, key("k")).created(eventID)
		Expect(second).NotTo(Equal(first))
		repeated := s.do("POST", eventPath, other, key("k"))
		Expect(repeated.status).To(Equal(http.StatusOK), repeated.body)
		Expect(repeated.text(eventID)).To(Equal(second))
		Expect(s.do("POST", eventPath, eventBody(), key("k")).status).To(Equal(http.StatusUnprocessableEntity))
		clockOffset.Store(int64(50 * time.Hour))
		Expect(s.do("POST", eventPath, eventBody(), key("k")).created(eventID)).NotTo(BeElementOf(first, second))
	})

	It("need the rights of the custom resource", func() {
		path := eventPath + "/" + s.do("POST", eventPath, eventBody()).created(eventID)
		for verb, ask := range map[string]func(caller option) answer{
			"list": func(o option) answer { return s.do("GET", eventPath, "", o) }, "create": func(o option) answer { return s.do("POST", eventPath, eventBody(), o) },
			"get": func(o option) answer { return s.do("GET", path, "", o) }, "update": func(o option) answer { return s.do("PUT", path, eventBody(), o) },
			"patch": func(o option) answer { return s.do("PATCH", path, "{}", o) }, "delete": func(o option) answer { return s.do("DELETE", path, "", o) },
		} {
			forbidden := ask(with("X-Caller", "no-"+verb))
			Expect(forbidden.status).To(Equal(http.StatusForbidden), verb)
			Expect(forbidden.text("detail")).To(ContainSubstring(verb + " webhookevents.paddock.health"))
			Expect(ask(with("X-Caller", "nobody")).status).To(Equal(http.StatusUnauthorized))
			Expect(ask(with("X-Caller", "stranger")).status).To(Equal(http.StatusForbidden))
		}
		Expect(s.do("TRACE", eventPath, "").status).To(Equal(http.StatusMethodNotAllowed))
		Expect(s.do("POST", path, "{}").header.Get("Allow")).To(Equal("DELETE, GET, HEAD, PATCH, PUT"))
		Expect(s.do("GET", eventPath+"/x", "").status).To(Equal(http.StatusBadRequest))
		Expect(s.do("GET", path+"?pretty=true", "").status).To(Equal(http.StatusBadRequest))
	})
})

var _ = Describe("Webhooks", func() {
	var s site
	BeforeEach(func(ctx SpecContext) { s = newResourceSite(ctx) })

	It("tell their secret once, and rotate it", func(ctx SpecContext) {
		created := s.do("POST", hookPath, hookBody(fields{"fields": []string{"id", "name.first"}}))
		id := created.created(hookID)
		secret := created.text("secret")
		Expect(signing.CheckShared(secret)).To(Succeed())
		want := created.json()
		delete(want, "secret")
		Expect(want).To(Equal(document{
			hookID: id, "eventType": "user.created", "webhookUrl": "https://example.org/hook", "isActive": true, "fields": []any{"id", "name.first"},
			"description": "", "extensions": map[string]any{}, "createdAt": created.text("createdAt"), "updatedAt": created.text("createdAt"),
		}))
		path := hookPath + "/" + id
		Expect(s.do("GET", path, "").json()).To(Equal(want))

		By("what was answered can be put back")
		Expect(s.do("PUT", path, created.body).json()).To(Equal(want))

		By("rotating keeps the one before for a day")
		rotated := s.do("POST", path+"/rotate-secret", "")
		Expect(rotated.status).To(Equal(http.StatusOK), rotated.body)
		Expect(rotated.text("secret")).NotTo(Equal(secret))
		until, err := time.Parse(time.RFC3339, rotated.text("previousSecretUntil"))
		Expect(err).NotTo(HaveOccurred())
		Expect(until).To(BeTemporally("~", time.Now().Add(24*time.Hour), time.Minute))
		Expect(s.do("GET", path, "").json()).To(And(Not(HaveKey("secret")), HaveKey("previousSecretUntil")))
		Expect(s.do("POST", path+"/rotate-secret", "", ifMatch(created.header.Get("ETag"))).status).To(Equal(http.StatusPreconditionFailed))
		Expect(s.do("POST", path+"/rotate-secret", "", key("k")).errs()).To(Equal([]string{"header Idempotency-Key invalid_header"}))
		Expect(s.do("POST", path+"/rotate-secret", `{"now":true}`).status).To(Equal(http.StatusBadRequest))
		Expect(s.do("POST", path+"/rotate-secret", "", with("X-Caller", "no-update")).status).To(Equal(http.StatusForbidden))
		Expect(s.do("POST", hookPath+"/"+uuid.NewString()+"/rotate-secret", "").status).To(Equal(http.StatusNotFound))

		By("both are Secrets that the Webhook owns")
		list, err := clients.CoreV1().Secrets(s.id).List(ctx, metav1.ListOptions{FieldSelector: "type=" + v1alpha1.SecretTypeWebhook})
		Expect(err).NotTo(HaveOccurred())
		var held []string
		for _, item := range list.Items {
			Expect(item.OwnerReferences).To(HaveLen(1))
			Expect(item.OwnerReferences[0].Name).To(Equal(id))
			held = append(held, string(item.Data[v1alpha1.WebhookSecretKey]))
		}
		Expect(held).To(ContainElements(secret, rotated.text("secret")))
		again := s.do("POST", hookPath, hookBody(fields{"fields": []string{"id", "name.first"}, hookID: id}))
		Expect(again.status).To(Equal(http.StatusOK))
		Expect(again.json()).NotTo(HaveKey("secret"))
	})

	It("keep their URL while they send header fields from a Secret", func(ctx SpecContext) {
		created := s.do("POST", hookPath, hookBody())
		path := hookPath + "/" + created.created(hookID)
		scheme := runtime.NewScheme()
		Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
		objects, err := kube.New(controlPlane, kube.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		setHeaders := func(ref *v1alpha1.WebhookSecretReference) {
			GinkgoHelper()
			object := &v1alpha1.Webhook{}
			Expect(objects.Get(ctx, kube.ObjectKey{Namespace: s.id, Name: created.text(hookID)}, object)).To(Succeed())
			object.Spec.HeadersSecretRef = ref
			Expect(objects.Update(ctx, object)).To(Succeed())
		}
		setHeaders(&v1alpha1.WebhookSecretReference{Name: "headers"})
		for _, url := range []string{
			"https://other.example/hook", "https://example.org:8443/hook", "https://example.org/other", "https://example.org/hook?to=https://other.example", "https://EXAMPLE.org/hook",
		} {
			for method, body := range map[string]string{
				"PATCH": bodyOf(fields{"webhookUrl": url}), "PUT": hookBody(fields{"webhookUrl": url, "fields": []string{}, "description": "", "extensions": fields{}}),
			} {
				refused := s.do(method, path, body)
				Expect(refused.status).To(Equal(http.StatusBadRequest), refused.body)
				Expect(refused.errs()).To(Equal([]string{"pointer /webhookUrl invalid_value"}), method+" "+url)
				Expect(refused.text("detail")).To(And(ContainSubstring("headersSecretRef"), ContainSubstring("kubectl")))
			}
		}
		Expect(s.do("GET", path, "").text("webhookUrl")).To(Equal("https://example.org/hook"))

		By("all else can be changed")
		same := fields{"webhookUrl": "https://example.org/hook", "isActive": false}
		Expect(s.do("PATCH", path, bodyOf(same)).ok().json()).To(HaveKeyWithValue("isActive", false))
		s.do("PUT", path, hookBody(fields{"fields": []string{}, "description": "", "extensions": fields{}})).ok()

		By("without them, the URL too")
		setHeaders(nil)
		Expect(s.do("PATCH", path, `{"webhookUrl":"https://other.example/hook"}`).ok().text("webhookUrl")).To(Equal("https://other.example/hook"))
	})

	DescribeTable("are refused with what is wrong where",
		func(change fields, want ...string) {
			a := s.do("POST", hookPath, hookBody(change))
			Expect(a.status).To(Equal(http.StatusBadRequest), a.body)
			Expect(a.errs()).To(ConsistOf(want))
		},
		Entry("webhookId: a UUID", fields{hookID: "x"}, "pointer /webhookId invalid_value"),
		Entry("eventType: required", fields{"eventType": nil}, "pointer /eventType missing_field"),
		Entry("eventType: one of ten", fields{"eventType": "*"}, "pointer /eventType invalid_value"),
		Entry("webhookUrl: required", fields{"webhookUrl": nil}, "pointer /webhookUrl missing_field"),
		Entry("webhookUrl: a string", fields{"webhookUrl": 1}, "pointer /webhookUrl wrong_type"),
		Entry("webhookUrl: absolute", fields{"webhookUrl": "/hook"}, "pointer /webhookUrl invalid_value"),
		Entry("webhookUrl: https", fields{"webhookUrl": "http://example.org"}, "pointer /webhookUrl invalid_value"),
		Entry("webhookUrl: a host", fields{"webhookUrl": "https:///hook"}, "pointer /webhookUrl invalid_value"),
		Entry("webhookUrl: no user", fields{"webhookUrl": "https://me:secret@example.org/"}, "pointer /webhookUrl invalid_value"),
		Entry("webhookUrl: no fragment", fields{"webhookUrl": "https://example.org/#a"}, "pointer /webhookUrl invalid_value"),
		Entry("webhookUrl: no port above 65535", fields{"webhookUrl": "https://example.org:99999/"}, "pointer /webhookUrl out_of_range"),
		Entry("webhookUrl: no port 0", fields{"webhookUrl": "https://example.org:0/"}, "pointer /webhookUrl out_of_range"),
		Entry("webhookUrl: 2,048 bytes at most", fields{"webhookUrl": "https://example.org/" + strings.Repeat("a", 2048)}, "pointer /webhookUrl too_long"),
		Entry("isActive: required", fields{"isActive": nil}, "pointer /isActive missing_field"),
		Entry("isActive: a boolean", fields{"isActive": 1}, "pointer /isActive wrong_type"),
		Entry("fields: an array", fields{"fields": "id"}, "pointer /fields wrong_type"),
		Entry("fields: of strings, each once, not empty", fields{"fields": []any{"a", 1, "a", ""}},
			"pointer /fields/1 wrong_type", "pointer /fields/2 invalid_value", "pointer /fields/3 invalid_value"),
		Entry("fields: 64 at most", fields{"fields": make([]string, 65)}, "pointer /fields too_long"),
		Entry("extensions: an object", fields{"extensions": true}, "pointer /extensions wrong_type"),
		Entry("nothing else", fields{"isEnabled": true}, "pointer /isEnabled unknown_field"),
	)

	It("are taken at their bounds", func() {
		var names []string
		for i := range 64 {
			names = append(names, fmt.Sprintf("%0128d", i))
		}
		for _, change := range []fields{
			{"isActive": false, "fields": names},
			{"webhookUrl": "https://example.org/" + strings.Repeat("a", 2048-len("https://example.org/"))},
			{"webhookUrl": "https://[2001:db8::1]:8443/a?b=c@d&e=%20"},
			{"webhookUrl": "https://example.org:1/"},
			{"webhookUrl": "https://example.org:65535/"},
			{"webhookUrl": "https://example.org:/"},
			{"fields": raw("null"), "description": raw("null"), "extensions": raw("null")},
			{"description": strings.Repeat("x", 10000)},
		} {
			a := s.do("POST", hookPath, hookBody(change))
			Expect(a.status).To(Equal(http.StatusCreated), a.body)
		}
	})

	It("are listed by their parameters", func() {
		var ids []string
		for i, change := range []fields{
			{"webhookUrl": "https://a.example.org/Hook"}, {"isActive": false, "description": "Alpha"}, {"eventType": "consult.created", "description": "beta"},
		} {
			change[hookID] = fmt.Sprintf("0198c4f2-7d1e-7c3a-9b5f-%012d", i)
			ids = append(ids, s.do("POST", hookPath, hookBody(change)).created(hookID))
		}
		for query, want := range map[string][]int{
			"": {0, 1, 2}, "isActive=true": {0, 2}, "isActive=false": {1}, "eventType=consult.created": {2}, "webhookUrl=A.EXAMPLE": {0}, "webhookUrl=hook": {0, 1, 2},
			"description=a": {1, 2}, "sortBy=description&sortOrder=desc": {2, 1, 0}, "sortBy=updatedAt&pageSize=2&page=1": {2}, "sortBy=createdAt": {0, 1, 2},
		} {
			chosen := []string{}
			for _, at := range want {
				chosen = append(chosen, ids[at])
			}
			found := s.do("GET", hookPath+"?"+query, "")
			Expect(found.ids(hookID)).To(Equal(chosen), query)
			Expect(found.body).NotTo(ContainSubstring("whsec_"))
		}
		for query, want := range map[string]string{
			"isActive=yes": "isActive invalid_value", "eventType=": "eventType invalid_value", "isEnabled=true": "isEnabled unknown_parameter", "sortBy=webhookUrl": "sortBy invalid_value",
			"pageSize=101": "pageSize out_of_range", "page=-1": "page out_of_range",
		} {
			Expect(s.do("GET", hookPath+"?"+query, "").errs()).To(Equal([]string{"parameter " + want}), query)
		}
	})
})
