// Command apiserver serves the APIs of every Site, or delivers the events of Sites to webhooks. It
// consists of flags and wiring: the parts that it wires are in apiserver/.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	_ "time/tzdata" // containers have no time zones

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// gcPercent is the value of GOGC if that environment variable is unset. It is above Go's default of
// 100, because each collection marks the search index, which is long-lived and most of the heap.
const gcPercent = 200

// ballastSize is the size in bytes of an allocation that counts as live heap. It is never touched,
// so it occupies no memory. Without it, a server whose Sites are in Postgres has so little live
// heap that it collects garbage continuously.
const ballastSize = 32 << 20

// version is the release, set by the linker.
var version = "unknown"

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "apiserver: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o, err := parseOptions(args, os.Stderr)
	if err != nil {
		return err
	}
	if o.showVersion {
		fmt.Println(version)
		return nil
	}
	if o.check.wanted() {
		return o.check.run(ctx)
	}
	if !o.profiling {
		// Only /debug/pprof uses samples of allocations, which took 1 to 2 % of the processor time of creates.
		runtime.MemProfileRate = 0
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: o.logLevel}))
	slog.SetDefault(log)
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	klog.SetSlogLogger(slog.New(libraryHandler{log.Handler()}))
	ballast := make([]byte, ballastSize)
	defer runtime.KeepAlive(ballast)
	if o.serve[serveDelivery] {
		return runDelivery(ctx, o, log)
	}
	s, err := newServer(ctx, o, log)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// libraryHandler logs the messages of Kubernetes' libraries, except the message that managedFields
// cannot be updated. The libraries log it for an object that does not fit the schema, with values of the
// object. The object is validated later, and the response says why it is refused.
type libraryHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h libraryHandler) Handle(ctx context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "failed to update managedFields") {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h libraryHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return libraryHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h libraryHandler) WithGroup(name string) slog.Handler {
	return libraryHandler{h.Handler.WithGroup(name)}
}
