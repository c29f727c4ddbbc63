package queue_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/extraction"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/outbox"
	"github.com/paddock-health/paddock/apiserver/store/postgres/queue"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
)

// TestErasedBytes erases a record whose value is in every table, and searches the data files for the
// bytes of the value after the commands of docs/guides/erasure.md.
func TestErasedBytes(t *testing.T) {
	g := NewWithT(t)
	d := newDatabase(t)
	key := uuid.NewString()
	s, err := postgres.Open(t.Context(), d.pool, key, postgres.Options{Extractor: extraction.Extractor{}})
	g.Expect(err).NotTo(HaveOccurred())
	secret := "mulberry" + strings.ReplaceAll(uuid.NewString(), "-", "")
	about := func(event string, targets ...string) func(store.Change) []store.Event {
		text := []byte(fmt.Sprintf(`{"id":%q,"sequence":,"data":{"name":%q}}`, event, secret))
		return func(store.Change) []store.Event {
			return []store.Event{{
				ID: event, Type: "task.created", Subject: "Patient/rex", Targets: targets,
				Envelope: store.Envelope{JSON: text, SequenceOffset: bytes.Index(text, []byte(`,"data"`))},
			}}
		}
	}
	put := func(id, event string, n int, targets ...string) {
		t.Helper()
		body := fmt.Sprintf(`{"resourceType":"Patient","id":"","meta":{},"name":[{"family":"%s"}],"multipleBirthInteger":%d}`, secret, n)
		op := store.Op{Kind: store.Put, Key: store.Key{Type: "Patient", ID: id}, Method: store.MethodPut, Body: store.Body{JSON: []byte(body), IDOffset: 30, MetaOffset: 41}}
		if event != "" {
			op.Events = about(event, targets...)
		}
		op.Claims = []store.Claim{{Line: "Idempotency-Key " + secret + id, Expires: time.Now().Add(time.Hour)}}
		_, err := s.Write(t.Context(), []store.Op{op})
		g.Expect(err).NotTo(HaveOccurred())
	}
	r := &receiver{answer: func(_ context.Context, call attempted) (delivery.Outcome, error) {
		if call.Webhook == "fails" {
			outcome := retry(time.Now(), time.Now().Add(time.Hour))
			outcome.Attempt.Response = []byte("I refuse " + secret)
			return outcome, nil
		}
		return delivered(), nil
	}}
	q := newQueue(t, d.pool, queue.Options{})
	q.Add(s, r)
	stop := run(t, q)
	put("rex", "e1", 1, "works", "fails")
	put("rex", "e2", 2, "works")
	post(t, s, "patient/REX", []string{"works"}, "posted-"+secret)
	post(t, s, "Patient/other", []string{"works"}, "other")
	g.Eventually(func() int { return counts(t, s, "works")[delivery.Delivered] }, patience).Should(Equal(4))
	g.Eventually(func() int {
		attempts := 0
		for _, d := range deliveriesOf(t, s, delivery.Query{Webhook: "fails"}) {
			attempts += len(d.Attempts)
		}
		return attempts
	}, patience).Should(Equal(1))
	stop()
	put("rex", "e3", 3, "works") // stays in the outbox
	put("bella", "", 1)
	_, err = s.Write(t.Context(), []store.Op{{Kind: store.Delete, Key: store.Key{Type: "Patient", ID: "bella"}, Method: store.MethodDelete}})
	g.Expect(err).NotTo(HaveOccurred())

	conn, err := pgx.Connect(t.Context(), d.uri)
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	commands := func(all ...string) {
		t.Helper()
		for _, sql := range all {
			_, err := conn.Exec(t.Context(), sql)
			g.Expect(err).NotTo(HaveOccurred(), sql)
		}
	}
	// An older release stored the first event without the hash of its subject. The event about another
	// record is not read.
	commands(`UPDATE event SET subject = NULL WHERE seq = (SELECT min(seq) FROM event)`,
		`CREATE TEMP TABLE other AS SELECT seq, event FROM event WHERE seq = (SELECT max(seq) FROM event)`,
		`UPDATE event SET event = 'no JSON' WHERE seq = (SELECT max(seq) FROM event)`)
	commands(`ANALYZE`, `CHECKPOINT`)
	g.Expect(filesWith(t, secret)).NotTo(BeEmpty(), "the test must find the value before it is erased")

	for _, id := range []string{"rex", "bella"} {
		results, err := s.Write(t.Context(), []store.Op{{Kind: store.Purge, Key: store.Key{Type: "Patient", ID: id}, Method: store.MethodDelete, Erase: true}})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(results[0].Outcome).To(Equal(store.Removed))
	}
	commands(`UPDATE event SET event = o.event FROM other o WHERE event.seq = o.seq`, `DROP TABLE other`)
	// The id of a posted event is chosen by its sender, and is no content of the record.
	_, err = s.Write(t.Context(), []store.Op{{Kind: store.Purge, Key: store.Key{Type: "Event", ID: "posted-" + secret}}})
	g.Expect(err).NotTo(HaveOccurred())
	for table, want := range map[string]int{"res": 1, "hist": 0, "claim": 0, "ix_code": 0, "ix_ref": 0, "ix_text": 0, "ix_date": 0, "ix_pos": 0, "outbox": 0, "event": 1, "delivery": 1} {
		var n int
		g.Expect(conn.QueryRow(t.Context(), `SELECT count(*) FROM `+table+` WHERE site = $1`, s.Number()).Scan(&n)).To(Succeed())
		g.Expect(n).To(Equal(want), "rows in %s: only those of the other event may be left", table)
	}
	for _, webhook := range []string{"works", "fails"} {
		g.Expect(healthOf(g, s, webhook).Pending).To(BeZero(), "an erased delivery to %s is no longer pending", webhook)
	}

	// ANALYZE keeps the statistics of tables that have become empty, with values of erased rows.
	commands(`DELETE FROM pg_statistic WHERE starelid IN (SELECT oid FROM pg_class WHERE relnamespace = current_schema()::regnamespace)`,
		`ANALYZE`, `VACUUM FULL`, `CHECKPOINT`)
	for _, path := range filesWith(t, secret) {
		var relation *string
		g.Expect(conn.QueryRow(t.Context(), `SELECT max(relname) FROM pg_class WHERE pg_relation_filenode(oid)::text = $1`, filepath.Base(path)).Scan(&relation)).To(Succeed())
		name := "no relation of this database"
		if relation != nil {
			name = *relation
		}
		t.Errorf("%s (%s) has the erased value", path, name)
	}

	q = newQueue(t, d.pool, queue.Options{})
	q.Add(s, r)
	run(t, q)
	post(t, s, "Patient/rex", []string{"fails", "works"}, "later")
	g.Eventually(func() int { return counts(t, s, "works")[delivery.Delivered] }, patience).Should(Equal(2), "the queue goes on")
	for _, call := range r.all() {
		g.Expect(call.Event).NotTo(Equal("e3"), "an erased event is not sent")
	}
}

// TestEraseDuringRelay shows that only the erasure of a record with an event in the outbox waits for the relay.
func TestEraseDuringRelay(t *testing.T) {
	g := NewWithT(t)
	d := newDatabase(t)
	s := d.site()
	post(t, s, "Patient/rex", []string{"works"}, "e1")
	relaying, err := d.pool.Begin(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = relaying.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = relaying.Exec(t.Context(), `SELECT pg_advisory_xact_lock($1, $2)`, schema.RelayLock, s.Number())
	g.Expect(err).NotTo(HaveOccurred())

	purge := func(id string) chan error {
		done := make(chan error, 1)
		go func() {
			_, err := s.Write(t.Context(), []store.Op{{Kind: store.Purge, Key: store.Key{Type: "Patient", ID: id}, Method: store.MethodDelete, Erase: true}})
			done <- err
		}()
		return done
	}
	g.Eventually(purge("bella"), patience).Should(Receive(BeNil()))
	rex := purge("rex")
	g.Consistently(rex, "300ms").ShouldNot(Receive(), "the relay may move the event meanwhile")
	// The relay moves the event.
	_, err = relaying.Exec(t.Context(), `WITH o AS (DELETE FROM outbox WHERE site = $1 RETURNING seq, at, event, envelope)
		INSERT INTO event (site, seq, at, subject, event, envelope) SELECT $1, seq, at, $2, event, envelope FROM o`, s.Number(), outbox.SubjectKey("Patient/rex"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(relaying.Commit(t.Context())).To(Succeed())
	g.Eventually(rex, patience).Should(Receive(BeNil()))
	for _, table := range []string{"outbox", "event"} {
		var n int
		g.Expect(d.pool.QueryRow(t.Context(), `SELECT count(*) FROM `+table+` WHERE site = $1`, s.Number()).Scan(&n)).To(Succeed())
		g.Expect(n).To(BeZero(), "rows in %s", table)
	}
}

// TestEraseDuringRetention shows that an erasure does not wait for the process that enforces the retention.
func TestEraseDuringRetention(t *testing.T) {
	g := NewWithT(t)
	d := newDatabase(t)
	s := d.site()
	retaining, err := d.pool.Begin(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = retaining.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = retaining.Exec(t.Context(), `SELECT pg_advisory_xact_lock($1, $2)`, schema.RetentionLock, s.Number())
	g.Expect(err).NotTo(HaveOccurred())
	_, err = s.Write(t.Context(), []store.Op{{Kind: store.Purge, Key: store.Key{Type: "Patient", ID: "rex"}, Method: store.MethodDelete, Erase: true}})
	g.Expect(err).NotTo(HaveOccurred())
}

// filesWith returns the files of the database server that contain a text, in any case, except the
// WAL.
func filesWith(t *testing.T, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(serverDir, "data"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if entry != nil && entry.Name() == "pg_wal" {
				return fs.SkipDir
			}
			if os.IsNotExist(err) { // removed meanwhile
				return nil
			}
			return err
		}
		content, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		if bytes.Contains(bytes.ToLower(content), []byte(text)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
