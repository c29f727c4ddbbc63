package audit

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"
)

const (
	// linesDelay is how long lines are collected before they are written together.
	linesDelay = 200 * time.Millisecond
	// maxLines is the maximum size in bytes of the lines that wait for a blocked output. At the limit
	// further lines are dropped. The entries themselves are stored in the log.
	maxLines = 8 << 20
)

// Lines writes copies of audit entries to an output as lines of JSON. If the output is blocked for
// long, entries are dropped. It is safe for concurrent use. A nil *Lines writes nothing.
type Lines struct {
	out    io.Writer
	cancel context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	buffer  []byte
	dropped int
}

// NewLines returns Lines that write to an output until Close.
func NewLines(out io.Writer) *Lines {
	ctx, cancel := context.WithCancel(context.Background())
	l := &Lines{out: out, cancel: cancel, ended: make(chan struct{})}
	go l.run(ctx)
	return l
}

// OpenLines returns Lines that append to a file, or write to stdout if path is empty.
func OpenLines(path string) (*Lines, error) {
	if path == "" {
		return NewLines(os.Stdout), nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the file of audit lines: %w", err)
	}
	return NewLines(file), nil
}

// Close writes the waiting lines and stops. It does not close the output.
func (l *Lines) Close() {
	if l == nil {
		return
	}
	l.cancel()
	<-l.ended
}

func (l *Lines) add(entries []*Entry) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range entries {
		if l.admit(e.SizeHint()) {
			l.buffer = append(e.AppendJSON(l.buffer), '\n')
		}
	}
}

// addJSON adds an entry that is given as JSON.
func (l *Lines) addJSON(entry []byte) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.admit(len(entry)) {
		l.buffer = append(append(l.buffer, entry...), '\n')
	}
}

// admit reports whether a line of a size in bytes may be added, and counts the line as dropped if not. The
// caller holds mu.
func (l *Lines) admit(size int) bool {
	if len(l.buffer)+size >= maxLines {
		l.dropped++
		return false
	}
	return true
}

func (l *Lines) run(ctx context.Context) {
	defer close(l.ended)
	tick := time.NewTicker(linesDelay)
	defer tick.Stop()
	var spare []byte
	for {
		select {
		case <-ctx.Done():
			l.write(nil)
			return
		case <-tick.C:
			spare = l.write(spare)
		}
	}
}

// write writes the waiting lines and returns their buffer for reuse. Lines that are added during
// the write are collected in room.
func (l *Lines) write(room []byte) []byte {
	l.mu.Lock()
	lines, dropped := l.buffer, l.dropped
	l.buffer, l.dropped = room[:0], 0
	l.mu.Unlock()
	if dropped > 0 {
		slog.Error("audit lines were dropped, because the output is blocked", "lines", dropped)
	}
	if len(lines) == 0 {
		return lines
	}
	if _, err := l.out.Write(lines); err != nil {
		slog.Error("audit lines were not written", "bytes", len(lines), "err", err)
	}
	if cap(lines) > 1<<20 {
		return nil
	}
	return lines
}
