package commands

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/output"
)

// defaultEntries and maxEntries are the default and the maximum of --limit, a number of audit
// entries.
const (
	defaultEntries = 100
	maxEntries     = 1000
)

// auditFilters are the flags of audit that are also parameters of the query, with the same name.
var auditFilters = []struct{ name, help string }{
	{"entity", "this record, such as Patient/rex, or its URL"},
	{"agent", "the caller of exactly this name"},
	{"action", "the action C (create), R (read), U (update), D (delete) or E (searches and Bundles)"},
	{"outcome", "the outcome 0 (success), 4 (refused or invalid), 8 (server error) or 12 (unavailable), or several of them, separated by commas"},
	{"subtype", "the interaction, such as read or search-type"},
}

func (a *app) auditCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "audit SITE", Short: "Show who accessed the records of a Site",
		Long: `Shows entries of the audit log of a Site, newest first. The token needs the right to list auditevents of the
group r4.fhir.paddock.health, which the ClusterRole paddock-auditor has. The query is recorded in the audit log as well.

With -o json and yaml, entries are AuditEvents of FHIR R4.`,
		Example: `  kubectl paddock audit demo -n demo --as-service-account auditor --entity Patient/rex
  kubectl paddock audit demo -n demo --as-service-account auditor --outcome 4,8 --from 2031-03-01T00:00:00Z`,
		Args: arguments("SITE"), ValidArgsFunction: a.completeSites,
	}
	flags := command.Flags()
	filters := make([]*string, len(auditFilters))
	for i, filter := range auditFilters {
		filters[i] = flags.String(filter.name, "", "show only entries with "+filter.help)
	}
	from := flags.String("from", "", "show only entries of this time or later, in RFC 3339")
	to := flags.String("to", "", "show only entries before this time, in RFC 3339")
	limit := flags.Int("limit", defaultEntries, fmt.Sprintf("maximum number of entries, 1 to %d", maxEntries))
	site := addSiteFlags(command)
	printer := a.formatFlag(command)
	command.RunE = func(command *cobra.Command, args []string) error {
		p, err := printer()
		if err != nil {
			return err
		}
		if *limit < 1 || *limit > maxEntries {
			return usagef(command, "--limit: %d is not between 1 and %d", *limit, maxEntries)
		}
		query := url.Values{"_count": {strconv.Itoa(*limit)}}
		for i, filter := range auditFilters {
			if *filters[i] != "" {
				query.Set(filter.name, *filters[i])
			}
		}
		for _, bound := range []struct{ flag, value, prefix string }{{"from", *from, "ge"}, {"to", *to, "lt"}} {
			if bound.value == "" {
				continue
			}
			at, err := parseTime(command, bound.flag, bound.value)
			if err != nil {
				return err
			}
			query.Add("date", bound.prefix+at.UTC().Format(time.RFC3339Nano))
		}
		opened, err := a.open(command.Context(), site, args[0])
		if err != nil {
			return err
		}
		entries, err := opened.api.AuditEvents(command.Context(), query)
		if err != nil {
			return err
		}
		if len(entries) == 0 && p.Format == output.TableFormat {
			a.say("No entries match.")
			return nil
		}
		table, err := auditTable(entries)
		if err != nil {
			return err
		}
		if err := p.Print(map[string]any{"items": entries}, table); err != nil {
			return err
		}
		if len(entries) == *limit {
			a.say("There may be more entries: raise --limit, or set --to to the time of the last entry shown.")
		}
		return nil
	}
	return command
}

// parseTime returns the time in the value of a flag.
func parseTime(command *cobra.Command, flag, value string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}, usagef(command, "--%s: %q is not a time in RFC 3339, such as 2031-03-01T08:30:00Z", flag, value)
	}
	return at, nil
}

// auditEvent is what the table shows of an AuditEvent.
type auditEvent struct {
	Recorded    string
	OutcomeDesc string
	Outcome     string
	Subtype     []struct{ Code string }
	Agent       []struct {
		Who     struct{ Display string }
		Network struct{ Address string }
	}
	Entity []struct {
		What struct{ Reference, Display string }
	}
}

func auditTable(entries []json.RawMessage) (output.Table, error) {
	table := output.Table{Columns: []string{"Recorded", "Caller", "Interaction", "Outcome", "Records", "Address"}}
	for _, entry := range entries {
		var e auditEvent
		if err := json.Unmarshal(entry, &e); err != nil {
			return table, fmt.Errorf("decode an AuditEvent of the response: %w", err)
		}
		var interaction, caller, address string
		var records []string
		if len(e.Subtype) > 0 {
			interaction = e.Subtype[0].Code
		}
		if len(e.Agent) > 0 {
			caller, address = e.Agent[0].Who.Display, e.Agent[0].Network.Address
		}
		for _, entity := range e.Entity {
			if record := entity.What.Reference + entity.What.Display; record != "" {
				records = append(records, record)
			}
		}
		row := output.Row{Cells: []string{e.Recorded, caller, interaction, e.OutcomeDesc, strings.Join(records, ","), address}}
		switch e.Outcome {
		case "0":
		case "4":
			row.Level = output.Warning
		default:
			row.Level = output.Failure
		}
		table.Rows = append(table.Rows, row)
	}
	return table, nil
}
