package postgres_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/storetest"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// replicated is a site in a primary with a standby. It connects as a role without privileges.
type replicated struct {
	primary, standby *localpostgres.Server
	pool, standbys   *pgxpool.Pool
	replicas         *postgres.Replicas
	site             *postgres.Store
	key              string
	// slow is set when a search took as long as one that gives the standby up. Then searches may have
	// failed at the standby.
	slow atomic.Bool
	// start starts another server, which is a standby if primary is not nil.
	start func(name string, primary *localpostgres.Server) *localpostgres.Server
}

// replicate starts a primary with a site, whose index is current, and a standby.
func replicate(t *testing.T) *replicated {
	t.Helper()
	return replicateMigrated(t, postgres.Current, func(uri, _ string) {
		t.Helper()
		must(t, migrate(t.Context(), uri))
	})
}

// replicateMigrated is replicate with a database that a function migrates for a site key. state is the
// state of the index afterwards.
func replicateMigrated(t *testing.T, state postgres.Renewal, migrateFor func(uri, key string)) *replicated {
	t.Helper()
	dir, err := os.MkdirTemp("", "paddock-postgres-replicated")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	r := &replicated{key: uuid.NewString()}
	settings := map[string]string{"shared_buffers": "32MB"}
	r.start = func(name string, primary *localpostgres.Server) *localpostgres.Server {
		server, err := localpostgres.Start(t.Context(), localpostgres.Options{
			Dir: filepath.Join(dir, name), UnsafeNoFsync: true, StandbyOf: primary, Settings: settings,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Stop() })
		return server
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the user of Postgres must enter it
		t.Fatal(err)
	}
	r.primary = r.start("primary", nil)
	if _, err := r.primary.CreateDatabase(t.Context(), role, role); err != nil {
		t.Fatal(err)
	}
	migrateFor(uriOf(r.primary), r.key)
	r.standby = r.start("standby", r.primary)
	r.connect(t, r.primary, r.standby)
	r.renew(t, state)
	return r
}

// renew reindexes the site, whose index then has the state want.
func (r *replicated) renew(t *testing.T, want postgres.Renewal) {
	t.Helper()
	if state, err := r.site.Renew(t.Context(), storetest.Extractor{}.Version(), func(postgres.Reindexed) {}); err != nil || state != want {
		t.Fatalf("the state of the index is %v (%v), want %v", state, err, want)
	}
}

// role is the name of the role without privileges, and of its database.
const role = "clinics"

func uriOf(server *localpostgres.Server) string {
	return strings.Replace(server.URL(role), "postgres@", role+"@", 1)
}

// connect opens the site with two servers.
func (r *replicated) connect(t *testing.T, primary, standby *localpostgres.Server) {
	t.Helper()
	config, err := postgres.Config(unhurried(uriOf(primary)))
	if err != nil {
		t.Fatal(err)
	}
	standbyConfig, err := postgres.Config(unhurried(uriOf(standby)))
	if err != nil {
		t.Fatal(err)
	}
	postgres.ConfigReplicas(config, standbyConfig)
	pools := make([]*pgxpool.Pool, 2)
	for i, c := range []*pgxpool.Config{config, standbyConfig} {
		if pools[i], err = pgxpool.NewWithConfig(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pools[i].Close)
	}
	r.pool, r.standbys, r.replicas = pools[0], pools[1], postgres.NewReplicas(pools[0], pools[1])
	r.site = open(t, r.pool, r.key, postgres.Options{Replicas: r.replicas})
}

// ask searches a site. If the page must be from the standby, ask repeats the search: the primary answers
// for a while after the standby did not answer in time.
func (r *replicated) ask(t *testing.T, site *postgres.Store, query store.Query, fromReplica bool) store.Page {
	t.Helper()
	for since := time.Now(); ; time.Sleep(postgres.PositionInterval / 5) {
		began := time.Now()
		page, err := site.Search(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		if time.Since(began) >= postgres.ReplicaTimeout {
			r.slow.Store(true)
		}
		if !fromReplica || page.Lag > 0 || time.Since(since) > 20*time.Second {
			return page
		}
	}
}

// search returns the ids of the patients that the site finds, by the order of creation.
func (r *replicated) search(t *testing.T, maxLag time.Duration, fromReplica bool) (ids []string, lag time.Duration) {
	t.Helper()
	page := r.ask(t, r.site, store.Query{Types: []string{patient}, Count: 10, MaxLag: maxLag}, fromReplica)
	for _, record := range page.Records {
		ids = append(ids, record.Key.ID)
	}
	if lag = page.Lag; lag > maxLag {
		t.Errorf("the page lags by %v, want at most %v", lag, maxLag)
	}
	return ids, lag
}

func (r *replicated) expectSearch(t *testing.T, maxLag time.Duration, fromReplica bool, want ...string) {
	t.Helper()
	ids, lag := r.search(t, maxLag, fromReplica)
	if diff := cmp.Diff(want, ids); diff != "" || lag > 0 != fromReplica {
		t.Errorf("with a lag of at most %v: a page that lags by %v, want one from a replica: %t (-want +got):\n%s", maxLag, lag, fromReplica, diff)
	}
}

// awaitReplica waits until the standby has replayed all writes.
func (r *replicated) awaitReplica(t *testing.T) {
	t.Helper()
	began := time.Now()
	for {
		lag, err := r.replicas.MeasureLag(t.Context(), r.site)
		if err == nil && lag > 0 && time.Since(began) > lag {
			return
		}
		if time.Since(began) > 20*time.Second {
			t.Fatalf("the standby lags by %v after 20 s, error %v", lag, err)
		}
		time.Sleep(postgres.PositionInterval / 5)
	}
}

// runAt runs a statement at a server.
func runAt(t *testing.T, server *localpostgres.Server, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// pauseReplay stops the replay of the standby, which continues to receive the log.
func (r *replicated) pauseReplay(t *testing.T) {
	t.Helper()
	runAt(t, r.standby, `SELECT pg_wal_replay_pause()`)
	r.awaitState(t, "paused")
}

func (r *replicated) resumeReplay(t *testing.T) {
	t.Helper()
	runAt(t, r.standby, `SELECT pg_wal_replay_resume()`)
	r.awaitState(t, "not paused")
}

func (r *replicated) awaitState(t *testing.T, want string) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		var state string
		conn, err := pgx.Connect(t.Context(), r.standby.URL(database))
		if err == nil {
			err = conn.QueryRow(t.Context(), `SELECT pg_get_wal_replay_pause_state()`).Scan(&state)
			_ = conn.Close(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if state == want {
			return
		}
		if time.Since(began) > 20*time.Second {
			t.Fatalf("the replay is %s after 20 s, want %s", state, want)
		}
	}
}

// TestReplicas shows which searches a standby answers, and that its lag bounds how stale a page is. The
// standby that does not replay has all of the log: only what it has replayed counts.
func TestReplicas(t *testing.T) {
	t.Parallel()
	r := replicate(t)
	writeOne(t, r.site, counterOp("one", 1))
	r.awaitReplica(t)
	r.pauseReplay(t)
	paused := time.Now()
	writeOne(t, r.site, counterOp("two", 1))

	t.Run("within the bound", func(t *testing.T) {
		r.expectSearch(t, 0, false, "one", "two")
		r.expectSearch(t, time.Minute, true, "one")
	})
	t.Run("what a replica must not answer", func(t *testing.T) {
		page, err := r.site.Search(t.Context(), store.Query{
			Types: []string{patient}, Count: 10, Sort: []store.Sort{{Field: store.SortUpdated}}, MaxLag: time.Minute,
		})
		if err != nil || page.Lag != 0 || len(page.Records) != 2 {
			t.Errorf("by time: %d records with a lag of %v (%v), want those of the primary", len(page.Records), page.Lag, err)
		}
	})
	t.Run("page tokens", func(t *testing.T) {
		query := store.Query{Types: []string{patient}, Count: 1, Total: store.TotalAccurate, Sort: []store.Sort{{Descending: true}}}
		first, err := r.site.Search(t.Context(), query)
		if err != nil || first.Total != 2 {
			t.Fatalf("the total is %d (%v), want 2", first.Total, err)
		}
		query.After, query.MaxLag = first.Next, time.Minute
		next := r.ask(t, r.site, query, true)
		if next.Lag == 0 || len(next.Records) != 1 || next.Records[0].Key.ID != "one" || next.Total != 1 {
			t.Errorf("the next page at the replica is %+v, want the record one and its total", next)
		}
	})
	t.Run("beyond the bound", func(t *testing.T) {
		time.Sleep(time.Until(paused.Add(time.Second + 10*time.Millisecond)))
		r.expectSearch(t, time.Second, false, "one", "two")
		r.expectSearch(t, time.Minute, true, "one")
		if _, lag := r.search(t, time.Minute, true); lag < time.Second {
			t.Errorf("the lag is %v, want at least the second since the last write that was replayed", lag)
		}
	})
	t.Run("an idle primary", func(t *testing.T) {
		r.resumeReplay(t)
		r.awaitReplica(t)
		runAt(t, r.primary, `SELECT pg_switch_wal()`) // as archive_timeout does
		time.Sleep(1500 * time.Millisecond)           // without writes
		r.expectSearch(t, time.Second, true, "one", "two")
	})
	if searches := r.replicas.Searches(); searches.Answered == 0 || (searches.Lagging == 0 || searches.Failed != 0) && !r.slow.Load() {
		t.Errorf("the searches are %+v, want some that were answered or lagging, and none that failed", searches)
	}
}

// TestReplicaIsKilled shows that callers notice neither the end nor the stop of a standby, and that it is
// used again.
func TestReplicaIsKilled(t *testing.T) {
	t.Parallel()
	r := replicate(t)
	writeOne(t, r.site, counterOp("one", 1))
	r.awaitReplica(t)
	for name, breakIt := range map[string]func() error{"killed": r.standby.Kill, "stopped": r.standby.Pause} {
		t.Run(name, func(t *testing.T) {
			r.expectSearch(t, time.Minute, true, "one")
			if err := breakIt(); err != nil {
				t.Fatal(err)
			}
			// Sessions of a server that was killed end within milliseconds, or later on a busy machine.
			for began := time.Now(); time.Since(began) < 20*time.Second; {
				if _, lag := r.search(t, time.Minute, false); lag == 0 {
					break
				}
			}
			for range 3 {
				began := time.Now()
				r.expectSearch(t, time.Minute, false, "one")
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("the search took %v, want less than 10 s", took)
				}
			}
			mend := r.standby.Resume
			if name == "killed" {
				mend = func() error { return r.standby.Restart(t.Context()) }
			}
			if err := mend(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(postgres.ReplicaPause)
			r.awaitReplica(t)
			r.expectSearch(t, time.Minute, true, "one")
		})
	}
}

// TestReplicaOfOthers shows that a server is not used unless it is a standby of the primary and has its
// history. The orphan still follows the former primary, which is ahead of the new one.
func TestReplicaOfOthers(t *testing.T) {
	t.Parallel()
	r := replicate(t)
	writeOne(t, r.site, counterOp("one", 1))
	r.awaitReplica(t)
	r.expectSearch(t, time.Minute, true, "one")
	orphan := r.start("orphan", r.primary)
	r.connect(t, r.primary, orphan)
	r.awaitReplica(t)
	r.expectSearch(t, time.Minute, true, "one")

	runAt(t, r.standby, `SELECT pg_promote()`)
	r.connect(t, r.primary, r.standby)
	r.expectSearch(t, time.Minute, false, "one")

	former := r.primary
	for n := range 100 {
		writeOne(t, r.site, counterOp("lost", n))
	}
	r.connect(t, former, orphan)
	r.awaitReplica(t)
	r.expectSearch(t, time.Minute, true, "one", "lost")
	r.connect(t, r.standby, orphan)
	r.expectSearch(t, time.Minute, false, "one")

	r.connect(t, former, former)
	r.expectSearch(t, time.Minute, false, "one", "lost")
}

// TestReplicaBehindReindexing shows that a standby with the index of an earlier release is not used.
func TestReplicaBehindReindexing(t *testing.T) {
	t.Parallel()
	r := replicate(t)
	writeOne(t, r.site, counterOp("one", 1))
	r.awaitReplica(t)
	r.pauseReplay(t)
	next := open(t, r.pool, r.key, postgres.Options{Extractor: newer{storetest.Extractor{}}, Replicas: r.replicas})
	expect := func(fromReplica bool) {
		t.Helper()
		page := r.ask(t, next, store.Query{Types: []string{patient}, Count: 10, MaxLag: time.Minute}, fromReplica)
		if len(page.Records) != 1 || page.Lag > 0 != fromReplica {
			t.Errorf("%d records with a lag of %v, want one, from a replica: %t", len(page.Records), page.Lag, fromReplica)
		}
	}
	expect(false)
	if _, err := next.Renew(t.Context(), newer{}.Version(), func(postgres.Reindexed) {}); err != nil {
		t.Fatal(err)
	}
	expect(false)
	r.expectSearch(t, time.Minute, true, "one") // the earlier release may use it
	r.resumeReplay(t)
	r.awaitReplica(t)
	expect(true)
}

// TestReplicaBehindUpgrade searches on a standby that still has the tables of earlier releases after the
// primary has dropped them. Of a record that an earlier release wrote, it has no others.
func TestReplicaBehindUpgrade(t *testing.T) {
	t.Parallel()
	r := replicateMigrated(t, postgres.Waiting, func(uri, key string) { migrateFrom(t, uri, key, beforeTexts) })
	r.site.SetRenewPause(0)
	writeOne(t, r.site, store.Op{Kind: store.Put, Key: store.Key{Type: patient, ID: "one"}, Body: store.Body{JSON: []byte(`{"Texts":{"name":[{"Folded":"smith","Original":"Smith"}]},"Tokens":{"identifier":[{"System":"","Code":"1"}]}}`)}})
	execute(t, r.pool, `UPDATE res SET packed = NULL, vals = ''`) // as an earlier release stores it
	r.awaitReplica(t)
	expect := func() {
		t.Helper()
		where := store.All{store.TextIs{Param: "name", Text: "smith"}, store.TokenIs{Param: "identifier", Code: new("1")}}
		page := r.ask(t, r.site, store.Query{Types: []string{patient}, Where: where, Count: 10, MaxLag: time.Minute}, true)
		if len(page.Records) != 1 || page.Lag == 0 {
			t.Errorf("%d records with a lag of %v, want one, from the replica", len(page.Records), page.Lag)
		}
	}
	expect()
	r.pauseReplay(t)
	r.renew(t, postgres.Waiting) // from here on the time for a rollback is counted
	execute(t, r.pool, `UPDATE requirement SET texts_until = now()`)
	r.renew(t, postgres.Current)
	expect()
	r.resumeReplay(t)
	r.awaitReplica(t)
	expect()
}

// newer is the Extractor of a later release.
type newer struct{ store.Extractor }

func (newer) Version() int64 { return storetest.Extractor{}.Version() + 1 }

// TestReplicaInUse shows that a search does not wait for a connection that other sites use, and takes
// that for no failure. Searches on the standby wait for a lock that the standby has from the primary.
func TestReplicaInUse(t *testing.T) {
	t.Parallel()
	r := replicate(t)
	writeOne(t, r.site, counterOp("one", 1))
	others := make([]*postgres.Store, 3)
	for i := range others {
		others[i] = r.caughtUpAs(t, uuid.NewString()).Store
	}
	var answered, failed int64
	for range 3 { // a standby that does not answer in time is not used for a while
		r.awaitReplica(t)
		if answered, failed = r.searchLocked(t, others); failed == 0 {
			break
		}
		time.Sleep(postgres.ReplicaPause)
	}
	if answered != 4 || failed != 0 {
		t.Errorf("%d searches were answered and %d failed, want 4 that were answered, as many as there are connections, and none that failed", answered, failed)
	}
	r.expectSearch(t, time.Minute, true, "one")
}

// searchLocked searches each site four times while the table of records is locked. It returns how many
// searches the standby answered, and how many failed there.
func (r *replicated) searchLocked(t *testing.T, sites []*postgres.Store) (answered, failed int64) {
	t.Helper()
	before := r.replicas.Searches()
	holder, err := r.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(context.Background()) }()
	if _, err := holder.Exec(t.Context(), `LOCK TABLE res`); err != nil {
		t.Fatal(err)
	}
	runAt(t, r.primary, `DROP TABLE IF EXISTS committed; CREATE TABLE committed ()`) // sends the lock to the standby
	r.awaitReplica(t)
	var searches sync.WaitGroup
	var begun atomic.Int64
	for _, site := range sites {
		for range 4 {
			searches.Go(func() {
				begun.Add(1)
				if _, err := site.Search(t.Context(), store.Query{Types: []string{patient}, Count: 10, MaxLag: time.Minute}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	await(t, "the searches wait for the lock", func() error {
		if r.replicas.Searches().Failed > before.Failed {
			return nil
		}
		conn, err := pgx.Connect(t.Context(), r.standby.URL(database))
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(t.Context()) }()
		var waiting int32
		err = conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'`).Scan(&waiting)
		if n := begun.Load(); err == nil && (n < int64(4*len(sites)) || waiting < r.standbys.Config().MaxConns) {
			err = fmt.Errorf("%d have begun, %d wait at the standby", n, waiting)
		}
		return err
	})
	time.Sleep(1500 * time.Millisecond) // longer than a search waits for a connection
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	searches.Wait()
	after := r.replicas.Searches()
	return after.Answered - before.Answered, after.Failed - before.Failed
}

// TestStoreOfReplica runs the suite with searches on a standby that has all writes.
func TestStoreOfReplica(t *testing.T) {
	t.Parallel()
	r := replicate(t)
	storetest.Run(t, func(t *testing.T) (store.Store, store.Store) {
		key := uuid.NewString()
		return r.caughtUpAs(t, key), r.caughtUpAs(t, key)
	})
	// Failed has the searches with ambiguous references, whose error the primary decides.
	if searches := r.replicas.Searches(); searches.Answered < 1000 || searches.Failed > 10 && !r.slow.Load() {
		t.Errorf("the searches are %+v, want at least 1000 that were answered, and few that failed", searches)
	}
}

// caughtUpAs opens the site with a key, with searches on the standby.
func (r *replicated) caughtUpAs(t *testing.T, key string) caughtUp {
	t.Helper()
	site := open(t, r.pool, key, postgres.Options{Replicas: r.replicas, QueryTimeout: time.Minute})
	if _, err := site.Renew(t.Context(), storetest.Extractor{}.Version(), func(postgres.Reindexed) {}); err != nil {
		t.Fatal(err)
	}
	return caughtUp{site, r}
}

// caughtUp is a site whose searches wait for the standby and accept its lag.
type caughtUp struct {
	*postgres.Store
	in *replicated
}

func (c caughtUp) Search(ctx context.Context, query store.Query) (store.Page, error) {
	var written int64
	const lsn = `SELECT (%s - '0/0'::pg_lsn)::int8`
	if err := c.in.pool.QueryRow(ctx, fmt.Sprintf(lsn, "pg_current_wal_insert_lsn()")).Scan(&written); err != nil {
		return store.Page{}, err
	}
	for replayed := int64(0); replayed < written; {
		if err := c.in.standbys.QueryRow(ctx, fmt.Sprintf(lsn, "pg_last_wal_replay_lsn()")).Scan(&replayed); err != nil {
			return store.Page{}, err
		}
	}
	query.MaxLag = time.Minute
	began := time.Now()
	page, err := c.Store.Search(ctx, query)
	if time.Since(began) >= postgres.ReplicaTimeout {
		c.in.slow.Store(true)
	}
	return page, err
}

// TestReplicaConnections shows that the pools of a database with replicas have no more connections than
// that of a database without.
func TestReplicaConnections(t *testing.T) {
	alone, err := postgres.Config(server.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	primary, standbys := alone.Copy(), alone.Copy()
	postgres.ConfigReplicas(primary, standbys)
	got := fmt.Sprintf("%d + %d", primary.MaxConns, standbys.MaxConns)
	if primary.MaxConns+standbys.MaxConns != alone.MaxConns || standbys.MaxConns < 2 || primary.MaxConns < 2*standbys.MaxConns {
		t.Errorf("the pools have %s connections, want %d together, most of them to the primary", got, alone.MaxConns)
	}
}
