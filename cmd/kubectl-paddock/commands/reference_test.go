package commands

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/paddock-health/paddock/hack/gen/flagdocs"
)

// TestReference compares docs/reference/kubectl-paddock.md with the commands and their flags.
func TestReference(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	kube := genericclioptions.NewConfigFlags(true)
	kube.APIServer = nil // as in Run
	root := (&app{Options: Options{Name: "kubectl paddock", Streams: streams}, kube: kube, now: time.Now}).root()
	variables := map[string]string{
		"AWS_ACCESS_KEY_ID":     "Access key of S3, for `restore`.",
		"AWS_SECRET_ACCESS_KEY": "Secret key of S3, for `restore`.",
		"AWS_SESSION_TOKEN":     "Session token of temporary credentials of S3, for `restore`.",
		"KUBECONFIG":            "Paths of kubeconfigs, as for kubectl.",
		tokenVariable:           "Token for requests to a Site, if neither `--as-service-account` nor `--token-file` is set.",
		secretVariable:          "Secret that verifies deliveries, for `webhooks listen`, if `--secret` is unset.",
		"NO_COLOR":              "If it is not empty, tables have no colours.",
		"TERM":                  "If it is `dumb`, tables have no colours and there are no progress bars.",
		"HTTP_PROXY":            "Proxy of connections by HTTP. `HTTPS_PROXY` and `NO_PROXY` likewise.",
	}
	flagdocs.CheckVariables(t, variables, "..")
	var page strings.Builder
	page.WriteString("# kubectl paddock\n\nThe [guide](../guides/kubectl-paddock.md) has examples. `make generate` writes this page from the program's commands.\n")
	writeCommand(&page, root)
	page.WriteString("\n## Flags of all commands\n\n" + flagdocs.Table(flagsOf(root.PersistentFlags())))
	page.WriteString("\n## Environment\n\n" + flagdocs.Variables(variables))
	flagdocs.Compare(t, "../../../docs/reference/kubectl-paddock.md", page.String())
}

func writeCommand(page *strings.Builder, command *cobra.Command) {
	if command.Runnable() && command.HasParent() {
		fmt.Fprintf(page, "\n## %s\n\n`%s`\n\n%s.\n", strings.TrimPrefix(command.CommandPath(), "kubectl "), command.UseLine(), strings.TrimSuffix(command.Short, "."))
		if flags := flagsOf(command.LocalNonPersistentFlags()); len(flags) > 0 {
			page.WriteString("\n" + flagdocs.Table(flags))
		}
	}
	for _, child := range command.Commands() {
		if !child.Hidden && child.Name() != "help" && child.Name() != "completion" {
			writeCommand(page, child)
		}
	}
}

func flagsOf(set *pflag.FlagSet) []flagdocs.Flag {
	var flags []flagdocs.Flag
	home, _ := os.UserHomeDir() // empty: no default is in it
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" && f.DefValue != "0s" {
			usage += " (default " + strings.Replace(f.DefValue, home+"/.", "~/.", 1) + ")"
		}
		flags = append(flags, flagdocs.Flag{Name: f.Name, Type: kind, Usage: usage})
	})
	return flags
}
