// Command check is the first step of `make run`: it checks the settings, the lock and the port before
// anything else is built.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/paddock-health/paddock/hack/dev/run/preflight"
)

func main() {
	var settings preflight.Settings
	settings.AddFlags(flag.CommandLine)
	flag.Parse()
	lock, err := settings.Take(context.Background())
	if err == nil {
		err = lock.Release()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}
