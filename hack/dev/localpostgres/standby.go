package localpostgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

// copyPrimary makes the data of a standby by a base backup of the primary (PostgreSQL manual, "Making
// a Base Backup Using the Low Level API"), because the npm package has no pg_basebackup. It removes
// the WAL files of the copy: the standby streams the WAL from the start of the backup on.
func (s *Server) copyPrimary(ctx context.Context) error {
	primary := s.options.StandbyOf
	conn, err := pgx.Connect(ctx, primary.URL(superuser))
	if err != nil {
		return fmt.Errorf("connect to the primary: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // ends a backup that failed
	if _, err := conn.Exec(ctx, `SELECT pg_backup_start('standby', fast => true)`); err != nil {
		return fmt.Errorf("start a backup: %w", err)
	}
	copied, err := s.asOwner(exec.CommandContext(ctx, "cp", "-a", primary.data(), s.data())).CombinedOutput()
	for line := range strings.Lines(string(copied)) {
		if err != nil && !strings.Contains(line, "No such file") { // files may disappear during the copy
			return fmt.Errorf("copy the data of the primary: %w: %s", err, copied)
		}
	}
	var label string
	if err := conn.QueryRow(ctx, `SELECT labelfile FROM pg_backup_stop(wait_for_archive => false)`).Scan(&label); err != nil {
		return fmt.Errorf("end a backup: %w", err)
	}
	segments, err := filepath.Glob(filepath.Join(s.data(), "pg_wal", "0*"))
	for _, segment := range segments {
		err = errors.Join(err, os.Remove(segment))
	}
	return errors.Join(err, os.Remove(filepath.Join(s.data(), "postmaster.pid")), os.Remove(filepath.Join(s.data(), "postmaster.opts")),
		s.write(filepath.Join(s.data(), "backup_label"), []byte(label)), s.write(filepath.Join(s.data(), "standby.signal"), nil))
}
