// Package commands has the commands of kubectl paddock: flags, requests to the cluster and to sites,
// and their results.
package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/output"
	"github.com/paddock-health/paddock/cmd/listen/terminal"
)

// Exit codes of Run.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// Options are the settings that the commands get from the process.
type Options struct {
	// Name is how a person calls the program: "kubectl paddock" or "paddock".
	Name string
	// Version is the release of the program.
	Version string
	Streams genericiooptions.IOStreams
	// Coloured selects colours in tables.
	Coloured bool
	// Bars selects bars instead of lines to show the progress of a command.
	Bars bool
}

// Run runs the command of args and returns the exit code: 0 if it is done, 1 if it failed, 2 if args
// are invalid. A command that runs until it is interrupted returns 0 when ctx is canceled.
func Run(ctx context.Context, args []string, options Options) int {
	a := &app{Options: options, kube: genericclioptions.NewConfigFlags(true), now: time.Now}
	// --server is the address of Paddock. --kubeconfig and --context select the cluster.
	a.kube.APIServer = nil
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	fmt.Fprintln(options.Streams.ErrOut, "error:", terminal.Safe(err.Error()))
	var usage *usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(options.Streams.ErrOut, "See %s --help.\n", strings.TrimSpace(usage.command))
		return exitUsage
	}
	return exitFailed
}

// app is what all commands share.
type app struct {
	Options
	kube *genericclioptions.ConfigFlags
	now  func() time.Time
}

// usageError is invalid input. command is the command whose help has the valid input.
type usageError struct {
	command string
	text    string
}

func (e *usageError) Error() string { return e.text }

// usagef returns a usageError of a command.
func usagef(command *cobra.Command, format string, values ...any) error {
	return &usageError{command.CommandPath(), fmt.Sprintf(format, values...)}
}

const rootLong = `Operates the Sites of a cluster: shows their state, the deliveries of their webhooks and the accesses to
their records, and exports, imports and moves their data.

Exit codes: 0 done, 1 failed, 2 invalid flags or arguments.`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: strings.ReplaceAll(a.Name, " ", "-"), Short: "Operate the Sites of a cluster", Long: rootLong, Version: a.Version,
		Annotations:  map[string]string{cobra.CommandDisplayNameAnnotation: a.Name},
		SilenceUsage: true, SilenceErrors: true,
		Args: unknownCommand,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.SetOut(a.Streams.Out)
	root.SetErr(a.Streams.ErrOut)
	root.SetIn(a.Streams.In)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error { return usagef(command, "%v", err) })
	a.kube.AddFlags(root.PersistentFlags())
	root.AddCommand(a.statusCommand(), a.tokenCommand(), a.reportCommand(), a.slotsCommand(), a.webhooksCommand(), a.auditCommand(),
		a.exportCommand(), a.importCommand(), a.restoreCommand(), a.eraseCommand(), a.moveCommand(), a.resetCommand())
	// It returns an error only if the flag does not exist.
	_ = root.RegisterFlagCompletionFunc("namespace", a.completeNamespaces)
	return root
}

// unknownCommand is the check of the arguments of a command that only has subcommands: an argument is an
// unknown subcommand.
func unknownCommand(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, each := range command.Commands() {
		if each.IsAvailableCommand() {
			names = append(names, each.Name())
		}
	}
	return usagef(command, "unknown command %q; the commands are %s", args[0], strings.Join(names, ", "))
}

// arguments returns a check that a command has one argument for each name.
func arguments(names ...string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return usagef(command, "the argument %s is missing; expected: %s", names[len(args)], command.UseLine())
		}
		if len(args) > len(names) {
			return usagef(command, "unexpected argument %q; expected: %s", args[len(names)], command.UseLine())
		}
		return nil
	}
}

// formatFlag adds --output to a command. The returned function makes the printer.
func (a *app) formatFlag(command *cobra.Command) func() (output.Printer, error) {
	name := command.Flags().StringP("output", "o", string(output.TableFormat), "format of the result: "+strings.Join(output.Formats, ", "))
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(output.Formats, cobra.ShellCompDirectiveNoFileComp))
	return func() (output.Printer, error) {
		format, err := output.ParseFormat(*name)
		if err != nil {
			return output.Printer{}, usagef(command, "--output: %v", err)
		}
		return output.Printer{Format: format, Coloured: a.Coloured, Out: a.Streams.Out}, nil
	}
}

// say prints a message for people, which is not part of the result.
func (a *app) say(format string, values ...any) {
	fmt.Fprintln(a.Streams.ErrOut, terminal.Safe(fmt.Sprintf(format, values...)))
}
