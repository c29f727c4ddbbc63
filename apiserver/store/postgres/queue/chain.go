package queue

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/jackc/pgx/v5"
)

// chain identifies the deliveries of one subject to an ordered webhook, which are made one after
// the other. At most one pending delivery of a chain is active: it has a job, or a time at which it
// is due. The other pending deliveries of the chain wait until it has ended.
type chain struct {
	site int32
	key  int64
}

// chainKey returns the hash of a webhook and a subject. If two subjects have the same hash, which
// has odds of 1 in 10^19, their deliveries wait for each other.
func chainKey(webhook, subject string) int64 {
	sum := sha256.Sum256([]byte(webhook + "\n" + subject))
	return int64(binary.LittleEndian.Uint64(sum[:]))
}

// lockChains locks chains until the transaction ends, and returns those that have a pending
// delivery. The lock is needed to add deliveries to a chain, and to start its next delivery. Without
// the lock, a relay could find a delivery pending that another transaction is about to end. That
// transaction would not see the delivery that the relay adds, so neither would start it.
func lockChains(ctx context.Context, tx pgx.Tx, chains []chain) (busy map[chain]bool, err error) {
	chains = slices.Clone(chains)
	slices.SortFunc(chains, func(a, b chain) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.site, b.site)) })
	chains = slices.Compact(chains)
	sites, keys := columnsOf(chains)
	batch := &pgx.Batch{}
	batch.Queue(`SELECT pg_advisory_xact_lock(k) FROM unnest($1::int8[]) k`, keys)
	// This must be a separate statement, so that it sees what was committed while the statement before
	// waited for the locks.
	const find = `SELECT c.site, c.key FROM unnest($1::int4[], $2::int8[]) c(site, key)
		WHERE EXISTS (SELECT FROM delivery d WHERE d.site = c.site AND d.chain = c.key AND d.status = 0)`
	busy = map[chain]bool{}
	batch.Queue(find, sites, keys).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var c chain
			if err := rows.Scan(&c.site, &c.key); err != nil {
				return err
			}
			busy[c] = true
		}
		return rows.Err()
	})
	return busy, tx.SendBatch(ctx, batch).Close()
}

func columnsOf(chains []chain) (sites []int32, keys []int64) {
	for _, c := range chains {
		sites, keys = append(sites, c.site), append(keys, c.key)
	}
	return sites, keys
}

// advance inserts the job of the first pending delivery of each chain that has no active delivery. It
// returns the jobs. The caller must hold the locks of the chains.
func (q *Queue) advance(ctx context.Context, tx pgx.Tx, chains []chain) ([]newJob, error) {
	if len(chains) == 0 {
		return nil, nil
	}
	const find = `SELECT c.site, d.id::text, d.webhook FROM (SELECT DISTINCT u.site, u.key FROM unnest($1::int4[], $2::int8[]) u(site, key)) c
		CROSS JOIN LATERAL (SELECT id, webhook FROM delivery d WHERE d.site = c.site AND d.chain = c.key AND d.status = 0 ORDER BY d.seq LIMIT 1) d
		WHERE NOT EXISTS (SELECT FROM delivery a WHERE a.site = c.site AND a.chain = c.key AND a.status = 0 AND (a.next IS NOT NULL OR a.job IS NOT NULL))`
	sites, keys := columnsOf(chains)
	rows, err := tx.Query(ctx, find, sites, keys)
	if err != nil {
		return nil, err
	}
	jobs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (job newJob, err error) {
		return job, row.Scan(&job.site, &job.id, &job.webhook)
	})
	if err != nil {
		return nil, err
	}
	return jobs, q.start(ctx, tx, jobs)
}
