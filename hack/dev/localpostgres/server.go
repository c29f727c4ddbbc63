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

	"github.com/paddock-health/paddock/hack/dev/freeport"
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

// sharedMemoryInUse is in the log of a server that starts before the sessions of the previous server
// have ended.
const sharedMemoryInUse = "pre-existing shared memory block"

// Options say where the server lives and how it is set up. Only Dir is required.
type Options struct {
	// Dir holds all state, such as the data and the log. It is created if it does not exist.
	Dir string
	// Version is the major version. Default: $PADDOCK_POSTGRES, otherwise any version.
	Version string
	// Port is the port on 127.0.0.1. Zero means that of the last start if it is free, otherwise any
	// free port.
	Port int
	// UnsafeNoFsync lets the server acknowledge a commit before the commit is on disk. The commit
	// survives a crash of processes, but not of the machine. For tests.
	UnsafeNoFsync bool
	// Secure makes the server require passwords of all users except the administrator, and accept TLS
	// with a certificate for 127.0.0.1 and localhost.
	Secure bool
	// StandbyOf, if set, is the primary from which the server streams the WAL. If Dir has no data yet,
	// Start copies those of the primary, which must run. Without Secure, the standby asks for no
	// passwords even if the primary does.
	StandbyOf *Server
	// Settings are settings of postgresql.conf. They override the defaults of this package.
	Settings map[string]string
}

// Server is a Postgres server. On Linux, it ends with the process that started it.
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

// Start starts a server with its state in options.Dir, new or with the data of an earlier one, and
// returns when it accepts connections. ctx limits only the start.
func Start(ctx context.Context, options Options) (*Server, error) {
	var err error
	if options.Dir == "" {
		return nil, errors.New("start postgres: Options.Dir is empty: set it to a folder for the state")
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

// prepare makes the folder and, unless it has data, the data.
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

// command returns the command of a program of Postgres, run as the user that owns the data.
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

// Restart stops the server if it runs, starts it with the same port and data, and returns when it
// accepts connections.
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
	// O_APPEND, because sessions of a killed server may still write to the log that is truncated here.
	log, err := os.OpenFile(s.LogFile(), os.O_WRONLY|os.O_APPEND|os.O_TRUNC|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	defer func() { _ = log.Close() }() // the child has its own copy
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
		// synchronous_commit stays on: without it, a crash of the processes would lose commits.
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

// await returns when the server accepts connections, and fails if the server ends before.
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

// URL returns the connection string of the administrator for a database of the server, without TLS.
func (s *Server) URL(database string) string {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(s.options.Port))
	dsn := url.URL{Scheme: "postgres", User: url.User(superuser), Host: address, Path: database, RawQuery: "sslmode=disable"}
	return dsn.String()
}

// Pid returns the id of the server's main process, 0 if it does not run. Sessions are its children.
func (s *Server) Pid() int {
	if process, _ := s.running(); process != nil {
		return process.Pid
	}
	return 0
}

// LogFile returns the path of the file with what the server writes to its standard streams.
func (s *Server) LogFile() string { return filepath.Join(s.options.Dir, "postgres.log") }

// Kill ends the main process of the server by SIGKILL, as a crash does, and returns when it has ended.
// Its children notice this and end a moment later.
func (s *Server) Kill() error { return s.end(syscall.SIGKILL) }

// Stop ends the server by a fast shutdown: it ends all sessions and writes all data to disk. After
// 30 s, it kills the server. The data stay for the next start. Stopping again changes nothing.
func (s *Server) Stop() error {
	err := s.end(syscall.SIGINT)
	if errors.Is(err, errNotRunning) {
		return nil
	}
	return err
}

// Pause stops the server's main process and its children by SIGSTOP. Connections stay open and get no
// response until Resume.
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
		return fmt.Errorf("end postgres: %w", errNotRunning)
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

// choosePort returns the port of the last start if it is free. Otherwise it returns a free port, which
// it writes to a file for the next start.
func (s *Server) choosePort() (int, error) {
	note := filepath.Join(s.options.Dir, "port")
	if text, err := os.ReadFile(note); err == nil {
		if port, err := strconv.Atoi(string(text)); err == nil && isFree(port) {
			return port, nil
		}
	}
	ports, err := freeport.Choose(1)
	if err != nil {
		return 0, err
	}
	return ports[0], os.WriteFile(note, []byte(strconv.Itoa(ports[0])), 0o644)
}

func isFree(port int) bool {
	listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

// tail returns the end of a log for an error message, or an empty string if it cannot be read.
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
