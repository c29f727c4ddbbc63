package move

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/hack/dev/localreceiver"
)

const (
	demo = "/site/demo"
	vet  = "0198c4f2-7d1e-7c3a-9b5f-000000000002"
	room = "0198c4f2-7d1e-7c3a-9b5f-000000000001"
)

// carriedHooks are a webhook whose deliveries end, and one whose deliveries are pending for long.
const carriedHooks = hookOn + `
apiVersion: paddock.health/v1alpha1
kind: Webhook
metadata: {name: done, namespace: demo}
spec: {eventType: user.created, url: "%[1]s/done", active: true, caBundle: %[2]s, timeoutSeconds: 1}
---
apiVersion: paddock.health/v1alpha1
kind: Webhook
metadata: {name: stuck, namespace: demo}
spec: {eventType: user.created, url: "%[3]s/stuck", active: true, caBundle: %[4]s, timeoutSeconds: 1, retry: {delaysSeconds: [3600]}}
`

// carried is what a site has in addition to records with versions, and what a move must carry.
type carried struct {
	prefix string
	// key, keyBody and keyed are an Idempotency-Key, its request and its response.
	key, keyBody, keyed string
	// held is a slot that holdToken holds. calendar is the address of a calendar.
	held, holdToken, calendar string
	// ended and pending are the deliveries of both webhooks, by subject.
	ended, pending map[string]delivered
	// audited are the entries of the audit log about the first practitioner.
	audited []string
}

// delivered is what the AHDS API returns about a delivery.
type delivered struct {
	DeliveryID, EventID, Subject, Status string
	Attempts                             []struct {
		At     time.Time
		Status int
	}
}

// ahds sends a request to the AHDS API.
func ahds(ctx context.Context, method, path, body string, header ...string) response {
	return sendTo(ctx, method, "/ahds/v1"+path, body, header...)
}

// sendTo sends a request with header fields, which are names and values.
func sendTo(ctx context.Context, method, path, body string, header ...string) response {
	request, err := http.NewRequestWithContext(ctx, method, paddock.URLs[0]+demo+path, strings.NewReader(body))
	if err != nil {
		return response{body: err.Error()}
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	got, err := http.DefaultClient.Do(request)
	if err != nil {
		return response{body: err.Error()}
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		return response{body: err.Error()}
	}
	return response{got.StatusCode, got.Header, string(text)}
}

// member returns a member of a JSON object.
func member(text, name string) string {
	GinkgoHelper()
	object := map[string]any{}
	Expect(json.Unmarshal([]byte(text), &object)).To(Succeed(), text)
	return fmt.Sprint(object[name])
}

// deliveriesTo returns the deliveries to a webhook of a namespace whose subjects have a prefix.
func deliveriesTo(ctx context.Context, namespace, webhook, prefix string) map[string]delivered {
	GinkgoHelper()
	got := ahds(ctx, "GET", "/webhook/"+v1alpha1.ResourceID("webhooks", namespace, webhook)+"/delivery?pageSize=100", "")
	Expect(got.status).To(Equal(200), got.body)
	var page struct{ Data []delivered }
	Expect(json.Unmarshal([]byte(got.body), &page)).To(Succeed(), got.body)
	found := map[string]delivered{}
	for _, d := range page.Data {
		if strings.HasPrefix(d.Subject, prefix) {
			Expect(found).NotTo(HaveKey(d.Subject), "one delivery for each event")
			found[d.Subject] = d
		}
	}
	return found
}

// auditOf returns the ids of the entries of the audit log about a record.
func auditOf(ctx context.Context, record string) []string {
	GinkgoHelper()
	got := sendTo(ctx, "GET", "/fhir/AuditEvent?_count=200&entity="+record, "", "Accept", "application/fhir+ndjson")
	Expect(got.status).To(Equal(200), got.body)
	var ids []string
	for line := range strings.Lines(got.body) {
		ids = append(ids, member(line, "id"))
	}
	return ids
}

// practitioner creates a practitioner, which makes an event.
func practitioner(ctx context.Context, id string) {
	GinkgoHelper()
	got := send(ctx, "PUT", paddock.URLs[0]+demo+"/fhir/practitioner/"+id, fmt.Sprintf(`{"resourceType":"Practitioner","id":%q}`, id))
	Expect(got.status).To(Equal(201), got.body)
}

// slotAt returns a slot of an hour that is some days ahead.
func slotAt(days, hour int) string {
	start := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, days).Add(time.Duration(hour) * time.Hour)
	return fmt.Sprintf(`{"startAt":%q,"endAt":%q,"locationId":%q,"resourceId":%q}`, start.Format(time.RFC3339), start.Add(time.Hour).Format(time.RFC3339), room, vet)
}

// prepare makes what a move must carry. Ids begin with the prefix. One of the practitioners is a.
func prepare(ctx context.Context, prefix string, hour int, practitioners ...string) *carried {
	GinkgoHelper()
	c := &carried{prefix: prefix, key: prefix + "-key"}
	c.keyBody = slotAt(2, hour)
	created := ahds(ctx, "POST", "/availability-slot", c.keyBody, "Idempotency-Key", c.key)
	Expect(created.status).To(Equal(201), created.body)
	c.keyed = created.body
	created = ahds(ctx, "POST", "/availability-slot", slotAt(2, hour+1))
	Expect(created.status).To(Equal(201), created.body)
	c.held = member(created.body, "availabilitySlotId")
	held := ahds(ctx, "POST", "/availability-slot/"+c.held+"/hold", `{"ttlSeconds":1800}`)
	Expect(held.status).To(Equal(200), held.body)
	c.holdToken = member(held.body, "holdToken")
	c.calendar = newCalendar(ctx, prefix)

	for _, id := range practitioners {
		practitioner(ctx, prefix+"-"+id)
	}
	Eventually(func(g Gomega) {
		c.ended, c.pending = deliveriesTo(ctx, "demo", "done", "Practitioner/"+prefix), deliveriesTo(ctx, "demo", "stuck", "Practitioner/"+prefix)
		g.Expect(c.ended).To(HaveLen(len(practitioners)))
		g.Expect(c.pending).To(HaveLen(len(practitioners)))
		for _, d := range c.ended {
			g.Expect(d.Status).To(Equal("delivered"))
		}
		for _, d := range c.pending {
			g.Expect(d.Status).To(Equal("pending"))
			g.Expect(d.Attempts).To(HaveLen(1))
		}
	}).WithTimeout(patience).Should(Succeed())
	c.audited = auditOf(ctx, "Practitioner/"+prefix+"-a")
	Expect(c.audited).NotTo(BeEmpty())
	return c
}

// forget removes a record from what must be carried, because it is purged.
func (c *carried) forget(id string) {
	delete(c.ended, "Practitioner/"+c.prefix+"-"+id)
	delete(c.pending, "Practitioner/"+c.prefix+"-"+id)
}

// reuse creates a record whose id was purged. Only the deliveries about the new one must be carried.
func (c *carried) reuse(ctx context.Context, id string) {
	GinkgoHelper()
	c.forget(id)
	practitioner(ctx, c.prefix+"-"+id)
	Eventually(func(g Gomega) {
		ended, pending := deliveriesTo(ctx, "demo", "done", "Practitioner/"+c.prefix+"-"+id), deliveriesTo(ctx, "demo", "stuck", "Practitioner/"+c.prefix+"-"+id)
		g.Expect(ended).To(HaveEach(HaveField("Status", "delivered")))
		g.Expect(pending).To(HaveEach(HaveField("Attempts", HaveLen(1))))
		maps.Copy(c.ended, ended)
		maps.Copy(c.pending, pending)
	}).WithTimeout(patience).Should(Succeed())
}

// check expects that a move has carried all. The audit log and ended deliveries follow the switch.
func (c *carried) check(ctx context.Context) {
	GinkgoHelper()
	again := ahds(ctx, "POST", "/availability-slot", c.keyBody, "Idempotency-Key", c.key)
	Expect(again.status).To(Equal(200), again.body)
	Expect(again.body).To(Equal(c.keyed), "the response to the repeated request")
	taken := ahds(ctx, "POST", "/availability-slot/"+c.held+"/hold", "")
	Expect(taken.status).To(Equal(409), taken.body)
	Expect(member(taken.body, "code")).To(Equal("slot_held"))
	readCalendar(c.calendar)
	Expect(deliveriesTo(ctx, "demo", "stuck", "Practitioner/"+c.prefix)).To(Equal(c.pending), "pending deliveries, with their attempts")
	Expect(deliveriesTo(ctx, "demo", "done", "Practitioner/"+c.prefix)).To(Equal(c.ended), "ended deliveries, with their attempts")
	first := "Practitioner/" + c.prefix + "-a"
	Expect(auditOf(ctx, first)).To(ContainElements(c.audited), "the audit log of "+first)
}

// newCalendar makes a calendar and returns its address.
func newCalendar(ctx context.Context, description string) string {
	GinkgoHelper()
	feed := ahds(ctx, "POST", "/availability-slot-feed", fmt.Sprintf(`{"resourceId":%q,"description":%q}`, vet, description))
	Expect(feed.status).To(Equal(201), feed.body)
	address := member(feed.body, "url")
	readCalendar(address)
	return address
}

// readCalendar reads a calendar by its address, without a token of the cluster.
func readCalendar(address string) {
	GinkgoHelper()
	calendar, err := http.Get(address) //nolint:noctx // API servers that serve calendars respond
	Expect(err).NotTo(HaveOccurred())
	Expect(calendar.Body.Close()).To(Succeed())
	Expect(calendar.StatusCode).To(Equal(200), "the calendar at %s", address)
}

// book takes the slot that was held before the move with the token from then.
func (c *carried) book(ctx context.Context) {
	GinkgoHelper()
	booked := ahds(ctx, "POST", "/availability-slot/"+c.held+"/book", fmt.Sprintf(`{"holdToken":%q}`, c.holdToken))
	Expect(booked.status).To(Equal(200), booked.body)
}

// purge erases a practitioner.
func purge(ctx context.Context, id string) {
	GinkgoHelper()
	got := send(ctx, "POST", paddock.URLs[0]+demo+"/fhir/practitioner/"+id+"/$purge", "")
	Expect(got.status).To(Equal(200), got.body)
}

// expectPurged expects that neither the API nor the tables of a database have a practitioner, nor
// events and deliveries about it.
func expectPurged(ctx context.Context, database, id string) {
	GinkgoHelper()
	Expect(send(ctx, "GET", paddock.URLs[0]+demo+"/fhir/practitioner/"+id, "").status).To(Equal(404))
	for _, webhook := range []string{"done", "stuck"} {
		Expect(deliveriesTo(ctx, "demo", webhook, "Practitioner/"+id)).To(BeEmpty())
	}
	conn := connectTo(ctx, database)
	for _, find := range []string{
		`SELECT count(*) FROM res WHERE id = $1`, `SELECT count(*) FROM hist h WHERE $1 <> '' AND NOT EXISTS (SELECT FROM res r WHERE r.site = h.site AND r.self = h.self)`,
		`SELECT count(*) FROM event WHERE position(convert_to($1, 'UTF8') IN event) > 0 OR position(convert_to($1, 'UTF8') IN envelope) > 0`,
		`SELECT count(*) FROM outbox WHERE position(convert_to($1, 'UTF8') IN event) > 0 OR position(convert_to($1, 'UTF8') IN envelope) > 0`,
	} {
		var rows int
		Expect(conn.QueryRow(ctx, find, id).Scan(&rows)).To(Succeed(), find)
		Expect(rows).To(BeZero(), find)
	}
}

// awaitPast waits until the audit log and ended deliveries have followed.
func awaitPast(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(func() bool {
		status := read(ctx, name).Status
		return status.Phase == v1alpha1.MoveSwitched && status.Copy != nil && status.Copy.Phase == v1alpha1.MoveSwitched && status.Copy.Done
	}).WithTimeout(patience).WithPolling(50*time.Millisecond).Should(BeTrue(), func() string { return describe(ctx, name) })
}

// failFromNow lets a receiver take events before it fails, because a success resets the circuit breaker of its webhook.
// The breaker opens after five failures, for longer after each one.
func failFromNow(ctx context.Context, r *localreceiver.Receiver) {
	GinkgoHelper()
	r.Answer(200)
	awaitHook(ctx, r)
	r.Answer(503)
}

// carriedSpecs begin with storage in the cluster, and end with the database first.
func carriedSpecs() {
	var stuck *localreceiver.Receiver
	var c *carried

	BeforeAll(func(ctx SpecContext) {
		migrate(ctx, "first")
		migrate(ctx, "second")
		receiver.Take()
		receiver.Answer(200)
		stuck = localreceiver.Start()
		DeferCleanup(stuck.Close)
		apply(ctx, fmt.Sprintf(carriedHooks, receiver.URL, receiver.CABundle(), stuck.URL, stuck.CABundle()))
		for _, hook := range []string{"done", "stuck"} {
			kubectl(ctx, "wait", "--for=condition=Active", "--timeout=60s", "-n", "demo", "webhook/"+hook)
		}
		awaitHook(ctx, receiver)
		failFromNow(ctx, stuck)
	})
	AfterAll(func(ctx SpecContext) { kubectl(ctx, "delete", "webhook", "done", "stuck", "-n", "demo") })

	It("moves from the cluster to Postgres, but a record that is purged meanwhile does not", func(ctx SpecContext) {
		Expect(storage(ctx)).To(Equal("Cluster "))
		c = prepare(ctx, "one", 8, "a", "b", "purged")
		held := holdTable(ctx, "first", "res", "SHARE ROW EXCLUSIVE")
		create(ctx, "carries", "first")
		held.blocks(ctx) // the copying API server has read the record
		purge(ctx, "one-purged")
		c.forget("purged")
		held.release(ctx)
		awaitPast(ctx, "carries")
		c.check(ctx)
		expectPurged(ctx, "first", "one-purged")
		decide(ctx, "carries", "Confirm")
		await(ctx, "carries", "Completed")
		Expect(kubectl(ctx, "get", "records.records.paddock.health", "-n", "demo", "-o", "name")).To(BeEmpty())
	})

	It("moves from one database to another, and returns with what came since", func(ctx SpecContext) {
		failFromNow(ctx, stuck)
		d := prepare(ctx, "two", 12, "a", "purged", "late", "reused")
		held := holdTable(ctx, "second", "res", "SHARE ROW EXCLUSIVE")
		create(ctx, "carries-on", "second")
		held.blocks(ctx)
		purge(ctx, "two-purged")
		d.forget("purged")
		held.release(ctx)

		By("purging a record while its deliveries are about to follow")
		awaitPhase(ctx, "carries-on", v1alpha1.MoveSwitching, v1alpha1.MoveForward)
		held = holdTable(ctx, "first", "delivery", "ACCESS EXCLUSIVE")
		awaitPhase(ctx, "carries-on", v1alpha1.MoveSwitched, v1alpha1.MoveForward)
		held.blocks(ctx)
		purge(ctx, "two-late")
		d.forget("late")
		purge(ctx, "two-reused")
		d.reuse(ctx, "reused")
		held.release(ctx)
		awaitPast(ctx, "carries-on")
		c.check(ctx)
		d.check(ctx)
		expectPurged(ctx, "second", "two-purged")
		expectPurged(ctx, "second", "two-late")

		By("returning")
		since := prepare(ctx, "since", 16, "a")
		decide(ctx, "carries-on", "RollBack")
		await(ctx, "carries-on", "RolledBack")
		Expect(storage(ctx)).To(Equal("Postgres first"))
		for _, all := range []*carried{c, d, since} {
			all.check(ctx)
			all.book(ctx)
		}
		expectPurged(ctx, "first", "two-purged")
		expectPurged(ctx, "first", "two-late")
		expectNothing(ctx, "second")
	})
}
