package ahds_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/ahds"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster/deliveries"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/queue"
)

// refusing is a sender whose receivers fail each event for good.
type refusing struct{}

func (refusing) Attempt(context.Context, string, store.AcceptedEvent, int) (delivery.Outcome, error) {
	return delivery.Outcome{Status: delivery.Failed, Attempt: delivery.Attempt{At: time.Now(), Reason: delivery.ReasonConnection}}, nil
}

func (refusing) After(state delivery.State, _ delivery.Attempt) delivery.State { return state }

func (refusing) Ordered(string) bool { return false }

// newStreamSite opens a site whose events are relayed by a process that delivers.
func newStreamSite(ctx context.Context, engine string) site {
	GinkgoHelper()
	s, resources := newSite(ctx, engine), newResourceSite(ctx)
	for i := range replicas {
		known, _ := openSites[i].Load(s.id)
		opened := known.(ahds.DataStore)
		found, _ := openSites[i].Load(resources.id)
		with := found.(ahds.DataStore)
		records := s.stores[i].(interface {
			Deliveries() delivery.Log
			Tail() delivery.Tail
		})
		opened.Deliveries, opened.Tail = records.Deliveries(), records.Tail()
		opened.WebhookEvents, opened.Webhooks, opened.Privileged = with.WebhookEvents, with.Webhooks, with.Privileged
		openSites[i].Store(s.id, opened)
	}
	running, stop := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	DeferCleanup(func() {
		stop()
		ended.Wait()
	})
	if records, ok := s.stores[0].(*postgres.Store); ok {
		q, err := queue.New(databases[0], queue.Options{Breaker: refusing{}})
		Expect(err).NotTo(HaveOccurred())
		q.Add(records, refusing{})
		ended.Go(func() { _ = q.Run(running) })
		return s
	}
	runner, err := deliveries.New(controlPlane, deliveries.Options{
		Namespace: s.id, Shards: 1, Open: func(namespace, _ string) (deliveries.Target, bool) { return refusing{}, namespace == s.id },
	})
	Expect(err).NotTo(HaveOccurred())
	ended.Go(func() { runner.Run(running) })
	return s
}

// streamServer serves replica 0. timeout limits its requests other than streams; zero sets no limit.
func streamServer(s site, streams ahds.Streams, timeout time.Duration) (base string) {
	GinkgoHelper()
	server := httptest.NewUnstartedServer(newHandler(0, streams))
	server.Config.ReadTimeout, server.Config.WriteTimeout = timeout, timeout
	server.Start()
	DeferCleanup(server.Close)
	return server.URL + "/site/" + s.id + "/ahds/v1"
}

// stream is an open stream of deliveries.
type stream struct {
	cancel context.CancelFunc

	mu    sync.Mutex
	text  strings.Builder
	ended bool
}

// listen opens a stream.
func listen(path string, options ...option) *stream {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	Expect(err).NotTo(HaveOccurred())
	for _, change := range options {
		change(r)
	}
	var res *http.Response
	Eventually(func() error { // a server with a short timeout may close the connection before it has the request
		var err error
		res, err = client.Do(r) //nolint:bodyclose // below, at its end
		return err
	}).Should(Succeed())
	Expect(res.StatusCode).To(Equal(http.StatusOK))
	Expect(res.Header.Get("Content-Type")).To(Equal("text/event-stream"))
	st := &stream{cancel: cancel}
	go func() {
		defer res.Body.Close()
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			st.mu.Lock()
			st.text.WriteString(lines.Text() + "\n")
			st.mu.Unlock()
		}
		st.mu.Lock()
		defer st.mu.Unlock()
		st.ended = true
	}()
	return st
}

// ask sends a request that is to be refused: a stream that opens all the same ends soon.
func ask(method, path string, options ...option) answer {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	limit := func(r *http.Request) { *r = *r.WithContext(ctx) }
	return site{}.do(method, path, "", append(options, limit)...)
}

func (st *stream) read() string {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.text.String()
}

func (st *stream) isEnded() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.ended
}

// streamed is an event of a stream.
type streamed struct {
	ID, EventID, EventType, Subject, AcceptedAt, Body string
}

func (st *stream) deliveries() []streamed {
	GinkgoHelper()
	found := []streamed{}
	for block := range strings.SplitSeq(st.read(), "\n\n") {
		id, data, ok := strings.Cut(block, "\nevent: delivery\ndata: ")
		if !ok {
			continue
		}
		d := streamed{}
		Expect(json.Unmarshal([]byte(data), &d)).To(Succeed(), block)
		d.ID = strings.TrimPrefix(id, "id: ")
		found = append(found, d)
	}
	return found
}

func (st *stream) events() []string {
	GinkgoHelper()
	ids := []string{}
	for _, d := range st.deliveries() {
		ids = append(ids, d.EventID)
	}
	return ids
}

// accept has the storage of a site accept an event for a webhook.
func accept(ctx context.Context, s site, replica int, hook, id string, restricted bool) {
	GinkgoHelper()
	head := `{"id":"` + id + `",` + "\n" + ` "sequence":`
	e := store.Event{
		ID: id, Type: "user.created", Subject: "Practitioner/" + id, Targets: []string{hook}, Restricted: restricted,
		Envelope: store.Envelope{JSON: []byte(head + `,"data":{"kept":"<é>","secret":true}}`), SequenceOffset: len(head)},
	}
	op := store.Op{Kind: store.Put, Key: store.Key{Type: "Event", ID: id}, Method: store.MethodPost, Body: store.Body{JSON: []byte(`{}`)}}
	op.Events = func(store.Change) []store.Event { return []store.Event{e} }
	_, err := s.stores[replica].Write(ctx, []store.Op{op})
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("A stream of deliveries", func() {
	for _, engine := range engines {
		Describe("(storage: "+engine+")", func() {
			var s site
			var hook, path string
			BeforeEach(func(ctx SpecContext) {
				s = newStreamSite(ctx, engine)
				hook = s.do("POST", hookPath, hookBody(fields{"fields": []string{"kept"}})).created(hookID)
				path = hookPath + "/" + hook + "/delivery/stream"
			})

			It("has what the webhook is sent, in order, and continues behind Last-Event-ID", func(ctx SpecContext) {
				other := s.do("POST", hookPath, hookBody()).created(hookID)
				accept(ctx, s, 0, hook, "before", false)
				Eventually(func() []string { return s.do("GET", hookPath+"/"+hook+"/delivery?status=failed", "").ids("eventId") }).Within(30 * time.Second).Should(Equal([]string{"before"}))
				base := streamServer(s, ahds.Streams{KeepAlive: 300 * time.Millisecond}, time.Second)
				first := listen(base + path)
				Eventually(first.read).Within(30*time.Second).Should(HavePrefix("id: "), "a client that loses this stream at once can continue")
				for i, id := range []string{"e1", "e2", "e3"} {
					accept(ctx, s, i%replicas, hook, id, false)
				}
				accept(ctx, s, 0, other, "others", false)
				Eventually(first.events).Within(30 * time.Second).Should(Equal([]string{"e1", "e2", "e3"}))
				got := first.deliveries()
				Expect(got[0].Body).To(MatchRegexp(`^\{"id":"e1","sequence":[0-9]+,"data":\{"kept":"<é>"\}\}$`), "only the fields of the webhook")
				Expect(got[0]).To(And(HaveField("EventType", "user.created"), HaveField("Subject", "Practitioner/e1"), HaveField("AcceptedAt", HaveSuffix("Z"))))
				Eventually(first.read).Within(30 * time.Second).Should(ContainSubstring(": the stream is alive\nid: "))
				Consistently(first.isEnded, "1500ms").Should(BeFalse(), "the deadlines of the server are for other requests")
				first.cancel()

				accept(ctx, s, 1, hook, "e4", false)
				second := listen(s.bases[1]+path, with("Last-Event-ID", got[1].ID), with("Accept", "text/event-stream"))
				Eventually(second.events).Within(30 * time.Second).Should(Equal([]string{"e3", "e4"}))
				Consistently(second.events, "1500ms").Should(Equal([]string{"e3", "e4"}))
			})

			It("has the data of restricted events for cleared webhooks only, and these for privileged callers", func(ctx SpecContext) {
				plain := s.do("POST", hookPath, hookBody()).created(hookID)
				st := listen(s.bases[0] + hookPath + "/" + plain + "/delivery/stream")
				accept(ctx, s, 0, plain, "r1", true)
				accept(ctx, s, 0, plain, "r2", false)
				Eventually(st.events).Within(30 * time.Second).Should(Equal([]string{"r1", "r2"}))
				Expect(st.deliveries()[0].Body).To(MatchRegexp(`^\{"id":"r1","sequence":[0-9]+\}$`))
				Expect(st.deliveries()[1].Body).To(ContainSubstring(`"secret":true`))

				cleared.Store(true)
				DeferCleanup(func() { cleared.Store(false) })
				Expect(s.do("PATCH", hookPath+"/"+plain, `{"clearance":"privileged"}`).status).To(Equal(http.StatusOK))
				accept(ctx, s, 0, plain, "r3", true)
				Eventually(st.events).Within(30 * time.Second).Should(Equal([]string{"r1", "r2", "r3"}))
				Expect(st.deliveries()[2].Body).To(ContainSubstring(`"secret":true`))
				cleared.Store(false)
				accept(ctx, s, 0, plain, "r4", true)
				Eventually(st.isEnded).Within(30*time.Second).Should(BeTrue(), "the caller is not privileged any more")
				Expect(st.events()).To(HaveLen(3))
				refused := ask("GET", s.bases[0]+hookPath+"/"+plain+"/delivery/stream")
				Expect(refused.status).To(Equal(http.StatusForbidden), refused.body)
				Expect(refused.text("detail")).To(ContainSubstring("privileged"))
			})
		})
	}

	Describe("", func() {
		var s site
		var path string
		BeforeEach(func(ctx SpecContext) {
			s = newStreamSite(ctx, "Postgres")
			path = hookPath + "/" + s.do("POST", hookPath, hookBody()).created(hookID) + "/delivery/stream"
		})

		It("needs the right to create webhooks/deliveries, and ends with it", func() {
			refused := ask("GET", s.bases[0]+path, with("X-Caller", "no-create"))
			Expect(refused.status).To(Equal(http.StatusForbidden), refused.body)
			Expect(refused.text("detail")).To(ContainSubstring("create webhooks/deliveries.paddock.health"))
			Expect(ask("GET", s.bases[0]+path, with("X-Caller", "nobody")).status).To(Equal(http.StatusUnauthorized))
			base := streamServer(s, ahds.Streams{Recheck: 100 * time.Millisecond}, 0)
			st, kept := listen(base+path, with("X-Caller", "temp")), listen(base+path, with("X-Caller", "staff"))
			Consistently(st.isEnded, "500ms").Should(BeFalse())
			ended.Store("temp", true)
			DeferCleanup(func() { ended.Delete("temp") })
			Eventually(st.isEnded).Within(30 * time.Second).Should(BeTrue())
			Expect(kept.isEnded()).To(BeFalse())
			Expect(s.do("DELETE", strings.TrimSuffix(path, "/delivery/stream"), "").status).To(Equal(http.StatusNoContent))
			Eventually(kept.isEnded).Within(30*time.Second).Should(BeTrue(), "the webhook is gone")
		})

		It("is refused beyond the limits, with 429", func() {
			base := streamServer(s, ahds.Streams{PerSite: 2}, 0)
			listen(base + path)
			second := listen(base + path)
			refused := ask("GET", base+path)
			Expect(refused.status).To(Equal(http.StatusTooManyRequests), refused.body)
			Expect(refused.json()).To(HaveKeyWithValue("code", "too_many_requests"))
			Expect(refused.header.Get("Retry-After")).NotTo(BeEmpty())
			second.cancel()
			Eventually(func() int { return ask("HEAD", base+path).status }).Within(30 * time.Second).Should(Equal(http.StatusOK))
			all := streamServer(s, ahds.Streams{All: 1}, 0)
			listen(all + path)
			Expect(ask("GET", all+path).text("detail")).To(ContainSubstring("this server has 1 open streams"))
		})

		It("ends when the server stops", func() {
			stopping := make(chan struct{})
			st := listen(streamServer(s, ahds.Streams{Stopping: stopping}, 0) + path)
			Consistently(st.isEnded, "200ms").Should(BeFalse())
			close(stopping)
			Eventually(st.isEnded).Should(BeTrue())
		})

		It("refuses what it cannot serve", func() {
			Expect(ask("GET", s.bases[0]+path, with("Last-Event-ID", "7")).errs()).To(Equal([]string{"header Last-Event-ID invalid_header"}))
			Expect(ask("GET", s.bases[0]+path+"?from=x").status).To(Equal(http.StatusBadRequest))
			Expect(ask("GET", s.bases[0]+path, with("Accept", "application/json")).status).To(Equal(http.StatusNotAcceptable))
			Expect(s.do("POST", path, "").header.Get("Allow")).To(Equal("GET, HEAD"))
			Expect(ask("HEAD", s.bases[0]+path).status).To(Equal(http.StatusOK))
			known, _ := openSites[0].Load(s.id)
			closed := known.(ahds.DataStore)
			closed.Tail = nil
			openSites[0].Store(s.id, closed)
			Expect(ask("GET", s.bases[0]+path).status).To(Equal(http.StatusServiceUnavailable))
		})
	})
})
