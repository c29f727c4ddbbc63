// Command controller reconciles Sites, SiteMoves, SiteClasses, WebhookEvents and Webhooks, and issues
// certificates and keys for the API servers. `controller backup` backs up one Site and ends. The
// command consists of flags and wiring: the parts that it wires are in controllers/ and in
// cmd/kubectl-paddock/backup.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// version is the release, set by the linker. If it is empty, the version of the module is shown.
var version string

func main() {
	command, args := run, os.Args[1:]
	if len(args) > 0 && args[0] == backupCommand {
		command, args = runBackup, args[1:]
	}
	if err := command(ctrl.SetupSignalHandler(), args); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "controller: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	opts, err := parseOptions(args, os.Stderr)
	if err != nil {
		return err
	}
	if opts.showVersion {
		fmt.Println(versionString())
		return nil
	}
	log := logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: opts.logLevel}))
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("client"))

	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w (outside a pod, give --kubeconfig)", err)
	}
	// The client does not limit its rate, because kube-apiserver's flow control does.
	config.QPS = -1
	mgr, err := newManager(ctx, config, opts)
	if err != nil {
		return err
	}
	log.Info("starting", "version", versionString(), "publicURL", opts.publicURL)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the controller: %w", err)
	}
	return nil
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
