package localpostgres

import (
	"fmt"
	"os/exec"
	"strconv"
)

// WALSegmentSize is the smallest limit, in bytes, that LimitFiles may set, because the server must
// write WAL files of this size.
const WALSegmentSize = 16 << 20

// LimitFiles limits the size of all files to a number of bytes until RemoveLimit is called. Tables
// of this size cannot grow, which has the effect of a full disk on them. It runs prlimit as the
// server's user, because other users may not limit its processes.
func (s *Server) LimitFiles(bytes int) error { return s.limitFiles(strconv.Itoa(bytes)) }

// RemoveLimit ends LimitFiles.
func (s *Server) RemoveLimit() error { return s.limitFiles("unlimited") }

func (s *Server) limitFiles(size string) error {
	// eachProcess begins with the main process, so that sessions that start meanwhile inherit the limit.
	return s.eachProcess(func(pid int) error {
		cmd := s.asOwner(exec.Command("prlimit", "--pid", strconv.Itoa(pid), "--fsize="+size+":unlimited"))
		if output, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("limit the files of process %d of postgres: %w: %s", pid, err, output)
		}
		return nil
	})
}
