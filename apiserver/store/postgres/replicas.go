package postgres

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/singleflight"

	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
)

const (
	// replicaFraction is the divisor of the maximum size of a pool: if a database has read replicas,
	// one connection in four is a connection to them.
	replicaFraction = 4
	// replicaTimeout limits the connection to a replica, the check of its lag, and the reading of the
	// primary's position. At the limit the primary answers the search.
	replicaTimeout = 500 * time.Millisecond
	// replicaPause is how long no search uses the replicas after a failure, per process and database.
	replicaPause = 5 * time.Second
	// positionInterval is the minimum interval between two readings of the primary's position, per
	// process and database. It is a fraction of the smallest lag that a query can accept, 1 s.
	positionInterval = 250 * time.Millisecond
	// maxProvenLag is how long positions are kept, and the maximum of Query.MaxLag that has an effect.
	maxProvenLag = 5 * time.Minute
)

// Replicas are the read-only replicas (hot standbys that stream from the primary) of a database. The
// connection string may lead to another replica for each connection, as the -ro Service of
// CloudNativePG does. The stores of the sites in the database share a Replicas. It is safe for
// concurrent use.
//
// The lag of a replica is measured by positions in the write-ahead log. A position of the primary
// that was read at a time is at or after all writes that were acknowledged before that time. A
// replica that has replayed that position therefore has all these writes, and lags by at most the
// time since then. This is so even if the primary is idle. It does not depend on the clocks of the
// servers.
type Replicas struct {
	primary, standbys *pgxpool.Pool
	reading           singleflight.Group
	// sessions limits the searches on replicas to the connections of the pool standbys. A search that
	// gets no session runs on the primary at once. If it waited in acquire for a connection instead,
	// acquire could time out, which counts as a failure of the replica.
	sessions share

	mu sync.Mutex
	// positions are positions of the primary, oldest first, all in the same history.
	positions []position
	// readAt is the time of the last attempt to read a position. pausedUntil is the end of the pause
	// after a failure.
	readAt, pausedUntil time.Time

	answered, lagging, failed atomic.Int64
}

// position is an end of the primary's write-ahead log, in bytes. at is a time before it was read.
type position struct {
	at  time.Time
	lsn int64
	// history identifies the database cluster (system_identifier), the timeline of the log, and the
	// database. Positions in different histories cannot be compared.
	history string
}

// NewReplicas returns the replicas to which the pool standbys connects, of the database of the pool
// primary. The caller must close both pools.
func NewReplicas(primary, standbys *pgxpool.Pool) *Replicas {
	return &Replicas{primary: primary, standbys: standbys, sessions: make(share, standbys.Config().MaxConns)}
}

// ConfigReplicas changes the configurations of the pools of a primary and of its replicas, which
// Config returned. Together, the pools have as many connections as the pool of a database without
// replicas, but at least one each. So no server has more connections, whichever is the primary
// after a failover. ConfigReplicas also sets the timeouts of the replicas, and makes their sessions
// read-only.
func ConfigReplicas(primary, standbys *pgxpool.Config) {
	standbys.MaxConns = max(1, primary.MaxConns/replicaFraction)
	primary.MaxConns = max(1, primary.MaxConns-standbys.MaxConns)
	standbys.ConnConfig.ConnectTimeout = replicaTimeout
	standbys.PingTimeout = replicaTimeout
	standbys.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
}

// ReplicaSearches are the numbers of searches that accepted a lag, by their outcome. Searches that
// found no free connection to the replicas are not counted.
type ReplicaSearches struct {
	// Answered counts the searches that a replica answered, with a page or with store.ErrQueryTimeout.
	// The primary answered the searches that Lagging and Failed count. Lagging counts the searches for
	// which the lag of the replica was too great or unknown, or its tables or index were not those of
	// this release. Failed counts the searches for which a replica returned an error or did not
	// answer, or had failed less than 5 s before. Failed also counts the searches whose caller went
	// away in the meantime.
	Answered, Lagging, Failed int64
}

// Searches returns the numbers of searches since the start of this process.
func (r *Replicas) Searches() ReplicaSearches {
	return ReplicaSearches{Answered: r.answered.Load(), Lagging: r.lagging.Load(), Failed: r.failed.Load()}
}

// errLagging means that a replica lags by more than a search accepts, that its lag is not known, or
// that its tables or index are not those of this release.
var errLagging = errors.New("the lag of the replica is greater than accepted, or unknown")

// errPaused means that no search uses the replicas, because one has failed recently.
var errPaused = errors.New("the replicas failed recently")

// replica is a connection to a replica.
type replica struct {
	*pgxpool.Conn
	// lag is a time by which the replica lags at most. It is not 0.
	lag time.Duration
	// earlier is the tables of earlier releases that the replica has. The primary may have fewer.
	earlier indexrow.Earlier
}

// acquire returns a connection to a replica that lags by at most maxLag. The caller must hold one of the
// sessions, and release the connection. Errors: errLagging, errPaused, those of connections.
func (r *Replicas) acquire(ctx context.Context, s *Store, maxLag time.Duration) (*replica, error) {
	r.mu.Lock()
	paused := time.Now().Before(r.pausedUntil)
	r.mu.Unlock()
	if paused {
		return nil, errPaused
	}
	r.readPosition()
	ctx, cancel := context.WithTimeout(ctx, replicaTimeout)
	defer cancel()
	conn, err := r.standbys.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	found := &replica{Conn: conn}
	err = r.measure(ctx, found, s)
	if err == nil && found.lag > maxLag {
		err = errLagging
	}
	if err != nil {
		conn.Release()
		return nil, err
	}
	return found, nil
}

// findPosition selects the primary's position and history. Acknowledged writes are flushed, unless
// synchronous_commit is off. So the position is the end of the flushed log, or the end of the
// inserted log with synchronous_commit off. The end of the inserted log is not used otherwise: after
// a switch to another log file, the standbys of an idle primary do not reach it.
const findPosition = `SELECT (CASE current_setting('synchronous_commit') WHEN 'off' THEN pg_current_wal_insert_lsn()
	ELSE pg_current_wal_flush_lsn() END - '0/0'::pg_lsn)::int8, system_identifier::text || '/' ||
	left(pg_walfile_name(pg_current_wal_lsn()), 8) || '/' || current_database() FROM pg_control_system()`

// readPosition adds the primary's current position, unless the last attempt to read it ended less
// than positionInterval ago. Concurrent calls share a statement. If reading fails, the lag is
// measured by earlier positions.
func (r *Replicas) readPosition() {
	r.mu.Lock()
	due := time.Since(r.readAt) >= positionInterval
	r.mu.Unlock()
	if !due {
		return
	}
	_, _, _ = r.reading.Do("", func() (any, error) {
		// Other calls wait for this one, so it must outlive the context of its caller.
		ctx, cancel := context.WithTimeout(context.Background(), replicaTimeout)
		defer cancel()
		current := position{at: time.Now()}
		err := r.primary.QueryRow(ctx, findPosition).Scan(&current.lsn, &current.history)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.readAt = time.Now()
		if err == nil {
			r.add(current)
		}
		return nil, nil
	})
}

// add adds a position and removes those that are too old, or of another history. The caller holds mu.
func (r *Replicas) add(current position) {
	oldest := 0
	for oldest < len(r.positions) && (r.positions[oldest].history != current.history || current.at.Sub(r.positions[oldest].at) > maxProvenLag) {
		oldest++
	}
	r.positions = append(r.positions[oldest:], current)
}

// findReplayed selects the position up to which a replica has replayed the log, its history, the
// versions of the tables and of the site's index, and which tables of earlier releases it has. The
// timeline is that of the last restart point, so after a failover a replica is not used until its next
// restart point.
const findReplayed = `SELECT pg_is_in_recovery(), COALESCE((pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::int8, 0),
	i.system_identifier::text || '/' || lpad(upper(to_hex(c.timeline_id)), 8, '0') || '/' || current_database(),
	(SELECT version FROM ` + schema.VersionTable + `), (SELECT oldest_server FROM requirement), s.extraction,
	` + hasEarlier + `
	FROM sites s, pg_control_system() i, pg_control_checkpoint() c WHERE s.site = $1`

// measure sets lag and earlier of a replica. Errors: errLagging, also if the tables or the index
// of the replica are not those of this release; those of connections.
func (r *Replicas) measure(ctx context.Context, to *replica, s *Store) error {
	var isReplica bool
	var replayed position
	var version int32
	var oldestServer int
	var extraction int64
	err := to.QueryRow(ctx, findReplayed, s.site).Scan(&isReplica, &replayed.lsn, &replayed.history, &version, &oldestServer, &extraction, &to.earlier.WideTexts, &to.earlier.AllTokens)
	if errors.Is(err, pgx.ErrNoRows) || err == nil &&
		(!isReplica || version < schema.Newest || oldestServer > schema.Server || extraction < s.index.Extractor.Version()) {
		return errLagging
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.positions) - 1; i >= 0; i-- {
		if known := r.positions[i]; known.history == replayed.history && known.lsn <= replayed.lsn {
			to.lag = max(1, time.Since(known.at))
			return nil
		}
	}
	return errLagging
}

// noteUnused counts a search for which acquire returned err. If a replica failed, noteUnused pauses
// the use of all replicas for replicaPause.
func (r *Replicas) noteUnused(ctx context.Context, err error) {
	if errors.Is(err, errLagging) {
		r.lagging.Add(1)
		return
	}
	r.failed.Add(1)
	if errors.Is(err, errPaused) || ctx.Err() != nil { // the caller is gone, which is no failure of a replica
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.After(r.pausedUntil) {
		r.pausedUntil = now.Add(replicaPause)
		standbys := r.standbys.Config().ConnConfig
		slog.WarnContext(ctx, "cannot use a read replica; the primary answers searches", "host", standbys.Host, "database", standbys.Database, "error", err)
	}
}
