package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/paddock-health/paddock/hack/dev/localreceiver"
)

const (
	// deliveriesPoll is the interval in which receivers are read. deliveriesDeadline limits how long the
	// deliveries of a turn may take after its last event; then the set fails.
	deliveriesPoll     = 20 * time.Millisecond
	deliveriesDeadline = 5 * time.Minute
	// hostileShare is the part of the highest rate at which the good receivers are measured next to
	// hostile receivers. The rest leaves time for the deliveries to the hostile receivers.
	hostileShare = 0.1
	// hostileGoal is the maximum ratio of the good receivers' p99 next to hostile receivers to that
	// alone.
	hostileGoal = 1.5
	// hostileSettling is the time between the creation of the hostile webhooks and the first event.
	// The work of kubectl and the controller for new webhooks is not part of the measurement.
	hostileSettling = 3 * time.Second
	// hostileRecovery is how long hostile receivers may have an effect after they are gone.
	hostileRecovery = 5 * time.Second
)

const fanManifest = `---
apiVersion: paddock.health/v1alpha1
kind: WebhookEvent
metadata: {name: %[2]s, namespace: %[1]s}
spec: {eventType: %[2]s, enabled: true}
`

const targetManifest = `---
apiVersion: paddock.health/v1alpha1
kind: Webhook
metadata: {name: %[2]s, namespace: %[1]s, labels: {bench: %[3]s}}
spec: {eventType: %[4]s, url: %[5]q, active: true%[6]s}
`

// fan is a type of events and the good receivers that get them.
type fan struct {
	eventType string
	size      int
	receivers []*localreceiver.Receiver
}

// hostileAnswers returns how the hostile receivers answer. forbiddenURLs are two more hostile webhooks.
func hostileAnswers(trap string) []localreceiver.Misbehaviour {
	return []localreceiver.Misbehaviour{
		localreceiver.AnswerNothing, localreceiver.AnswerHeaderOnly, localreceiver.AnswerGigabyte, localreceiver.AnswerGigabyteOfHeader,
		localreceiver.AnswerStatus(http.StatusTemporaryRedirect, "Location", trap),
		localreceiver.AnswerStatus(http.StatusGone, "", ""),
		localreceiver.AnswerStatus(http.StatusTooManyRequests, "Retry-After", "1"),
		localreceiver.AnswerStatus(http.StatusServiceUnavailable, "", ""),
	}
}

var forbiddenURLs = []string{"https://kubernetes.default.svc/hook", "https://169.254.169.254/hook"}

// benchDeliveries measures the deliveries of events in both storages: how many events per second reach
// all receivers, how long they take from their acceptance at half of that rate, and how much longer
// they take next to hostile receivers.
func benchDeliveries(ctx context.Context, o options, in installation) error {
	dir, err := os.MkdirTemp("", "paddock-bench-deliveries")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := startDatabase(ctx, in, filepath.Join(dir, "postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	if _, err := in.paddock.Kubectl(ctx, "patch", "site", "demo", "-n", "demo", "--type=merge", "-p", `{"spec":{"storage":{"cluster":{"maxPendingDeliveries":10000}}}}`); err != nil {
		return err
	}
	for _, of := range []struct{ storage, namespace string }{{"cluster", "demo"}, {"postgres", databaseSite}} {
		namespace := of.namespace
		if !strings.Contains(of.storage, o.only) {
			continue
		}
		token, err := in.paddock.Token(ctx, namespace, "editor", "paddock.health/"+namespace+"/"+namespace, 2*time.Hour)
		if err != nil {
			return err
		}
		b := &deliveriesBench{in: in, namespace: namespace, site: newSite(in.paddock.URLs[0]+"/site/"+namespace+"/ahds/v1", token)}
		if err := b.run(ctx, o); err != nil {
			return fmt.Errorf("%s: %w", namespace, err)
		}
	}
	return nil
}

// deliveriesBench publishes events to one site and measures their deliveries.
type deliveriesBench struct {
	in        installation
	namespace string
	site      *site
	turns     int
}

// deliveryTurn is the result of one turn: how many events per second reached all receivers, and how
// long each delivery took.
type deliveryTurn struct {
	perSecond float64
	took      []time.Duration
}

// run measures one site and prints its tables.
func (b *deliveriesBench) run(ctx context.Context, o options) error {
	fans := []*fan{{eventType: "appointment.created", size: 1}, {eventType: "product.created", size: 10}}
	fmt.Printf("%s: %d clients, %d turns of %s each\n\n", b.namespace, o.clients, o.rounds, o.turn)
	fmt.Print("| webhooks for each event | events/s (range) | deliveries/s | p50 at half of the rate | p99 at half of the rate |\n|---|---|---|---|---|\n")
	highest := 0.0
	for _, f := range fans {
		if err := b.openFan(ctx, f); err != nil {
			return err
		}
		defer f.close()
		var full []float64
		var half []time.Duration
		for round := range o.rounds + 1 {
			fmt.Fprintf(os.Stderr, "\rround %d of %d: %d webhooks", round, o.rounds, f.size)
			fast, err := b.turn(ctx, f, o, rate.Inf)
			if err != nil {
				return err
			}
			steady, err := b.turn(ctx, f, o, rate.Limit(fast.perSecond/2))
			if err != nil {
				return err
			}
			if round > 0 { // the first round warms caches and connections
				full, half = append(full, fast.perSecond), append(half, steady.took...)
			}
		}
		fmt.Fprintln(os.Stderr)
		slices.Sort(full)
		slices.Sort(half)
		highest = full[len(full)/2]
		fmt.Printf("| %d | %.0f (%.0f–%.0f) | %.0f | %s | %s |\n", f.size, highest, full[0], full[len(full)-1], highest*float64(f.size), at(half, 50), at(half, 99))
	}
	return b.compare(ctx, o, fans[len(fans)-1], rate.Limit(highest*hostileShare))
}

// hostileTurns are the turns that are compared.
var hostileTurns = []string{"alone", "next to new hostile receivers", "next to hostile receivers afterwards"}

// compare measures the good receivers of a fan alone and next to hostile receivers, in turns. The
// hostile webhooks of each round are new. Most of their circuit breakers are closed at the beginning
// of the first turn next to them, and open in the second turn.
func (b *deliveriesBench) compare(ctx context.Context, o options, f *fan, pace rate.Limit) error {
	took := make([][]time.Duration, len(hostileTurns))
	var requests int64
	for round := range o.rounds + 1 {
		fmt.Fprintf(os.Stderr, "\rround %d of %d: next to hostile receivers", round, o.rounds)
		alone, err := b.turn(ctx, f, o, pace)
		if err != nil {
			return err
		}
		hostile, got, err := b.turnsNextToHostile(ctx, f, o, pace)
		if err != nil {
			return err
		}
		if round > 0 {
			for i, t := range append([]deliveryTurn{alone}, hostile...) {
				took[i] = append(took[i], t.took...)
			}
			requests += got
		}
		if err := pause(ctx, hostileRecovery); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stderr)
	tellHostile(os.Stdout, took, float64(pace), requests)
	return nil
}

// pause waits. Errors: ctx.Err().
func pause(ctx context.Context, length time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(length):
		return nil
	}
}

func tellHostile(out io.Writer, took [][]time.Duration, perSecond float64, requests int64) {
	fmt.Fprintf(out, "\n%.0f events/s; hostile receivers got %d requests\n\n", perSecond, requests)
	fmt.Fprint(out, "| the good receivers' deliveries | number | p50 | p99 | p99 relative to alone | goal |\n|---|---|---|---|---|---|\n")
	for i, name := range hostileTurns {
		slices.Sort(took[i])
		fmt.Fprintf(out, "| %s | %d | %s | %s | %.2f | %.2f |\n", name, len(took[i]), at(took[i], 50), at(took[i], 99),
			float64(percentile(took[i], 99))/float64(percentile(took[0], 99)), hostileGoal)
	}
	fmt.Fprintln(out)
}

func percentile(sorted []time.Duration, percent int) time.Duration {
	return sorted[len(sorted)*percent/100]
}

func at(sorted []time.Duration, percent int) string {
	return fmt.Sprintf("%.1f ms", percentile(sorted, percent).Seconds()*1000)
}

// turn publishes events at a pace and waits until all receivers of the fan have them.
func (b *deliveriesBench) turn(ctx context.Context, f *fan, o options, pace rate.Limit) (deliveryTurn, error) {
	b.turns++
	prefix := fmt.Sprintf("turn/%d/", b.turns)
	began := time.Now()
	published, err := b.publish(ctx, f.eventType, prefix, o, pace)
	if err != nil {
		return deliveryTurn{}, err
	}
	if published == 0 {
		return deliveryTurn{}, fmt.Errorf("no event was published within %s", o.turn)
	}
	var t deliveryTurn
	last := began
	seen := make([]map[string]bool, len(f.receivers))
	err = wait.PollUntilContextTimeout(ctx, deliveriesPoll, deliveriesDeadline, true, func(context.Context) (bool, error) {
		complete := true
		for i, receiver := range f.receivers {
			if seen[i] == nil {
				seen[i] = map[string]bool{}
			}
			for _, d := range receiver.Take() {
				subject, _ := d.Event["subject"].(string)
				if seen[i][subject] || !strings.HasPrefix(subject, prefix) {
					continue
				}
				seen[i][subject] = true
				accepted, err := time.Parse(time.RFC3339, d.Event["timestamp"].(string))
				if err != nil {
					return false, err
				}
				t.took = append(t.took, d.At.Sub(accepted))
				if d.At.After(last) {
					last = d.At
				}
			}
			complete = complete && len(seen[i]) == published
		}
		return complete, nil
	})
	if err != nil {
		return deliveryTurn{}, fmt.Errorf("wait for the deliveries of %d events: %w", published, err)
	}
	t.perSecond = float64(published) / last.Sub(began).Seconds()
	return t, nil
}

// publish sends events for the length of a turn, and returns how many. Each event has a subject of its
// own, because events with the same subject are delivered one after the other.
func (b *deliveriesBench) publish(ctx context.Context, eventType, prefix string, o options, pace rate.Limit) (int, error) {
	limiter := rate.NewLimiter(pace, 1)
	turn, stop := context.WithTimeout(ctx, o.turn)
	defer stop()
	var mu sync.Mutex
	var group sync.WaitGroup
	var failed error
	published := 0
	for client := range o.clients {
		group.Go(func() {
			for n := 0; limiter.Wait(turn) == nil; n++ {
				text := fmt.Appendf(nil, `{"type":%q,"subject":"%s%d/%d","data":{"resourceType":"Patient","id":"p-%d","name":[{"family":"Okafor"}],"birthDate":"2019-05-03"}}`,
					eventType, prefix, client, n, n)
				err := b.site.do(ctx, http.MethodPost, "/event", text, http.StatusAccepted)
				mu.Lock()
				published++
				failed = cmp.Or(failed, err)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	group.Wait()
	return published, failed
}

// turnsNextToHostile makes hostile webhooks for the same events, takes two turns and deletes the
// webhooks. It also returns how many requests the hostile receivers got.
func (b *deliveriesBench) turnsNextToHostile(ctx context.Context, f *fan, o options, pace rate.Limit) (turns []deliveryTurn, requests int64, err error) {
	trap := localreceiver.Start()
	defer trap.Close()
	manifest := &strings.Builder{}
	add := func(n int, url, ca string) {
		fmt.Fprintf(manifest, targetManifest, b.namespace, fmt.Sprintf("hostile-%d-%d", b.turns, n), "hostile", f.eventType, url, ca)
	}
	var receivers []*localreceiver.Hostile
	for n, answer := range hostileAnswers(trap.URL) {
		h := localreceiver.StartHostile(answer)
		defer h.Close()
		receivers = append(receivers, h)
		add(n, h.URL, ", caBundle: "+h.CABundle())
	}
	for n, url := range forbiddenURLs {
		add(len(receivers)+n, url, "")
	}
	if err := b.apply(ctx, "hostile", manifest.String()); err != nil {
		return nil, 0, err
	}
	if err := pause(ctx, hostileSettling); err != nil {
		return nil, 0, err
	}
	for range len(hostileTurns) - 1 {
		t, err := b.turn(ctx, f, o, pace)
		if err != nil {
			return nil, 0, err
		}
		turns = append(turns, t)
	}
	for _, h := range receivers {
		requests += h.Requests.Load()
	}
	_, err = b.in.paddock.Kubectl(ctx, "delete", "webhooks", "-l", "bench=hostile", "-n", b.namespace)
	return turns, requests, err
}

// openFan starts the receivers of a fan and makes their webhooks.
func (b *deliveriesBench) openFan(ctx context.Context, f *fan) error {
	manifest := &strings.Builder{}
	fmt.Fprintf(manifest, fanManifest, b.namespace, f.eventType)
	for n := range f.size {
		receiver := localreceiver.Start()
		f.receivers = append(f.receivers, receiver)
		fmt.Fprintf(manifest, targetManifest, b.namespace, fmt.Sprintf("%s-%d", f.eventType, n), "good", f.eventType, receiver.URL, ", caBundle: "+receiver.CABundle())
	}
	return b.apply(ctx, "good", manifest.String())
}

func (f *fan) close() {
	for _, receiver := range f.receivers {
		receiver.Close()
	}
}

// apply makes webhooks with a label and waits until they are active.
func (b *deliveriesBench) apply(ctx context.Context, label, manifest string) error {
	path := b.in.cluster.File("deliveries.yaml")
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		return err
	}
	if _, err := b.in.paddock.Kubectl(ctx, "apply", "--filename", path); err != nil {
		return err
	}
	_, err := b.in.paddock.Kubectl(ctx, "wait", "--for=condition=Active", "--timeout=60s", "-n", b.namespace, "webhooks", "-l", "bench="+label)
	return err
}
