package queue_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/procfs"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/events/signing"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/queue"
)

// BenchmarkDrainHTTPS delivers events that are in the outbox to HTTPS receivers. In the same run a
// loop without Paddock's code sends as many signed requests to the same receivers: each River job
// signs its body with the Standard Webhooks library, posts it and ends. The loop has no outbox, log
// of attempts, order, breaker or settings of webhooks. The processor time is that of this process,
// receivers included, and of the database, until all jobs have ended.
func BenchmarkDrainHTTPS(b *testing.B) {
	for _, webhooks := range []int{1, 10} {
		b.Run(strconv.Itoa(webhooks)+" webhooks", func(b *testing.B) {
			r := newHTTPSReceivers(b, webhooks)
			plain := drainLoop(b, r)
			b.ReportMetric(plain.rate, "loop/s")
			b.ReportMetric(plain.processor(), "loop-µs")
			ours := drainOutbox(b, r)
			b.ReportMetric(ours.rate, "deliveries/s")
			b.ReportMetric(ours.processor(), "µs")
			b.ReportMetric(ours.database, "µs-database")
			b.ReportMetric(plain.database, "loop-µs-database")
			b.ReportMetric(ours.rate/plain.rate, "of-loop")
			b.ReportMetric(plain.processor()/ours.processor(), "of-loop-processor")
		})
	}
}

// drainCost is the cost of a drained queue.
type drainCost struct {
	// rate is the number of requests per second.
	rate float64
	// client and database are the processor time per request, in microseconds.
	client, database float64
}

func (c drainCost) processor() float64 { return c.client + c.database }

// costOf measures a drain from start until all its jobs have ended.
func (r *httpsReceivers) costOf(b *testing.B, pool *pgxpool.Pool, start func()) (c drainCost) {
	r.got.Store(0)
	client, database := processorTime(b)
	c.rate = rate(b, &r.got, start)
	for left := 1; left > 0; time.Sleep(10 * time.Millisecond) {
		const find = `SELECT (SELECT count(*) FROM river_job WHERE finalized_at IS NULL) + (SELECT COALESCE(sum(pending), 0) FROM webhook) + (SELECT COALESCE(sum(deliveries), 0) FROM relayed)`
		if err := pool.QueryRow(b.Context(), find).Scan(&left); err != nil {
			b.Fatal(err)
		}
	}
	clientAfter, databaseAfter := processorTime(b)
	c.client, c.database = (clientAfter-client)*1e6/drained, (databaseAfter-database)*1e6/drained
	return c
}

// processorTime returns the seconds of processor time of this process and of the database.
func processorTime(b *testing.B) (client, database float64) {
	b.Helper()
	all, err := procfs.AllProcs()
	if err != nil {
		b.Fatal(err)
	}
	const userHZ = 100
	for _, process := range all {
		stat, err := process.Stat()
		switch {
		case err != nil: // it has ended
		case stat.PID == os.Getpid():
			client = stat.CPUTime()
		case stat.PID == server.Pid():
			database += stat.CPUTime() + float64(stat.CUTime+stat.CSTime)/userHZ // sessions that have ended
		case stat.PPID == server.Pid():
			database += stat.CPUTime()
		}
	}
	return client, database
}

// drainEnvelope is the JSON of each event.
var drainEnvelope = `{"type":"appointment.created","data":{"resourceType":"Patient","id":"p-1","name":[{"family":"` + strings.Repeat("Okafor", 30) + `"}]},"sequence":}`

// httpsReceivers are receivers of webhooks that count requests.
type httpsReceivers struct {
	servers []*httptest.Server
	secret  string
	got     atomic.Int64
}

func newHTTPSReceivers(b *testing.B, count int) *httpsReceivers {
	r := &httpsReceivers{secret: signing.NewShared()}
	for range count {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			_, _ = io.Copy(io.Discard, request.Body)
			r.got.Add(1)
			w.WriteHeader(http.StatusNoContent)
		}))
		b.Cleanup(server.Close)
		r.servers = append(r.servers, server)
	}
	return r
}

// Webhook implements delivery.Webhooks. The id is the index of the receiver.
func (r *httpsReceivers) Webhook(_ context.Context, id string, _ time.Time) (delivery.Webhook, error) {
	n, err := strconv.Atoi(id)
	if err != nil {
		return delivery.Webhook{}, err
	}
	key, err := signing.ParseKey(r.secret)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.servers[n].Certificate().Raw})
	return delivery.Webhook{ID: id, URL: r.servers[n].URL, Keys: []signing.Key{key}, CABundle: ca, Timeout: 10 * time.Second}, err
}

// Disable implements delivery.Webhooks.
func (r *httpsReceivers) Disable(_ context.Context, webhook delivery.Webhook, _ delivery.Cause, message string) error {
	return fmt.Errorf("webhook %s is disabled: %s", webhook.ID, message)
}

// unordered is a queue.Sender of webhooks without order.
type unordered struct{ delivery.Attempter }

func (unordered) Ordered(string) bool { return false }

// drainOutbox returns the cost of delivering events that are in the outbox.
func drainOutbox(b *testing.B, r *httpsReceivers) drainCost {
	d := newDatabase(b)
	s := d.site()
	targets := make([]string, len(r.servers))
	for n := range targets {
		targets[n] = strconv.Itoa(n)
	}
	for n := 0; n < drained/len(targets); n += 500 {
		events := make([]store.Event, min(500, drained/len(targets)))
		for i := range events {
			events[i] = store.Event{
				ID: fmt.Sprintf("e%d-%d", n, i), Type: "appointment.created", Targets: targets,
				Envelope: store.Envelope{JSON: []byte(drainEnvelope), SequenceOffset: len(drainEnvelope) - 1},
			}
		}
		op := store.Op{Kind: store.Put, Key: store.Key{Type: "Event", ID: events[0].ID}, Method: store.MethodPost, Body: store.Body{JSON: []byte(`{}`)}}
		op.Events = func(store.Change) []store.Event { return events }
		if _, err := s.Write(b.Context(), []store.Op{op}); err != nil {
			b.Fatal(err)
		}
	}
	sender := delivery.NewSender(delivery.SenderConfig{Egress: delivery.Egress{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
	q := newQueue(b, d.pool, queue.Options{})
	q.Add(s, unordered{sender.Site("clinic", r, s.Deliveries())})
	return r.costOf(b, d.pool, func() { run(b, q) })
}

// signedPost are the arguments of a job of the loop.
type signedPost struct {
	ID   string `json:"id"`
	URL  string `json:"url"`
	Body string `json:"body"`
}

func (signedPost) Kind() string { return "post" }

// poster is the worker of the loop.
type poster struct {
	river.WorkerDefaults[signedPost]
	signer *standardwebhooks.Webhook
	client *http.Client
}

// Work implements river.Worker.
func (p *poster) Work(ctx context.Context, job *river.Job[signedPost]) error {
	now := time.Now()
	signature, err := p.signer.Sign(job.Args.ID, now, []byte(job.Args.Body))
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, job.Args.URL, strings.NewReader(job.Args.Body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(standardwebhooks.HeaderWebhookID, job.Args.ID)
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusNoContent {
		return fmt.Errorf("status %d", response.StatusCode)
	}
	return response.Body.Close()
}

// drainLoop returns the cost of the loop. It has as many workers as the queue.
func drainLoop(b *testing.B, r *httpsReceivers) drainCost {
	d := newDatabase(b)
	signer, err := standardwebhooks.NewWebhook(r.secret)
	if err != nil {
		b.Fatal(err)
	}
	roots := x509.NewCertPool()
	for _, server := range r.servers {
		roots.AddCert(server.Certificate())
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig.RootCAs, transport.MaxIdleConnsPerHost, transport.MaxIdleConns = roots, loopWorkers, 0
	b.Cleanup(transport.CloseIdleConnections)
	workers := river.NewWorkers()
	river.AddWorker(workers, &poster{signer: signer, client: &http.Client{Transport: transport}})
	pool, err := pgxpool.New(b.Context(), d.uri)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Workers: workers, Queues: map[string]river.QueueConfig{"q": {MaxWorkers: loopWorkers * len(r.servers)}}, FetchCooldown: 5 * time.Millisecond, ReindexerSchedule: river.NeverSchedule(),
	})
	if err != nil {
		b.Fatal(err)
	}
	for n := 0; n < drained; n += 500 {
		params := make([]river.InsertManyParams, 500)
		for i := range params {
			args := signedPost{ID: strconv.Itoa(n + i), URL: r.servers[i%len(r.servers)].URL, Body: drainEnvelope}
			params[i] = river.InsertManyParams{Args: args, InsertOpts: &river.InsertOpts{Queue: "q"}}
		}
		if err := pgx.BeginFunc(b.Context(), pool, func(tx pgx.Tx) error {
			_, err := client.InsertManyTx(b.Context(), tx, params)
			return err
		}); err != nil {
			b.Fatal(err)
		}
	}
	ctx := context.WithoutCancel(b.Context())
	b.Cleanup(func() { _ = client.Stop(ctx) })
	return r.costOf(b, pool, func() {
		if err := client.Start(ctx); err != nil {
			b.Fatal(err)
		}
	})
}

// loopWorkers is the number of workers of the loop for each receiver, as many as the queue has.
const loopWorkers = 32
