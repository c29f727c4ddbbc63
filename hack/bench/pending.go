package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/outbox"
	"github.com/paddock-health/paddock/hack/dev/localreceiver"
)

const (
	// pendingPace is how many events a second the measured site makes.
	pendingPace = rate.Limit(50)
	// pendingGoal is the maximum ratio of the p99 of the measured site's deliveries next to the other
	// site to that alone.
	pendingGoal = 1.5
	// relayDeadline is the time after which the last turns begin even if some events of the other site
	// are not deliveries yet.
	relayDeadline = 5 * time.Minute
)

// pendingTurns are the turns that are compared.
var pendingTurns = []string{"alone", "while the events become deliveries", "next to pending deliveries"}

// benchPending measures the deliveries of one site in three kinds of turns: alone; while another site
// in the same database has o.records events in its outbox, for a receiver that does not answer; and
// when these events have become pending deliveries.
func benchPending(ctx context.Context, o options, in installation) error {
	dir, err := os.MkdirTemp("", "paddock-bench-pending")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := startDatabase(ctx, in, filepath.Join(dir, "postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	if err := openNeighbour(ctx, in, server.URL("demo")); err != nil {
		return err
	}
	silent := localreceiver.StartHostile(localreceiver.AnswerNothing)
	defer silent.Close()
	crowded := &deliveriesBench{in: in, namespace: neighbourSite}
	manifest := fmt.Sprintf(fanManifest, neighbourSite, pendingType) +
		fmt.Sprintf(targetManifest, neighbourSite, "silent", "silent", pendingType, silent.URL, ", caBundle: "+silent.CABundle())
	if err := crowded.apply(ctx, "silent", manifest); err != nil {
		return err
	}
	token, err := in.paddock.Token(ctx, databaseSite, "editor", "paddock.health/"+databaseSite+"/"+databaseSite, 2*time.Hour)
	if err != nil {
		return err
	}
	b := &deliveriesBench{in: in, namespace: databaseSite, site: newSite(in.paddock.URLs[0]+"/site/"+databaseSite+"/ahds/v1", token)}
	f := &fan{eventType: pendingType, size: 1}
	if err := b.openFan(ctx, f); err != nil {
		return err
	}
	defer f.close()
	conn, err := pgx.Connect(ctx, server.URL("demo"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return b.compareNextTo(ctx, o, f, &backlog{in: in, conn: conn, events: o.records})
}

const pendingType = "appointment.created"

// compareNextTo takes the turns and prints their table.
func (b *deliveriesBench) compareNextTo(ctx context.Context, o options, f *fan, other *backlog) error {
	took := make([][]time.Duration, len(pendingTurns))
	turns := func(i, rounds int) error {
		for range rounds {
			t, err := b.turn(ctx, f, o, pendingPace)
			if err != nil {
				return err
			}
			took[i] = append(took[i], t.took...)
		}
		return nil
	}
	if _, err := b.turn(ctx, f, o, pendingPace); err != nil { // it warms caches and connections
		return err
	}
	if err := turns(0, o.rounds); err != nil {
		return err
	}
	if err := other.insert(ctx); err != nil {
		return err
	}
	began := time.Now()
	if err := turns(1, o.rounds); err != nil {
		return err
	}
	left, err := other.awaitRelay(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%d of the other site's %d events became deliveries in %s\n\n", other.events-left, other.events, time.Since(began).Round(time.Second))
	if err := other.vacuum(ctx); err != nil {
		return err
	}
	if err := turns(2, o.rounds); err != nil {
		return err
	}
	tellPending(os.Stdout, took)
	return nil
}

func tellPending(out io.Writer, took [][]time.Duration) {
	fmt.Fprintf(out, "%.0f events/s\n\n| deliveries | number | p50 | p99 | p99 relative to alone | goal |\n|---|---|---|---|---|---|\n", float64(pendingPace))
	for i, name := range pendingTurns {
		slices.Sort(took[i])
		fmt.Fprintf(out, "| %s | %d | %s | %s | %.2f | %.2f |\n", name, len(took[i]), at(took[i], 50), at(took[i], 99),
			float64(percentile(took[i], 99))/float64(percentile(took[0], 99)), pendingGoal)
	}
	fmt.Fprintln(out)
}

// backlog is the events of neighbourSite.
type backlog struct {
	in     installation
	conn   *pgx.Conn
	events int
	number int32
}

// insert inserts the events into the outbox, in the form in which writes insert theirs.
func (l *backlog) insert(ctx context.Context) error {
	key, err := l.in.paddock.Kubectl(ctx, "get", "siteclaim", neighbourSite, "-o", "jsonpath={.spec.siteKey}")
	if err != nil {
		return err
	}
	if err := l.conn.QueryRow(ctx, `SELECT site FROM sites WHERE key = $1`, strings.TrimSpace(string(key))).Scan(&l.number); err != nil {
		return err
	}
	text := `{"type":"` + pendingType + `","siteId":"` + neighbourSite + `","data":{"resourceType":"Patient","id":"p-1"},"sequence":}`
	head, envelope := outbox.Pack(store.Event{
		ID: "EVENT", Type: pendingType, Targets: []string{v1alpha1.ResourceID("webhooks", neighbourSite, "silent")},
		Envelope: store.Envelope{JSON: []byte(text), SequenceOffset: len(text) - 1},
	})
	const insert = `INSERT INTO outbox (site, seq, at, version, event, envelope)
		SELECT $1, nextval('outbox_seq'), (extract(epoch FROM now()) * 1000)::int8, 1, convert_to(replace($2, 'EVENT', gen_random_uuid()::text), 'UTF8'), $3 FROM generate_series(1, $4::int)`
	_, err = l.conn.Exec(ctx, insert, l.number, string(head), envelope, l.events)
	return err
}

// awaitRelay waits until no event is in the outbox, at most for relayDeadline. It returns how many
// are left.
func (l *backlog) awaitRelay(ctx context.Context) (left int, err error) {
	err = wait.PollUntilContextTimeout(ctx, time.Second, relayDeadline, true, func(ctx context.Context) (bool, error) {
		var some bool
		err := l.conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM outbox WHERE site = $1)`, l.number).Scan(&some)
		return !some, err
	})
	if err != nil && !wait.Interrupted(err) {
		return 0, err
	}
	err = l.conn.QueryRow(ctx, `SELECT count(*) FROM outbox WHERE site = $1`, l.number).Scan(&left)
	return left, err
}

// vacuum does what autovacuum does within minutes, so that turns do not depend on when it runs.
func (l *backlog) vacuum(ctx context.Context) error {
	_, err := l.conn.Exec(ctx, "VACUUM ANALYZE")
	return err
}
