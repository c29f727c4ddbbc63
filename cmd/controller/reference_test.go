package main

import (
	"bytes"
	"errors"
	"flag"
	"testing"

	"github.com/paddock-health/paddock/hack/gen/flagdocs"
)

// TestReference compares docs/reference/controller.md with the flags.
func TestReference(t *testing.T) {
	var usage, backupUsage bytes.Buffer
	if _, err := parseOptions([]string{"-h"}, &usage); !errors.Is(err, flag.ErrHelp) {
		t.Fatal(err)
	}
	if _, err := parseBackupOptions([]string{"-h"}, &backupUsage); !errors.Is(err, flag.ErrHelp) {
		t.Fatal(err)
	}
	variables := map[string]string{
		"AWS_ACCESS_KEY_ID":     "Access key of S3, for `controller backup`.",
		"AWS_SECRET_ACCESS_KEY": "Secret key of S3, for `controller backup`.",
		"AWS_SESSION_TOKEN":     "Session token of temporary credentials of S3, for `controller backup`.",
		"KUBECONFIG":            "Path of a kubeconfig, if `--kubeconfig` is unset.",
		"HTTP_PROXY":            "Proxy of connections by HTTP. `HTTPS_PROXY` and `NO_PROXY` likewise.",
		"GOMEMLIMIT":            "Soft limit of memory, for Go's garbage collector. `GOGC` likewise.",
	}
	flagdocs.CheckVariables(t, variables, ".", "../../controllers", "../kubectl-paddock/backup")
	flagdocs.Compare(t, "../../docs/reference/controller.md", "# controller\n\n"+
		"The controller reconciles Sites, WebhookEvents and Webhooks. `make generate` writes this page from the program's flags. "+
		"In the chart, `controller.extraArgs` adds flags and `controller.extraEnv` variables.\n\n## Flags\n\n"+
		flagdocs.Table(flagdocs.Parse(usage.String()))+"\n## Flags of controller backup\n\n"+
		"`controller backup` backs up one Site to S3-compatible storage and ends. "+
		"The chart's [CronJobs](../guides/backup.md#scheduled-backups) run it.\n\n"+
		flagdocs.Table(flagdocs.Parse(backupUsage.String()))+"\n## Environment\n\n"+flagdocs.Variables(variables))
}
