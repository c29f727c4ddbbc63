package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	// ErrLocked means that another session holds the lock of a pool (ConfigSession).
	ErrLocked = errors.New("another session holds the advisory lock")
	// errEnded means that the only session of a pool has ended, or could not begin (ConfigSession).
	errEnded = errors.New("the session that held the advisory lock has ended, or could not begin")
)

// ConfigSession limits a pool to a single session. From its start to its end, the session holds the
// advisory lock with a name. If another session holds the lock, the first use of the pool fails
// with ErrLocked. Each use after that, or after the end of the session, fails too. So when another
// pool gets the lock, the last transaction of this pool has ended. This is so even if the process
// of this pool was paused in the meantime. config must be one that Config returned.
func ConfigSession(config *pgxpool.Config, name string) {
	const forever = time.Duration(math.MaxInt64)
	config.MinConns, config.MinIdleConns, config.MaxConns = 0, 0, 1
	config.MaxConnLifetime, config.MaxConnIdleTime, config.MaxConnLifetimeJitter = forever, forever, 0
	prepare := config.AfterConnect
	var began atomic.Bool
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if began.Swap(true) {
			return fmt.Errorf("use the advisory lock %q: %w", name, errEnded)
		}
		ours, err := TryLock(ctx, conn, name)
		if err != nil {
			return fmt.Errorf("take the advisory lock %q: %w", name, err)
		}
		if !ours {
			return fmt.Errorf("take the advisory lock %q: %w", name, ErrLocked)
		}
		return prepare(ctx, conn)
	}
}

// TryLock takes the advisory lock with a name until the session ends, unless another session holds
// it. It reports whether this session now holds the lock.
func TryLock(ctx context.Context, conn *pgx.Conn, name string) (ours bool, err error) {
	err = conn.QueryRow(ctx, `SELECT pg_try_advisory_lock(hashtextextended($1, 0))`, name).Scan(&ours)
	return ours, err
}
