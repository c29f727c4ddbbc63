// Package localpostgres runs a real Postgres server as a child process whose whole state is
// one folder: for tests and for `make run`. The server is the machine's, or the npm package
// that package-lock.json pins. It knows nothing of Paddock's tables.
package localpostgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	startTimeout = time.Minute
	// stopGrace is how long a shutdown, which writes all changed pages, may take.
	stopGrace    = 30 * time.Second
	pollInterval = 20 * time.Millisecond
	superuser    = "postgres"
)

var (
	errNotRunning = errors.New("it is not running")
	errEnded      = errors.New("it ended before it was ready")
)

// sharedMemoryInUse is what a server says that starts before the sessions of the last one
// have ended.
const sharedMemoryInUse = "pre-existing shared memory block"

// Options say where the server lives and how it is set up. Only Dir is required.
type Options struct {
	// Dir holds the data, the socket and the log; created when missing.
	Dir string
	// Version is the major version wanted. Default: $PADDOCK_POSTGRES, else any.
	Version string
	// Port on 127.0.0.1. Zero takes a free one, the same the next time if it is still free.
	Port int
	// UnsafeNoFsync acknowledges a commit before it is on disk: it survives the death of
	// every process, not that of the machine. For tests.
	UnsafeNoFsync bool
	// Secure asks all users but the administrator for passwords, and speaks TLS with a
	// certificate for 127.0.0.1 and localhost.
	Secure bool
	// StandbyOf, if set, is the primary from which the server streams. New data are a copy of the
	// primary's, which must run. Without Secure, the standby asks for no passwords even if the primary does.
	StandbyOf *Server
	// Settings are those of postgresql.conf, beside the package's own.
	Settings map[string]string
}

// Server is a running server. It dies with the process that started it.
type Server struct {
	options Options
	bin     string
	owner   *syscall.Credential
	// security are the settings of Options.Secure.
	security map[string]string

	mu      sync.Mutex
	process *os.Process
	exited  chan struct{}
}

// Start brings a server up over options.Dir, new or with the data of an earlier one, and
// returns when it answers. ctx bounds the start alone.
func Start(ctx context.Context, options Options) (*Server, error) {
	var err error
	if options.Dir == "" {
		return nil, errors.New("start postgres: Options.Dir is empty: name a folder for its state")
	}
	if options.Dir, err = filepath.Abs(options.Dir); err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	s := &Server{options: options}
	if s.bin, err = findServer(ctx, options.Version); err != nil {
		return nil, fmt.Errorf("find postgres: %w", err)
	}
	if s.owner, err = unprivileged(); err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	if options.Port == 0 {
		if s.options.Port, err = s.choosePort(); err != nil {
			return nil, fmt.Errorf("start postgres: %w", err)
		}
	}
	if options.Secure {
		if s.security, err = s.secure(); err != nil {
			return nil, fmt.Errorf("start postgres: %w", err)
		}
	}
	return s, s.Restart(ctx)
}

// prepare makes the folder and, where it holds no data yet, the data.
func (s *Server) prepare(ctx context.Context) error {
	if err := os.MkdirAll(s.options.Dir, 0o755); err != nil {
		return fmt.Errorf("create the folder of postgres: %w", err)
	}
	if s.owner != nil {
		if err := os.Chown(s.options.Dir, int(s.owner.Uid), int(s.owner.Gid)); err != nil {
			return fmt.Errorf("give the folder to the user of postgres: %w", err)
		}
	}
	if _, err := os.Stat(filepath.Join(s.data(), "PG_VERSION")); err == nil {
		return nil
	}
	if s.options.StandbyOf != nil {
		return s.copyPrimary(ctx) // standby.go
	}
	cmd := s.command(ctx, "initdb", "--pgdata", s.data(), "--username", superuser, "--auth", "trust",
		"--encoding", "UTF8", "--no-locale", "--no-sync")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make a database cluster in %s: %w\n%s", s.options.Dir, err, output)
	}
	return nil
}

func (s *Server) data() string { return filepath.Join(s.options.Dir, "data") }

// command is a program of the server, run as the user that owns its data.
func (s *Server) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return s.asOwner(exec.CommandContext(ctx, filepath.Join(s.bin, name), args...))
}

// asOwner makes a command run as the user that owns the server's data.
func (s *Server) asOwner(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.owner}
	letThrough(cmd.SysProcAttr)
	return cmd
}

// Restart starts the server again on the same port and data and returns when it serves. One
// that still runs is stopped first.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Stop(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		err := s.launch(ctx)
		if !errors.Is(err, errEnded) || !strings.Contains(tail(s.LogFile()), sharedMemoryInUse) {
			return err
		}
		// Sessions of a server that was killed take a moment to end.
		timer := time.NewTimer(pollInterval)
		select {
		case <-ctx.Done():
			return err
		case <-timer.C:
		}
	}
}

// launch starts the server once.
func (s *Server) launch(ctx context.Context) error {
	// Sessions of a server that was killed still write to the log: at its end, not where they were.
	log, err := os.OpenFile(s.LogFile(), os.O_WRONLY|os.O_APPEND|os.O_TRUNC|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	defer func() { _ = log.Close() }() // the child has its own
	cmd := s.command(context.WithoutCancel(ctx), "postgres", s.arguments()...)
	cmd.Stdout, cmd.Stderr = log, log
	exited, err := startChild(cmd)
	if err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	s.mu.Lock()
	s.process, s.exited = cmd.Process, exited
	s.mu.Unlock()
	if err := s.await(ctx, exited); err != nil {
		return errors.Join(fmt.Errorf("start postgres: %w: see %s\n%s", err, s.LogFile(), tail(s.LogFile())), s.Stop())
	}
	return nil
}

func (s *Server) arguments() []string {
	settings := map[string]string{
		"port": strconv.Itoa(s.options.Port), "listen_addresses": "127.0.0.1",
		"unix_socket_directories": "", "timezone": "UTC", "log_timezone": "UTC", "jit": "off",
		"max_connections": "100", "shared_buffers": "256MB", "max_wal_size": "2GB",
	}
	if s.options.UnsafeNoFsync {
		// With synchronous_commit off, commits would die with the processes, whose memory they are in.
		settings["fsync"], settings["full_page_writes"] = "off", "off"
	}
	if primary := s.options.StandbyOf; primary != nil {
		settings["primary_conninfo"] = fmt.Sprintf("host=127.0.0.1 port=%d user=%s sslmode=disable", primary.options.Port, superuser)
	}
	maps.Copy(settings, s.security)
	maps.Copy(settings, s.options.Settings)
	arguments := []string{"-D", s.data()}
	for name, value := range settings {
		arguments = append(arguments, "-c", name+"="+value)
	}
	return arguments
}

// await returns when the server answers, and fails when it ends instead.
func (s *Server) await(ctx context.Context, exited <-chan struct{}) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		select {
		case <-exited:
			return false, errEnded
		default:
		}
		last = s.ping(ctx)
		return last == nil, nil
	})
	return errors.Join(err, last)
}

func (s *Server) ping(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// URL is how to reach a database of the server as its administrator.
func (s *Server) URL(database string) string {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(s.options.Port))
	dsn := url.URL{Scheme: "postgres", User: url.User(superuser), Host: address, Path: database, RawQuery: "sslmode=disable"}
	return dsn.String()
}

// Pid is the server's main process, 0 when it is down. Its sessions are its children.
func (s *Server) Pid() int {
	if process, _ := s.running(); process != nil {
		return process.Pid
	}
	return 0
}

// LogFile is the path of what the server writes to its standard streams.
func (s *Server) LogFile() string { return filepath.Join(s.options.Dir, "postgres.log") }

// Kill ends the server by SIGKILL, as a crash does, and returns when it is gone. Its
// children notice and end too.
func (s *Server) Kill() error { return s.end(syscall.SIGKILL) }

// Stop ends the server in order: sessions are cut, and all is on disk. Data stay for the
// next start. Stopping again changes nothing.
func (s *Server) Stop() error {
	err := s.end(syscall.SIGINT)
	if errors.Is(err, errNotRunning) {
		return nil
	}
	return err
}

// Pause stops the server's main process and its sessions in their tracks (SIGSTOP).
func (s *Server) Pause() error { return s.signalAll(syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (s *Server) Resume() error { return s.signalAll(syscall.SIGCONT) }

func (s *Server) running() (*os.Process, chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil, nil
	}
	select {
	case <-s.exited:
		return nil, nil
	default:
		return s.process, s.exited
	}
}

func (s *Server) end(signal syscall.Signal) error {
	process, exited := s.running()
	if process == nil {
		return errNotRunning
	}
	if err := process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end postgres: %w", err)
	}
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-exited:
		return nil
	case <-timer.C:
	}
	if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill postgres: %w", err)
	}
	<-exited
	return nil
}

// choosePort takes the port of the last time, else a free one, which it notes.
func (s *Server) choosePort() (int, error) {
	note := filepath.Join(s.options.Dir, "port")
	if text, err := os.ReadFile(note); err == nil {
		if port, err := strconv.Atoi(string(text)); err == nil && isFree(port) {
			return port, nil
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, errors.Join(listener.Close(), os.WriteFile(note, []byte(strconv.Itoa(port)), 0o644))
}

func isFree(port int) bool {
	listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

// tail is the end of a log, for an error message.
func tail(path string) string {
	const most = 2000
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.Size() > most {
		_, _ = file.Seek(-most, io.SeekEnd)
	}
	text, _ := io.ReadAll(file)
	return string(text)
}
