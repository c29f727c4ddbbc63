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
	var usage bytes.Buffer
	if _, err := parseOptions([]string{"-h"}, &usage); !errors.Is(err, flag.ErrHelp) {
		t.Fatal(err)
	}
	variables := map[string]string{
		"KUBECONFIG": "Path of a kubeconfig, if `--kubeconfig` is unset.",
		"HTTP_PROXY": "Proxy of connections by HTTP. `HTTPS_PROXY` and `NO_PROXY` likewise.",
		"GOMEMLIMIT": "Soft limit of memory, for Go's garbage collector. `GOGC` likewise.",
	}
	flagdocs.CheckVariables(t, variables, ".", "../../controllers")
	flagdocs.Compare(t, "../../docs/reference/controller.md", "# controller\n\n"+
		"The controller reconciles Sites, WebhookEvents and Webhooks. `make generate` writes this page from the program's flags. "+
		"In the chart, `controller.extraArgs` adds flags and `controller.extraEnv` variables.\n\n## Flags\n\n"+
		flagdocs.Table(flagdocs.Parse(usage.String()))+"\n## Environment\n\n"+flagdocs.Variables(variables))
}
