package commands

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/bulk"
	"github.com/paddock-health/paddock/cmd/kubectl-paddock/output"
	"github.com/paddock-health/paddock/cmd/listen/terminal"
)

func (a *app) exportCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "export SITE", Short: "Export the records of a Site into files",
		Long: `Exports the newest version of each record that the token may list into files of a directory: {type}.{number}.ndjson,
with one resource on each line, and manifest.json. An export that was interrupted goes on if the command is repeated.

With --native, the whole storage of the Site is exported: all versions, deleted records, slots, event groups, claims and
Kubernetes metadata, whatever privacy rules say. An import of the files makes another Site, with any storage, a
copy of this one. The token needs the verb export on the Site.

The files have mode 0600. Webhooks and the audit log are not exported.`,
		Example: `  kubectl paddock export demo -n demo --as-service-account editor --directory demo-records
  kubectl paddock export demo -n demo --as-service-account editor --directory patients --type Patient,RelatedPerson
  kubectl paddock export demo -n demo --as-service-account administrator --directory demo-site --native`,
		Args: arguments("SITE"), ValidArgsFunction: a.completeSites,
	}
	flags := command.Flags()
	directory := flags.String("directory", "", "path of a directory without an export; it is created if it does not exist (required)")
	types := flags.StringSlice("type", nil, "types to export, comma-separated; if unset, all types that the token may list")
	since := flags.String("since", "", "export only what changed after this time, in RFC 3339, such as transactionTime in the manifest.json of another export")
	native := flags.Bool("native", false, "export the whole storage of the Site in the native format")
	site := addSiteFlags(command)
	printer := a.formatFlag(command)
	command.RunE = func(command *cobra.Command, args []string) error {
		p, err := printer()
		if err != nil {
			return err
		}
		if *directory == "" {
			return usagef(command, "--directory is required")
		}
		if *native {
			if len(*types) > 0 || *since != "" {
				return usagef(command, "--native exports everything; omit --type and --since")
			}
			return a.exportNative(command, site, args[0], *directory, p)
		}
		query := url.Values{}
		if len(*types) > 0 {
			query.Set("_type", strings.Join(*types, ","))
		}
		if *since != "" {
			at, err := parseTime(command, "since", *since)
			if err != nil {
				return err
			}
			query.Set("_since", at.UTC().Format(time.RFC3339Nano))
		}
		opened, progress, err := a.openBulk(command, site, args[0])
		if err != nil {
			return err
		}
		done, err := bulk.Export(command.Context(), opened.api, opened.base, *directory, query, progress)
		if err != nil {
			return err
		}
		return a.printExported(p, done, done.Records)
	}
	return command
}

// exportNative exports a Site in the native format.
func (a *app) exportNative(command *cobra.Command, flags *siteFlags, name, directory string, p output.Printer) error {
	opened, progress, err := a.openBulk(command, flags, name)
	if err != nil {
		return err
	}
	manifest, err := bulk.ExportNative(command.Context(), opened.api, opened.base, directory, progress)
	if err != nil {
		return err
	}
	return a.printExported(p, manifest, manifest.Records)
}

// printExported prints how many records of each type were exported.
func (a *app) printExported(p output.Printer, done any, records map[string]int) error {
	table := output.Table{Columns: []string{"Type", "Records"}}
	for _, name := range slices.Sorted(maps.Keys(records)) {
		table.Rows = append(table.Rows, output.Row{Cells: []string{name, strconv.Itoa(records[name])}})
	}
	if len(table.Rows) == 0 && p.Format == output.TableFormat {
		a.say("No records match.")
		return nil
	}
	return p.Print(done, table)
}

func (a *app) importCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "import SITE", Short: "Import the records in files into a Site",
		Long: `Imports the files *.ndjson of a directory, with one resource on each line. Resources keep their ids: a record that
exists is updated, one with the same content stays unchanged. Lines that refer to a resource in a later line or file
are sent again after all other lines.

If the directory has an export in the native format (export --native), its files are compared with the digests in
manifest.json, and the records get all their versions, times and claims. A record that exists gets the versions that it
lacks. The token needs the verb import on the Site.

Lines that fail are in import-errors.jsonl in the directory, with file, line, expression and code, and the exit code
is 1. An import that was interrupted goes on if the command is repeated.`,
		Example: `  kubectl paddock import demo -n demo --as-service-account editor --directory demo-records --dry-run
  kubectl paddock import demo -n demo --as-service-account editor --directory demo-records`,
		Args: arguments("SITE"), ValidArgsFunction: a.completeSites,
	}
	flags := command.Flags()
	directory := flags.String("directory", "", "path of the directory with the files (required)")
	dryRun := flags.Bool("dry-run", false, "validate each line and write nothing; references are not checked")
	site := addSiteFlags(command)
	printer := a.formatFlag(command)
	command.RunE = func(command *cobra.Command, args []string) error {
		p, err := printer()
		if err != nil {
			return err
		}
		if *directory == "" {
			return usagef(command, "--directory is required")
		}
		opened, progress, err := a.openBulk(command, site, args[0])
		if err != nil {
			return err
		}
		return a.importDirectory(command, opened, *directory, *dryRun, progress, p)
	}
	return command
}

// importDirectory imports the files of a directory and prints the number of lines by result.
func (a *app) importDirectory(command *cobra.Command, site *openSite, directory string, dryRun bool, progress *bulk.Progress, p output.Printer) error {
	counts, err := bulk.Import(command.Context(), site.api, site.base, directory, dryRun, progress)
	if err != nil {
		return err
	}
	table := output.Table{Columns: []string{"Result", "Lines"}}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		row := output.Row{Cells: []string{name, strconv.Itoa(counts[name])}}
		if name == "failed" && counts[name] > 0 {
			row.Level = output.Failure
		}
		table.Rows = append(table.Rows, row)
	}
	if len(table.Rows) == 0 && p.Format == output.TableFormat {
		a.say("The files have no records.")
		return nil
	}
	if err := p.Print(counts, table); err != nil {
		return err
	}
	if failed := counts["failed"]; failed > 0 {
		return fmt.Errorf("%d lines failed; see %s", failed, filepath.Join(directory, bulk.ErrorsName))
	}
	return nil
}

// openBulk finds a Site and makes a client for it, and the Progress of an export or an import, which also
// shows that requests are sent again.
func (a *app) openBulk(command *cobra.Command, flags *siteFlags, name string) (*openSite, *bulk.Progress, error) {
	opened, err := a.open(command.Context(), flags, name)
	if err != nil {
		return nil, nil, err
	}
	progress := &bulk.Progress{Out: a.Streams.ErrOut, Terminal: a.Bars, Now: a.now}
	opened.api.Retrying = func(reason error, wait time.Duration) {
		progress.Say("%s; the request is sent again in %s", terminal.Safe(reason.Error()), wait)
	}
	return opened, progress, nil
}
