// Package preflight checks what `make run` needs before anything is built or started. It uses only
// the standard library, so that a program with it is built in a second.
package preflight

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/paddock-health/paddock/hack/dev/dirlock"
)

const (
	// portPatience is how long Take waits for a port in use. The programs of a killed run hold their
	// sockets for a moment after the lock is free.
	portPatience = 5 * time.Second
	pollInterval = 50 * time.Millisecond
)

// Settings are the settings of a run that are checked. Error messages use the names of make's
// variables.
type Settings struct {
	// Dir is the folder for all state.
	Dir string
	// Storage is where the demo site keeps its records: cluster or postgres.
	Storage string
	// Data is what an empty demo site is filled with: clinic, hl7 or none.
	Data string
	// Port is the port of the API on 127.0.0.1; 0 is a free one.
	Port int
}

// AddFlags adds a flag for each setting.
func (s *Settings) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&s.Dir, "dir", ".local", "folder for all state")
	flags.StringVar(&s.Storage, "storage", "cluster", "where the demo site keeps its records: cluster or postgres")
	flags.StringVar(&s.Data, "data", "clinic", "what an empty demo site is filled with: clinic, hl7 (HL7's official examples) or none")
	flags.IntVar(&s.Port, "port", 8080, "port of the API on 127.0.0.1; 0: a free one")
}

// Take checks the settings and takes the folder, which it creates if needed, for this process. It
// writes nothing to the folder of another run.
func (s Settings) Take(ctx context.Context) (*dirlock.Lock, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("DIR: %w", err)
	}
	lock, err := dirlock.Take(filepath.Join(s.Dir, "lock"))
	if held := (*dirlock.HeldError)(nil); errors.As(err, &held) {
		return nil, fmt.Errorf("already running in %s (process %s); stop that process, or use another folder and port, for example DIR=.local2 PORT=9090", s.Dir, held.Process)
	}
	if err != nil {
		return nil, err
	}
	// After the lock, because a run in this folder has the port too.
	if err := awaitPort(ctx, s.Port); err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return lock, nil
}

func (s Settings) validate() error {
	switch s.Storage {
	case "cluster", "postgres":
	default:
		return fmt.Errorf("STORAGE: %q is neither cluster nor postgres", s.Storage)
	}
	switch s.Data {
	case "clinic", "hl7", "none":
	default:
		return fmt.Errorf("DATA: %q is not clinic, hl7 or none", s.Data)
	}
	return nil
}

// awaitPort returns when a program can listen on the port.
func awaitPort(ctx context.Context, port int) error {
	ctx, cancel := context.WithTimeout(ctx, portPatience)
	defer cancel()
	for {
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		switch {
		case err == nil:
			return listener.Close()
		case !errors.Is(err, syscall.EADDRINUSE):
			return fmt.Errorf("port %d: %w: choose another one, such as PORT=9090", port, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("port %d is in use: choose another one, such as PORT=9090", port)
		case <-time.After(pollInterval):
		}
	}
}
