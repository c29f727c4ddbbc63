package main

import (
	"bytes"
	"errors"
	"flag"
	"testing"

	"github.com/paddock-health/paddock/hack/gen/flagdocs"
)

// TestReference compares docs/reference/apiserver.md with the flags.
func TestReference(t *testing.T) {
	var usage bytes.Buffer
	if _, err := parseOptions([]string{"-h"}, &usage); !errors.Is(err, flag.ErrHelp) {
		t.Fatal(err)
	}
	const exporter = "Settings of OpenTelemetry's exporter of traces. Traces are exported only if one of the two endpoints is set."
	variables := map[string]string{
		"HTTP_PROXY": "Proxy of connections by HTTP. `HTTPS_PROXY` and `NO_PROXY` likewise.",
		"GOGC":       "Percentage of new heap at which Go collects garbage. Default: 200.",
		"GOMEMLIMIT": "Soft limit of memory, for Go's garbage collector.",

		"OTEL_EXPORTER_OTLP_ENDPOINT":        exporter,
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": exporter,
		"OTEL_EXPORTER_OTLP_PROTOCOL":        "`http/protobuf` (default) or `grpc`.",
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "Takes precedence over `OTEL_EXPORTER_OTLP_PROTOCOL`.",
		"OTEL_SDK_DISABLED":                  "`true` disables traces.",
		"OTEL_TRACES_SAMPLER":                "Sampler of traces. `OTEL_TRACES_SAMPLER_ARG` is its argument.",
	}
	flagdocs.CheckVariables(t, variables, ".", "../../apiserver")
	flagdocs.Compare(t, "../../docs/reference/apiserver.md", "# apiserver\n\n"+
		"The API server serves the APIs of all Sites, or delivers events. `make generate` writes this page from the program's flags. "+
		"In the chart, `extraArgs` of `facade`, `aggregated` and `delivery` adds flags, and `extraEnv` variables.\n\n## Flags\n\n"+
		flagdocs.Table(flagdocs.Parse(usage.String()))+"\n## Environment\n\n"+flagdocs.Variables(variables))
}
