// Command apiserver serves the FHIR API of every site. It holds flags and wiring
// only: what it wires is in apiserver/.
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
	_ "time/tzdata" // containers have no time zones

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// gcPercent trades memory for time: the search index is most of the heap, lives long
// and is walked by each collection, while requests leave little that lives.
const gcPercent = 200

// ballastSize is of a piece of the heap that is never touched, so it takes no memory, but
// counts as what lives: of sites in Postgres a server keeps so little that it would
// collect all the time.
const ballastSize = 32 << 20

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
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: o.logLevel}))
	slog.SetDefault(log)
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	klog.SetSlogLogger(log)
	ballast := make([]byte, ballastSize)
	defer runtime.KeepAlive(ballast)
	s, err := newServer(ctx, o, log)
	if err != nil {
		return err
	}
	return s.run(ctx)
}
