// Command kubectl-paddock operates the Sites of a cluster. kubectl runs it as `kubectl paddock`. It
// consists of wiring: the commands are in the package commands.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/commands"
)

// version is the release, set by the linker. If it is empty, the version of the module is shown.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := commands.Run(ctx, os.Args[1:], commands.Options{
		Name:     commandName(os.Args[0]),
		Version:  versionString(),
		Streams:  genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Coloured: term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		Bars:     term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("TERM") != "dumb",
	})
	stop()
	os.Exit(code)
}

// commandName returns how a person calls the program, by the path of the program.
func commandName(path string) string {
	if name := strings.TrimSuffix(filepath.Base(path), ".exe"); name == "paddock" {
		return name
	}
	return "kubectl paddock"
}

func versionString() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}
