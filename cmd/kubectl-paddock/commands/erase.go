package commands

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/output"
)

func (a *app) eraseCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "erase SITE TYPE/ID", Short: "Erase a record with its history",
		Long: `Erases a record, live or deleted, with all its versions, and the events and deliveries about it. For a Patient, the
records of its compartment are erased as well, except those that are also about other subjects, such as a Group with
further members. This cannot be undone. The token needs the verb purge on the types of the records, which the ClusterRole
paddock-admin has.

The result is a receipt with counts, which names no record. Backups and exported files are not erased.`,
		Example: `  kubectl paddock erase demo Patient/rex -n demo --as-service-account administrator --yes
  kubectl paddock erase demo Patient/rex -n demo --as-service-account administrator --compartment=false --yes`,
		Args: arguments("SITE", "TYPE/ID"), ValidArgsFunction: a.completeSites,
	}
	flags := command.Flags()
	yes := flags.Bool("yes", false, "erase the record; without --yes, nothing is erased")
	compartment := flags.Bool("compartment", true, "also erase the records in the compartment of a Patient")
	site := addSiteFlags(command)
	printer := a.formatFlag(command)
	command.RunE = func(command *cobra.Command, args []string) error {
		p, err := printer()
		if err != nil {
			return err
		}
		recordType, id, ok := strings.Cut(args[1], "/")
		if !ok || recordType == "" || id == "" || strings.Contains(id, "/") {
			return usagef(command, "%q is not a record; give its type and id, such as Patient/rex", args[1])
		}
		if !*yes {
			return usagef(command, "erasing %s with its history cannot be undone; repeat the command with --yes", args[1])
		}
		opened, err := a.open(command.Context(), site, args[0])
		if err != nil {
			return err
		}
		purged, err := opened.api.Purge(command.Context(), recordType, id, *compartment)
		if err != nil {
			return err
		}
		table := output.Table{Columns: []string{"Erased", "Records"}}
		for _, name := range slices.Sorted(maps.Keys(purged.Records)) {
			table.Rows = append(table.Rows, output.Row{Cells: []string{name, strconv.Itoa(purged.Records[name])}})
		}
		if err := p.Print(purged, table); err != nil || p.Format != output.TableFormat {
			return err
		}
		if purged.Shared > 0 {
			a.say("%d records of the compartment were not erased, because they are also about other subjects, such as a Group with further members.", purged.Shared)
		}
		a.say("%s", purged.Outside)
		return nil
	}
	return command
}
