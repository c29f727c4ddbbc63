package postgres

import "github.com/jackc/pgx/v5/pgxpool"

// Maintenance limits how many sites of a pool are reindexed or enforce their retention at the same time, in
// this process. Each of these sites holds a connection for its lock and needs further connections for
// the work. Without a limit, the sites of a database could hold all connections for locks, and wait
// for each other.
type Maintenance struct{ sessions share }

// maintenanceFraction is the divisor of the pool's size: one connection in eight, and at least one,
// can be held for a lock.
const maintenanceFraction = 8

// NewMaintenance returns the Maintenance of a pool, which all its stores share (Options.Maintenance).
func NewMaintenance(pool *pgxpool.Pool) *Maintenance {
	return &Maintenance{make(share, max(1, pool.Config().MaxConns/maintenanceFraction))}
}
